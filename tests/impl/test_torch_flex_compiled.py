"""Compiled FlexAttention: few kernels serve all shapes and rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from assay.impl.backends.torch_flex_compiled import TorchFlexCompiled
from assay.impl.call import Call
from assay.impl.protocol import Unavailable, Unsupported
from assay.impl.runner import execute
from assay.spec.attention import attention

# Inductor's own imports warn.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

PLAIN: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    # B, H, Hkv, L, S, D, Dv
    ((2, 2, 2, 5, 7, 8, 8), {}),
    ((1, 1, 1, 1, 1, 1, 1), {}),
    ((1, 3, 3, 5, 8, 8, 2), {"causal": True, "offset": 3}),
    ((2, 1, 1, 33, 130, 64, 20), {"causal": True, "window": (16, None), "offset": 97}),
    ((1, 2, 2, 130, 16, 3, 17), {"scale": -1.5}),
    ((3, 2, 2, 17, 18, 16, 4), {"window": (2, 1)}),
    ((1, 1, 1, 1, 520, 4, 4), {"scale": 0.0, "window": (None, 400)}),
    # These queries see no key.
    ((2, 2, 2, 40, 20, 8, 8), {"causal": True, "offset": -3}),
    ((1, 2, 2, 40, 20, 8, 8), {"window": (1, 1)}),
    ((2, 1, 1, 6, 6, 8, 8), {"causal": True, "offset": -9}),
]
"""Shapes and rules that share a kernel."""

GROUPED: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((2, 4, 2, 5, 7, 8, 8), {"causal": True, "offset": 2}),
    ((1, 6, 2, 33, 40, 16, 5), {"window": (7, 0), "scale": 0.125}),
    ((2, 8, 2, 1, 17, 1, 64), {}),
]
"""The same with fewer key heads, which share another."""


def _inputs(shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    batch, heads, pairs, queries, keys, width, out = shape
    rng = np.random.default_rng(0)
    shapes = {
        "q": (batch, heads, queries, width),
        "k": (batch, pairs, keys, width),
        "v": (batch, pairs, keys, out),
    }
    return {n: rng.standard_normal(s).astype(np.float32) for n, s in shapes.items()}


@pytest.mark.slow
@pytest.mark.parametrize("cases", [PLAIN, GROUPED], ids=["plain", "grouped"])
def test_one_kernel_serves_shapes_and_rules_and_is_what_runs(
    cases: list[tuple[tuple[int, ...], dict[str, Any]]],
) -> None:
    backend = _backend()
    torch.compiler.reset()
    graphs = torch._dynamo.utils.counters["stats"]
    before = graphs["unique_graphs"]
    for shape, attributes in cases:
        inputs = _inputs(shape)
        call = Call("attention", inputs, attributes, mode="no_grad", witness=True)
        (reply,) = execute(backend, [call])

        assert reply.failure is None, reply.failure
        wide: dict[str, Any] = {n: x.astype(np.float64) for n, x in inputs.items()}
        due = attention(**wide, **attributes)
        assert reply.outputs["out"] == pytest.approx(due, abs=4e-6), (shape, attributes)
        assert any("CompiledFxGraph" in kernel for kernel in reply.hygiene.kernels)
        assert graphs["unique_graphs"] == before + 1, (shape, attributes)


def test_a_mask_is_refused() -> None:
    q, k, v = (torch.ones(1, 1, 3, 2) for _ in range(3))
    with pytest.raises(Unsupported, match="no mask"):
        _backend().attention(q, k, v, mask=torch.ones(3, 3, dtype=torch.bool))


@pytest.mark.parametrize("empty", ["q", "k", "v"])
def test_an_empty_axis_is_refused(empty: str) -> None:
    queries, keys, out = (n != empty for n in "qkv")
    q, k, v = (torch.ones(1, 1, *s) for s in ((queries, 2), (keys, 2), (keys, out)))
    with pytest.raises(Unsupported, match="no empty axis"):
        _backend().attention(q, k, v)


def test_gradients_are_not_offered() -> None:
    assert not _backend().differentiates("attention")


def _backend() -> TorchFlexCompiled:
    try:
        return TorchFlexCompiled()
    except Unavailable as absent:
        pytest.skip(str(absent))
