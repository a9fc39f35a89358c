"""The same for tensors: autograd, modes, torch's own global state, kernel names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import ml_dtypes
import numpy as np
import pytest
import torch

from assay.impl import torch_host
from assay.impl.call import Layout, LayoutKind, Reply
from assay.impl.loading import resolve
from assay.impl.session import open_session
from tests.impl.helpers import TORCH_FAKES, attention_call, dirt, run_local

COTANGENT = {"out": np.full((1, 1, 3, 2), 4, np.float32)}


def _run(name: str, **changes: Any) -> Reply:
    return run_local(name, attention_call(**{"mode": "no_grad", **changes}), file=TORCH_FAKES)[0]


@pytest.mark.parametrize("kind", get_args(LayoutKind))
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64, ml_dtypes.bfloat16])
def test_a_sound_backend_is_clean(kind: LayoutKind, dtype: Any) -> None:
    reply = _run("SoundTorch", dtype=dtype, layouts={"v": Layout(kind, 3)})
    assert reply.failure is None
    assert reply.outputs["out"].dtype == dtype
    assert (reply.outputs["out"].astype(float) == 3).all()
    assert dirt(reply.hygiene) == {}


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("WritesInput", {"changed_inputs": ("k",)}),
        ("AliasesView", {"aliased": (("out", "v"),)}),
        ("DrawsRandom", {"global_state": ("torch random state",)}),
        ("SetsGradMode", {"global_state": ("torch gradient mode",)}),
    ],
)
@pytest.mark.parametrize("mode", ["no_grad", "grad"])
def test_the_observation_names_what_happened(name: str, found: Any, mode: str) -> None:
    assert dirt(_run(name, mode=mode).hygiene) == found


def test_gradients_come_from_autograd_and_unused_inputs_get_zeros() -> None:
    reply = _run("SoundTorch", mode="grad", cotangents=COTANGENT)
    assert reply.failure is None
    assert {n: g.flat[0] for n, g in reply.gradients.items()} == {"q": 0, "k": 0, "v": 4}


def test_an_output_cut_off_from_the_graph_has_no_gradient() -> None:
    failure = _run("Detaches", mode="grad", cotangents=COTANGENT).failure
    assert failure is not None
    assert failure.kind == "raised"
    assert "through autograd" in failure.message


def test_gradients_are_unsupported_without_recording() -> None:
    failure = _run("SoundTorch", mode="no_grad", cotangents=COTANGENT).failure
    assert failure is not None
    assert failure.kind == "unsupported"
    assert "valid: grad" in failure.message


@pytest.mark.parametrize(("mode", "told"), [("train", 7), ("no_grad", 0)])
def test_the_mode_decides_what_is_recorded(mode: str, told: int) -> None:
    assert (_run("TellsMode", mode=mode).outputs["out"] == told).all()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ReturnsNumpy", "numpy.ndarray; it must be a torch.Tensor"),
        ("ReturnsSparse", "torch.sparse_coo"),
        ("ReturnsMeta", "device meta"),
    ],
)
def test_what_is_no_dense_tensor_is_the_adapters_failure(name: str, words: str) -> None:
    failure = _run(name).failure
    assert failure is not None
    assert failure.kind == "adapter"
    assert words in failure.message


def test_torch_running_out_of_memory_is_a_memory_failure() -> None:
    failure = _run("OutOfMemory").failure
    assert failure is not None
    assert failure.kind == "memory"


def test_kernels_are_named_with_witness_only(capfd: pytest.CaptureFixture[str]) -> None:
    assert _run("SoundTorch").hygiene.kernels == ()
    assert "aten::clone" in _run("SoundTorch", witness=True).hygiene.kernels
    assert capfd.readouterr() == ("", "")


def test_a_backend_that_runs_another_kernel_is_told_by_its_witness() -> None:
    kernels = _run("OtherKernel", witness=True).hygiene.kernels
    assert "aten::add" in kernels
    assert "aten::clone" not in kernels


def test_default_modes_are_described() -> None:
    with open_session(resolve(f"{TORCH_FAKES}:SoundTorch"), isolate=False) as session:
        description = session.description
    assert description.contract.modes == ("no_grad", "grad")
    assert description.gradient_modes == ("grad",)
    assert description.gradients == ("attention",)
    assert description.host == "torch"
    assert type(description.versions["torch"]) is str


@pytest.mark.parametrize(("tiles", "named"), [({"amx_bf16": True}, "AVX512 AMX"), ({}, "AVX512")])
def test_the_instructions_that_kernels_choose_by_are_told(
    monkeypatch: pytest.MonkeyPatch, tiles: dict[str, bool], named: str
) -> None:
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: tiles)
    assert torch_host.TorchHost("cpu").versions()["cpu"] == named


def test_an_older_torch_does_not_tell_of_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.cpu, "get_capabilities")
    assert torch_host.instructions() == torch.backends.cpu.get_cpu_capability()


def test_a_function_on_tensors_runs_on_torch_with_gradients() -> None:
    with open_session(resolve(f"{TORCH_FAKES}:plain", op="attention"), isolate=False) as session:
        call = attention_call(mode="grad", cotangents=COTANGENT)
        (reply,) = session.run([call])
        assert session.description.contract.causal_alignment == "square"
    assert (reply.gradients["v"] == 8).all()


def test_a_device_that_is_not_there_is_unsupported_and_one_that_torch_does_not_know_an_error() -> (
    None
):
    from assay.impl.loading import TargetError

    with open_session(resolve(f"{TORCH_FAKES}:SoundTorch", device="mps"), isolate=False) as session:
        (reply,) = session.run([replace(attention_call(), mode="no_grad")])
    assert reply.failure is not None
    assert reply.failure.kind == "unsupported"
    assert "device 'mps' is not available" in reply.failure.message
    with pytest.raises(TargetError, match="device='warp' is no torch device"):
        open_session(resolve(f"{TORCH_FAKES}:SoundTorch", device="warp"), isolate=False)


@pytest.mark.parametrize("kind", get_args(LayoutKind))
@pytest.mark.parametrize("dtype", [np.float64, ml_dtypes.bfloat16, bool])
def test_a_block_moved_as_a_whole_holds_the_same_views(kind: LayoutKind, dtype: Any) -> None:
    import torch

    from assay.impl.buffers import Block
    from assay.impl.torch_host import TorchHost

    array = np.arange(12).reshape(1, 3, 4).astype(dtype)
    block = Block({"x": array, "y": array[:, :0]}, {"x": Layout(kind, 3)})
    moved = torch.from_numpy(block.memory).clone()
    host = TorchHost("cpu")
    x = host._on_device(moved, block.memory, block.views["x"])
    assert host.copy(x).tobytes() == array.tobytes()
    assert x.stride() == tuple(s // array.itemsize for s in block.views["x"].strides)
    assert host._on_device(moved, block.memory, block.views["y"]).shape == (1, 0, 4)
    x[0, 0, 0] = 1
    assert block.inspect(moved.numpy()) == (("x",), ())


@pytest.mark.gpu
def test_on_a_gpu_guards_lie_around_the_inputs_too() -> None:
    for name, found in (
        ("SoundTorch", {}),
        ("WritesInput", {"changed_inputs": ("k",)}),
        ("AliasesView", {"aliased": (("out", "v"),)}),
    ):
        target = resolve(f"{TORCH_FAKES}:{name}", device="cuda")
        for kind in get_args(LayoutKind):
            with open_session(target, isolate=True) as session:
                call = attention_call(mode="no_grad", layouts={"v": Layout(kind, 3)})
                (reply,) = session.run([call])
            assert reply.failure is None
            assert reply.hygiene.devices == {"out": "cuda"}
            assert dirt(reply.hygiene) == found
