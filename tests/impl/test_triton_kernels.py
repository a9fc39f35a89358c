"""The Triton kernels, interpreted, compute the ops within the bounds that follow from their
contracts: in tiles and beyond them, in every format, gradients included.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from assay.impl.call import Call, Reply
from assay.impl.loading import resolve
from assay.impl.session import open_session
from assay.spec.ops import op
from tests.impl.helpers import dirt

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from tests.impl.triton_fakes import track  # noqa: E402

DTYPES: Mapping[str, Any] = {
    "float32": np.float32,
    "bfloat16": ml_dtypes.bfloat16,
    "float16": np.float16,
}
Arrays = dict[str, np.ndarray]


def _run(name: str, call: Call) -> tuple[Reply, Any]:
    with open_session(resolve(name), isolate=False) as session:
        (reply,) = session.run([call])
        return reply, session.description.contract


def _hold_to_spec(name: str, call: Call, dtype: str) -> None:
    """Outputs and gradients of one call, within their bounds."""
    reply, contract = _run(name, call)
    assert reply.failure is None, reply.failure
    entry, arithmetic = op(call.op), contract.arithmetic(dtype)
    wide = {n: x if x.dtype == bool else x.astype(np.float64) for n, x in call.inputs.items()}
    cotangents = {n: x.astype(np.float64) for n, x in (call.cotangents or {}).items()}
    want = {**entry.forward(wide, call.attributes)}
    bound = {**entry.bound(wide, call.attributes, arithmetic)}
    for n, x in want.items():
        assert reply.outputs[n].shape == x.shape, n
        assert (np.abs(reply.outputs[n].astype(np.float64) - x) <= bound[n]).all(), n
    want = {**entry.backward(wide, cotangents, call.attributes)}
    bound = {**entry.backward_bound(wide, cotangents, call.attributes, arithmetic)}
    for n, x in want.items():
        assert reply.gradients[n].shape == x.shape, n
        assert (np.abs(reply.gradients[n].astype(np.float64) - x) <= bound[n]).all(), n
    assert set(reply.hygiene.dtypes.values()) == {dtype}
    assert dirt(reply.hygiene) == {}


def _draw(rng: np.random.Generator, dtype: str, **shapes: tuple[int, ...]) -> Arrays:
    return {n: rng.standard_normal(s).astype(DTYPES[dtype]) for n, s in shapes.items()}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", [1, 5, 1024, 1025])
@pytest.mark.parametrize("masked", [False, True])
def test_softmax_in_a_tile_and_beyond_it(dtype: str, length: int, masked: bool) -> None:
    rng = np.random.default_rng(length)
    inputs = _draw(rng, dtype, scores=(2, 3, length))
    if masked:
        inputs["mask"] = rng.random((1, 3, length)) > 0.4
        inputs["mask"][:, 1] = False
    cotangents = _draw(rng, dtype, weights=(2, 3, length))
    _hold_to_spec("triton.softmax", Call("masked_softmax", inputs, {}, cotangents, "grad"), dtype)


@pytest.mark.parametrize("length", [4, 1030])
def test_softmax_passes_on_nan_and_infinity_that_are_seen_and_no_others(length: int) -> None:
    scores = np.zeros((1, 4, length), np.float32)
    scores[0, 0, 1], scores[0, 1, 1], scores[0, 2, :] = np.nan, np.inf, -np.inf
    mask = np.ones((1, 4, length), bool)
    mask[0, 3, 1] = False
    scores[0, 3, 1] = np.nan
    reply, _ = _run(
        "triton.softmax", Call("masked_softmax", {"scores": scores, "mask": mask}, mode="grad")
    )
    with np.errstate(invalid="ignore"):
        want = op("masked_softmax").forward({"scores": scores, "mask": mask}, {})["weights"]
    assert (np.isnan(reply.outputs["weights"]) == np.isnan(want)).all()
    assert np.isfinite(reply.outputs["weights"][0, 3]).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("steps", [0, 1, 16, 17, 33])
def test_scan_in_a_chunk_and_beyond_it(dtype: str, steps: int) -> None:
    rng = np.random.default_rng(steps)
    batch, channels, states = 2, 5, 3
    inputs = _draw(
        rng, dtype, u=(batch, steps, channels), delta=(batch, steps, channels),
        a=(channels, states), b=(batch, steps, states), c=(batch, steps, states),
    )  # fmt: skip
    for name in ("delta", "a"):
        inputs[name] = np.abs(inputs[name])
    if steps % 2:
        inputs |= _draw(rng, dtype, d=(channels,), h0=(batch, channels, states))
    cotangents = _draw(rng, dtype, out=(batch, steps, channels), state=(batch, channels, states))
    _hold_to_spec("triton.scan", Call("selective_scan", inputs, {}, cotangents, "grad"), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("steps", "taps"), [(0, 3), (1, 1), (2, 4), (33, 3), (65, 2)])
def test_convolution_in_a_tile_and_beyond_it(dtype: str, steps: int, taps: int) -> None:
    rng = np.random.default_rng(steps)
    batch, channels = 2, 5
    inputs = _draw(rng, dtype, x=(batch, steps, channels), weight=(taps, channels))
    if steps != 1:
        inputs |= _draw(rng, dtype, bias=(channels,), history=(batch, taps - 1, channels))
    cotangents = _draw(
        rng, dtype, out=(batch, steps, channels), history=(batch, taps - 1, channels)
    )
    _hold_to_spec("triton.conv", Call("causal_conv1d", inputs, {}, cotangents, "grad"), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("sizes", "attributes"),
    [
        ((2, 1, 3, 260), {}),
        ((4, 2, 130, 130), {"causal": True}),
        ((2, 2, 3, 140), {"causal": True, "offset": 137}),
        ((1, 1, 140, 150), {"window": (5, 3), "offset": 2}),
    ],
)
def test_attention_over_several_tiles(
    dtype: str, sizes: tuple[int, ...], attributes: dict[str, Any]
) -> None:
    heads, kv_heads, queries, keys = sizes
    rng = np.random.default_rng(keys)
    inputs = _draw(
        rng, dtype, q=(1, heads, queries, 8), k=(1, kv_heads, keys, 8), v=(1, kv_heads, keys, 6)
    )
    cotangents = _draw(rng, dtype, out=(1, heads, queries, 6))
    _hold_to_spec("triton.flash", Call("attention", inputs, attributes, cotangents, "grad"), dtype)


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_attention_keeps_what_is_blocked_apart_and_passes_on_what_is_seen(special: float) -> None:
    rng = np.random.default_rng(1)
    inputs = _draw(rng, "float32", q=(1, 1, 6, 4), k=(1, 1, 6, 4), v=(1, 1, 6, 3))
    inputs["v"][0, 0, 3, 1] = special
    inputs["v"][0, 0, 4, 1] = np.inf
    cotangents = _draw(rng, "float32", out=(1, 1, 6, 3))
    call = Call("attention", inputs, {"causal": True}, cotangents, "grad")
    reply, _ = _run("triton.flash", call)
    with np.errstate(invalid="ignore"):
        want = op("attention").forward(inputs, {"causal": True})["out"]
    got = reply.outputs["out"]
    assert (np.isnan(got) == np.isnan(want)).all()
    assert (np.isinf(got) == np.isinf(want)).all()
    assert (got[np.isinf(want)] == want[np.isinf(want)]).all()
    assert np.isfinite(reply.gradients["q"][:, :, :3]).all()


@pytest.mark.parametrize(
    ("name", "call"),
    [
        (
            "triton.softmax",
            Call("masked_softmax", {"scores": np.zeros((1, 1, 2))}, mode="grad"),
        ),
        (
            "triton.flash",
            Call("attention", dict.fromkeys("qkv", np.zeros((1, 1, 2, 2))), mode="grad"),
        ),
        (
            "triton.flash",
            Call(
                "attention", dict.fromkeys("qkv", np.zeros((1, 1, 2, 257), np.float32)), mode="grad"
            ),
        ),
    ],
    ids=["softmax of float64", "attention of float64", "attention of width 257"],
)
def test_what_the_kernels_do_not_take_is_unsupported(name: str, call: Call) -> None:
    reply, _ = _run(name, call)
    assert reply.failure is not None
    assert reply.failure.kind == "unsupported"


@pytest.mark.parametrize("reverse", [False, True])
def test_the_tree_of_a_recurrence_gives_what_its_steps_give(reverse: bool) -> None:
    factor = torch.tensor([[2.0, 3.0], [-1.0, 5.0], [4.0, 0.0], [0.5, 1.0]])
    added = torch.tensor([[1.0, 2.0], [3.0, -4.0], [5.0, 6.0], [-7.0, 8.0]])
    found = []
    for tree in (False, True):
        out = torch.zeros(4, 2)
        track[(1,)](factor, added, out, REVERSE=reverse, TREE=tree)
        found.append(out)
    assert torch.equal(*found)
    rows = (3, 2, 1, 0) if reverse else (0, 1, 2, 3)
    h = torch.zeros(2)
    for row in rows:
        h = factor[row] * h + added[row]
        assert torch.equal(found[0][row], h)
