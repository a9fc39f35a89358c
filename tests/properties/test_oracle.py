"""The oracle is tested by enclosure: a wrong reference is noticed, a right one is not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from assay.impl.backends.numpy_float32 import NumpyFloat32
from assay.properties import oracle, reference
from assay.properties.campaign import run_backend
from assay.properties.context import NUMPY_DTYPES, Context
from assay.spec import ops

RNG = np.random.default_rng(0)


def _context(name: str, dtype: str) -> Context:
    return Context(ops.op(name), NumpyFloat32.contract, dtype, "default", None, True)


def _inputs(name: str, dtype: str) -> dict[str, np.ndarray]:
    kind = NUMPY_DTYPES[dtype]
    if name == "masked_softmax":
        mask = RNG.random((2, 3, 5)) < 0.5
        return {"scores": (8 * RNG.standard_normal((2, 3, 5))).astype(kind), "mask": mask}
    shapes = {"q": (1, 2, 4, 3), "k": (1, 1, 5, 3), "v": (1, 1, 5, 3)}
    bias = np.where(RNG.random((4, 5)) < 0.5, RNG.standard_normal((4, 5)), -np.inf)
    arrays = {n: RNG.standard_normal(shape).astype(kind) for n, shape in shapes.items()}
    return {**arrays, "mask": bias[None, None].astype(kind)}


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name", ["masked_softmax", "attention"])
def test_the_reference_lies_in_its_enclosure_and_a_wrong_one_does_not(
    name: str, dtype: str
) -> None:
    ctx, inputs = _context(name, dtype), _inputs(name, dtype)
    want = reference.values(ctx, inputs, {})
    bound = reference.bounds(ctx, inputs, {})
    output = next(iter(want))

    assert oracle.disagreement(ctx, inputs, {}, want, bound) == ""
    moved = want[output] + 2 * oracle.SHARE * bound[output]
    wrong = {output: np.where(bound[output] > 0, moved, want[output])}
    assert "enclosure" in oracle.disagreement(ctx, inputs, {}, wrong, bound)


def test_what_no_input_reaches_is_a_number_too() -> None:
    ctx = _context("causal_conv1d", "float32")
    inputs = {"x": np.ones((1, 2, 3), np.float32), "weight": np.ones((7, 3), np.float32)}
    want, bound = reference.values(ctx, inputs, {}), reference.bounds(ctx, inputs, {})
    assert want["history"].shape == (1, 6, 3)  # of which 4 are before the first step: zeros
    assert oracle.disagreement(ctx, inputs, {}, want, bound) == ""
    wrong = {**want, "history": want["history"] + 1}
    assert "history[0,0,0]" in oracle.disagreement(ctx, inputs, {}, wrong, bound)


def test_inputs_that_are_large_or_not_finite_are_left_out() -> None:
    assert oracle.affordable({"q": np.ones(4), "mask": np.array([0.0, -np.inf])})
    assert not oracle.affordable({"q": np.ones(oracle.LARGEST + 1)})
    assert not oracle.affordable({"q": np.array([np.inf])})


def test_a_campaign_with_a_wrong_oracle_says_so_and_gives_no_verdict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = reference.values

    def wrong(*arguments: Any) -> dict[str, np.ndarray]:
        return {n: w * (1 + 1e-9) for n, w in right(*arguments).items()}

    monkeypatch.setattr(reference, "values", wrong)
    backend = NumpyFloat32()
    backend.contract = replace(backend.contract, dtypes=("float64",))
    result = run_backend(backend, claims=("softmax.refines",))

    assert [c.verdict for c in result.cells] == ["inconclusive"]
    assert "the oracle is wrong" in result.cells[0].reason


def test_a_campaign_tests_its_oracle() -> None:
    result = run_backend(NumpyFloat32(), claims=("*.refines",), dtypes=("float32",))

    assert all(cell.rejudged >= 1 for cell in result.cells)
