"""The CUDA C++ kernels: their arithmetic on the host is the spec's, nvcc compiles them, and without
a GPU the backends say so.
"""

from __future__ import annotations

import ctypes
import importlib
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assay.impl.kernels import cuda_build
from assay.impl.kernels.cuda_build import HOME, SOURCES, BuildError, compile_object, nvcc
from assay.impl.loading import resolve
from assay.impl.protocol import Unavailable
from assay.spec.arithmetic import Arithmetic
from assay.spec.ops import op

HOST = Path(__file__).with_name("cuda_host.cpp")
EXACT = Arithmetic()
needs_nvcc = pytest.mark.skipif(not nvcc(), reason="nvcc is not on the path")


def _build_host(folder: Path, *, include: Path = HOME) -> ctypes.CDLL:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("g++ is not on the path")
    built = folder / "host.so"
    # Contraction off: the same bits whatever the processor.
    flags = ("-O1", "-std=c++17", "-ffp-contract=off", "-Wall", "-Wno-unknown-pragmas", "-Werror")
    command = (compiler, *flags, "-fPIC", "-shared", f"-I{include}", str(HOST), "-o", str(built))
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(built))


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return _build_host(tmp_path_factory.mktemp("host"))


def _at(x: np.ndarray | None) -> Any:
    return None if x is None else x.ctypes.data_as(ctypes.c_void_p)


def _softmax(
    host: ctypes.CDLL, scores: np.ndarray, mask: np.ndarray | None, cotangent: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    weights, gradient = np.full_like(scores, np.nan), np.full_like(scores, np.nan)
    rows, length = ctypes.c_int64(scores.size // scores.shape[-1]), ctypes.c_int64(scores.shape[-1])
    host.masked_softmax(_at(scores), _at(mask), _at(weights), rows, length, 32)
    host.masked_softmax_backward(
        _at(weights), _at(cotangent), _at(mask), _at(gradient), rows, length, 32
    )
    return weights, gradient


@pytest.mark.parametrize("length", [1, 5, 31, 32, 33, 200])
@pytest.mark.parametrize("masked", [False, True])
def test_softmax_on_the_host_is_the_specs(host: ctypes.CDLL, length: int, masked: bool) -> None:
    rng = np.random.default_rng(length)
    scores, cotangent = rng.standard_normal((2, 2, 3, length)).astype(np.float32)
    scores *= 10
    inputs = {"scores": scores.astype(np.float64)}
    if masked:
        inputs["mask"] = rng.random(scores.shape) > 0.4
        inputs["mask"][0, 1] = False
    weights, gradient = _softmax(host, scores, inputs.get("mask"), cotangent)
    entry, flow = op("masked_softmax"), {"weights": cotangent.astype(np.float64)}
    want = entry.forward(inputs, {})["weights"]
    assert (np.abs(weights - want) <= entry.bound(inputs, {}, EXACT)["weights"]).all()
    want = entry.backward(inputs, flow, {})["scores"]
    bound = entry.backward_bound(inputs, flow, {}, EXACT)["scores"]
    assert (np.abs(gradient - want) <= bound).all()


def test_softmax_on_the_host_passes_on_what_is_not_finite_and_seen(host: ctypes.CDLL) -> None:
    scores = np.zeros((1, 5, 40), np.float32)
    scores[0, 0, 3], scores[0, 1, 3], scores[0, 2, 3] = np.nan, np.inf, -np.inf
    scores[0, 3] = -np.inf
    scores[0, 4, 3] = np.nan
    mask = np.ones(scores.shape, bool)
    mask[0, 4, 3] = False
    weights, _ = _softmax(host, scores, mask, np.zeros_like(scores))
    with np.errstate(invalid="ignore"):
        inputs = {"scores": scores.astype(np.float64), "mask": mask}
        want = op("masked_softmax").forward(inputs, {})["weights"]
    assert (np.isnan(weights) == np.isnan(want)).all()
    assert np.isfinite(weights[0, [2, 4]]).all()


@pytest.mark.parametrize("steps", [0, 1, 20])
@pytest.mark.parametrize("states", [1, 4, 5, 16])
def test_scan_on_the_host_is_the_specs(host: ctypes.CDLL, steps: int, states: int) -> None:
    rng = np.random.default_rng(steps + states)
    batch, channels = 2, 3
    shapes = {
        "u": (batch, steps, channels), "delta": (batch, steps, channels), "a": (channels, states),
        "b": (batch, steps, states), "c": (batch, steps, states),
    }  # fmt: skip
    if steps != 1:
        shapes |= {"d": (channels,), "h0": (batch, channels, states)}
    given = {n: rng.standard_normal(s).astype(np.float32) for n, s in shapes.items()}
    for name in ("delta", "a"):
        given[name] = np.abs(given[name])
    out = np.full(shapes["u"], np.nan, np.float32)
    last = np.full((batch, channels, states), np.nan, np.float32)
    names = ("u", "delta", "a", "b", "c", "d", "h0")
    inputs = (ctypes.c_void_p * 7)(*(_at(given.get(n)) for n in names))
    outputs = (ctypes.c_void_p * 2)(_at(out), _at(last))
    host.selective_scan(inputs, outputs, (ctypes.c_int64 * 4)(batch, steps, channels, states))
    wide = {n: x.astype(np.float64) for n, x in given.items()}
    entry = op("selective_scan")
    want, bound = entry.forward(wide, {}), entry.bound(wide, {}, EXACT)
    assert (np.abs(out - want["out"]) <= bound["out"]).all()
    assert (np.abs(last - want["state"]) <= bound["state"]).all()


def test_a_sum_that_forgets_to_rescale_is_caught(tmp_path: Path) -> None:
    for header in HOME.glob("*.h"):
        text = header.read_text()
        wrong = text.replace("mass.sum * expf(mass.top - score)", "mass.sum")
        (tmp_path / header.name).write_text(wrong)
    broken = _build_host(tmp_path, include=tmp_path)
    scores = np.arange(64, dtype=np.float32)[None, None]
    weights, _ = _softmax(broken, scores, None, np.zeros_like(scores))
    inputs = {"scores": scores.astype(np.float64)}
    entry = op("masked_softmax")
    apart = np.abs(weights - entry.forward(inputs, {})["weights"])
    assert (apart > entry.bound(inputs, {}, EXACT)["weights"]).any()


@needs_nvcc
@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES)
def test_nvcc_compiles_every_source_for_hopper(source: str, tmp_path: Path) -> None:
    target = tmp_path / "kernel.o"
    compile_object(source, "sm_90", target)
    assert target.stat().st_size > 0


@needs_nvcc
@pytest.mark.slow
def test_the_library_is_built_once_and_holds_the_functions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = cuda_build.shared_object("sm_90")
    assert path.parent == tmp_path / "assay"
    built = path.stat().st_mtime_ns
    assert cuda_build.shared_object("sm_90") == path
    assert path.stat().st_mtime_ns == built
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    held = path.read_bytes()
    for name in (b"assay_masked_softmax", b"assay_selective_scan", b"assay_error"):
        assert name in held


@needs_nvcc
def test_what_nvcc_prints_is_in_the_error(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="sm_1"):
        compile_object("scan.cu", "sm_1", tmp_path / "kernel.o")


def test_a_source_that_is_none_is_named_with_the_valid_ones(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"source='conv.cu' is no kernel; valid: softmax.cu, scan"):
        compile_object("conv.cu", "sm_90", tmp_path / "kernel.o")


def test_without_nvcc_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert nvcc() == ""
    with pytest.raises(BuildError, match="install the CUDA toolkit or set CUDA_HOME"):
        compile_object("scan.cu", "sm_90", tmp_path / "kernel.o")


def _backend(name: str) -> Any:
    """The backend's class, found past the check of installed files, which a build of torch for the
    CPU does not pass.
    """
    target = resolve(name)
    return getattr(importlib.import_module(target.place), target.attr)


@pytest.mark.parametrize("name", ["cuda.softmax", "cuda.scan"])
def test_without_a_device_the_backend_is_unavailable(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(Unavailable, match="there is no CUDA device"):
        _backend(name)()


@pytest.mark.parametrize("name", ["cuda.softmax", "cuda.scan"])
def test_without_nvcc_the_backend_is_unavailable(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    with pytest.raises(Unavailable, match="nvcc, which builds these kernels, is not on the path"):
        _backend(name)()
