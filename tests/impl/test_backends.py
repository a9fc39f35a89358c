"""The built-in backends compute the ops within the bounds that follow from their contracts.

What is wrong with torch is not hidden here: these calls stay clear of it, and campaigns find it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from assay.impl.call import Call, Layout
from assay.impl.loading import resolve
from assay.impl.registry import BACKENDS
from assay.impl.session import Session, open_session
from assay.spec.ops import op
from tests.impl.helpers import dirt, offered

NAMES = [
    b.name
    for b in BACKENDS
    if not b.name.startswith(("jax.", "onnx.")) and "attention" in offered(b.name)
]
DTYPES: Mapping[str, Any] = {
    "float32": np.float32,
    "bfloat16": ml_dtypes.bfloat16,
    "float16": np.float16,
    "float64": np.float64,
}
# Shape as B, H, Hkv, L, S, D, Dv; attributes; kind of mask.
CASES: list[tuple[tuple[int, ...], dict[str, Any], str]] = [
    ((1, 1, 1, 1, 1, 1, 1), {}, ""),
    ((2, 3, 3, 5, 5, 4, 4), {}, ""),
    ((2, 2, 2, 17, 17, 8, 8), {"causal": True}, ""),
    ((1, 4, 2, 3, 8, 4, 4), {"causal": True, "offset": 5}, ""),
    ((2, 2, 2, 5, 7, 4, 6), {"window": (2, 1)}, ""),
    ((2, 2, 2, 5, 7, 4, 4), {"scale": -0.7}, ""),
    ((2, 2, 2, 5, 7, 4, 4), {"scale": 0.0}, "additive"),
    ((2, 2, 2, 6, 6, 4, 4), {}, "bool"),
    ((2, 2, 2, 6, 6, 4, 4), {"causal": True}, "bool"),
    ((2, 2, 2, 6, 9, 4, 4), {"causal": True, "offset": 3}, "additive"),
    ((1, 2, 1, 3, 0, 4, 4), {}, ""),
    ((1, 2, 2, 0, 3, 4, 4), {}, ""),
]


# Dynamo warns of its own tracing; in a worker, where campaigns run, warnings are no errors.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


@pytest.fixture(scope="module", params=NAMES)
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    with open_session(resolve(request.param), isolate=False) as opened:
        yield opened


def _attention(
    shape: tuple[int, ...], attributes: dict[str, Any], mask: str, dtype: Any
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    b, h, hkv, rows, keys, d, dv = shape
    rng = np.random.default_rng(sum(shape) + len(attributes))

    def draw(*dims: int) -> np.ndarray:
        return np.asarray(rng.standard_normal(dims)).astype(dtype)

    inputs = {"q": draw(b, h, rows, d), "k": draw(b, hkv, keys, d), "v": draw(b, hkv, keys, dv)}
    if mask == "bool":
        inputs["mask"] = rng.random((b, 1, rows, keys)) > 0.4
        inputs["mask"][..., 0] = True
    if mask == "additive":
        inputs["mask"] = draw(rows, keys)
    return inputs, {"out": draw(b, h, rows, dv)}


def _wide(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {n: a if a.dtype == bool else a.astype(np.float64) for n, a in arrays.items()}


def _within(got: np.ndarray, want: np.ndarray, bound: np.ndarray) -> bool:
    return got.shape == want.shape and bool((np.abs(got.astype(np.float64) - want) <= bound).all())


def _agrees(session: Session, dtype: str, call: Call) -> bool:
    """Run ``call`` and hold it to the spec; False when the backend does not support it."""
    (reply,) = session.run([call])
    if reply.failure is not None:
        assert reply.failure.kind == "unsupported", reply.failure
        return False
    entry, arithmetic = op(call.op), session.description.contract.arithmetic(dtype)
    inputs = _wide(call.inputs)
    for name, want in entry.forward(inputs, call.attributes).items():
        bound = entry.bound(inputs, call.attributes, arithmetic)[name]
        assert _within(reply.outputs[name], want, bound), name
    if call.cotangents is not None:
        cotangents = _wide(call.cotangents)
        bounds = entry.backward_bound(inputs, cotangents, call.attributes, arithmetic)
        for name, want in entry.backward(inputs, cotangents, call.attributes).items():
            assert _within(reply.gradients[name], want, bounds[name]), name
    assert set(reply.hygiene.dtypes.values()) == {dtype}
    assert dirt(reply.hygiene) == {}
    return True


@pytest.mark.parametrize("dtype", DTYPES)
def test_attention_and_its_gradients_are_within_the_bounds(session: Session, dtype: str) -> None:
    description = session.description
    if dtype not in description.contract.dtypes:
        pytest.skip(f"{description.contract.name} does not declare {dtype}")
    ran = 0
    for mode in description.contract.modes:
        for shape, attributes, mask in CASES:
            inputs, cotangents = _attention(shape, attributes, mask, DTYPES[dtype])
            # The known fault of nn.MultiheadAttention, which campaigns must find.
            if (
                description.contract.name == "torch.mha"
                and attributes == {"causal": True}
                and not mask
            ):
                continue
            # That of transformers, whose reshapes refuse what is empty.
            if description.contract.name.startswith("transformers.") and 0 in shape:
                continue
            # And that of the flash kernel.
            if attributes.get("scale", 1) <= 0 and attributes.get("causal"):
                continue
            wanted = cotangents if mode in description.gradient_modes else None
            ran += _agrees(session, dtype, Call("attention", inputs, attributes, wanted, mode))
    name = description.contract.name
    least = {
        "torch.mha": 0.4, "torch.flex.compiled": 0.5, "torch.compile": 0.7, "transformers": 0.7
    }  # fmt: skip
    share = least.get(name, least.get(name.partition(".")[0], 0.9))
    assert ran >= share * (len(CASES) - 1) * len(description.contract.modes)


@pytest.mark.parametrize("kind", ["transposed", "strided", "offset", "expanded"])
def test_layouts_do_not_matter(session: Session, kind: Any) -> None:
    mask = "bool" if "bool" in session.description.contract.masks else ""
    inputs, _ = _attention((2, 2, 2, 6, 6, 4, 4), {}, mask, np.float32)
    for name in "qkv":
        inputs[name][1] = inputs[name][0]
    mode = session.description.contract.modes[-1]
    layouts = {name: Layout(kind, 3) for name in "qkv"}
    ran = _agrees(session, "float32", Call("attention", inputs, mode=mode, layouts=layouts))
    refuses = session.description.contract.name == "torch.sdpa.flash" and kind in (
        "transposed",
        "strided",
    )
    assert ran is not refuses


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["numpy.float32", "torch.manual"])
def test_masked_softmax_and_its_gradient_are_within_the_bounds(name: str, dtype: str) -> None:
    rng = np.random.default_rng(7)
    with open_session(resolve(name), isolate=False) as session:
        for keys in (1, 2, 16, 33):
            scores = rng.standard_normal((2, 3, keys)).astype(DTYPES[dtype])
            cotangents = {"weights": rng.standard_normal(scores.shape).astype(DTYPES[dtype])}
            mask = rng.random(scores.shape) > 0.4
            mask[..., 0] = True
            for inputs in ({"scores": scores}, {"scores": scores, "mask": mask}):
                mode = session.description.gradient_modes[0]
                assert _agrees(session, dtype, Call("masked_softmax", inputs, {}, cotangents, mode))


def test_shapes_that_do_not_fit_are_rejected(session: Session) -> None:
    good, _ = _attention((2, 2, 2, 3, 4, 4, 4), {}, "bool", np.float32)
    bad = [
        {**good, "q": good["q"][:1]},
        {**good, "k": good["k"][..., :2]},
        {**good, "v": good["v"][:, :, :2]},
        {**good, "q": good["q"][0]},
        {**good, "k": np.repeat(good["k"], 3, 1)[:, :3], "v": np.repeat(good["v"], 3, 1)[:, :3]},
        {**good, "mask": np.ones((5, 2, 3, 4), bool)},
        {**good, "mask": np.ones((1, 1, 1, 3, 4), bool)},
    ]
    for inputs in bad:
        (reply,) = session.run(
            [Call("attention", inputs, mode=session.description.contract.modes[-1])]
        )
        assert reply.failure is not None
        assert reply.failure.kind == "raised"


def _runs(name: str, call: Call) -> tuple[str, ...]:
    with open_session(resolve(name), isolate=False) as session:
        (reply,) = session.run([call])
    assert reply.failure is None
    return reply.hygiene.kernels


@pytest.mark.parametrize("name", ["torch.sdpa.math", "torch.sdpa.flash"])
def test_the_declared_kernel_runs_and_the_other_does_not(name: str) -> None:
    inputs, _ = _attention((1, 2, 2, 4, 4, 4, 4), {}, "", np.float32)
    kernels = _runs(name, Call("attention", inputs, mode="no_grad", witness=True))
    for other in ("torch.sdpa.math", "torch.sdpa.flash"):
        declared = resolve(other).load().contract.witness
        assert bool(set(declared) & set(kernels)) is (other == name)


@pytest.mark.parametrize(
    ("mode", "fast"),
    [
        ("train", False),
        ("eval.grad", False),
        ("eval.no_grad", True),
        ("eval.no_grad.weights", True),
    ],
)
def test_the_modules_fast_path_runs_in_the_modes_without_gradients(mode: str, fast: bool) -> None:
    inputs, _ = _attention((2, 3, 3, 4, 4, 4, 4), {}, "bool", np.float32)
    kernels = _runs("torch.mha", Call("attention", inputs, mode=mode, witness=True))
    assert ("aten::_native_multi_head_attention" in kernels) is fast


def test_inputs_that_the_projections_would_spread_are_unsupported() -> None:
    inputs, _ = _attention((1, 2, 2, 4, 4, 4, 4), {}, "", np.float32)
    inputs["v"][0, 0, 1, 2] = np.nan
    with open_session(resolve("torch.mha"), isolate=False) as session:
        (reply,) = session.run([Call("attention", inputs, mode="eval.no_grad")])
    assert reply.failure is not None
    assert reply.failure.kind == "unsupported"
    assert "spread NaN" in reply.failure.message


@pytest.mark.parametrize("where", ["k", "v"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numpy_isolates_what_is_blocked_and_passes_on_what_is_not(where: str, value: float) -> None:
    inputs, cotangents = _attention((2, 2, 1, 5, 5, 4, 4), {}, "", np.float32)
    poisoned = {**inputs, where: inputs[where].copy()}
    poisoned[where][:, :, 3] = value
    attributes = {"causal": True}
    with open_session(resolve("numpy.float32"), isolate=False) as session:
        clean, dirty = session.run(
            [Call("attention", i, attributes, cotangents) for i in (inputs, poisoned)]
        )
    assert (dirty.outputs["out"][:, :, :3] == clean.outputs["out"][:, :, :3]).all()
    if np.isnan(value):  # an infinite key may well give a score of -inf, and so no weight
        assert np.isnan(dirty.outputs["out"][:, :, 3:]).all()
    assert np.isfinite(dirty.gradients["q"][:, :, :3]).all()


def test_without_torch_the_numpy_backend_still_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    inputs, _ = _attention((1, 1, 1, 2, 2, 2, 2), {}, "", np.float32)
    with open_session(resolve("numpy.float32"), isolate=False) as session:
        assert _agrees(session, "float32", Call("attention", inputs))


@pytest.mark.parametrize("name", NAMES)
def test_in_a_worker_with_poisoned_memory_the_bounds_hold_too(name: str) -> None:
    with open_session(resolve(name)) as session:
        description = session.description
        for mode in description.contract.modes:
            for shape, attributes, mask in (CASES[1], CASES[7]):
                taken = mask if mask in description.contract.masks else ""
                inputs, cotangents = _attention(shape, attributes, taken, np.float32)
                wanted = cotangents if mode in description.gradient_modes else None
                for _ in range(3):
                    call = Call("attention", inputs, attributes, wanted, mode)
                    assert _agrees(session, "float32", call)
