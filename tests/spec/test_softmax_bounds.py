"""The error bounds of masked softmax hold, and errors of a percent exceed them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.spec.arithmetic import Arithmetic
from assay.spec.softmax import masked_softmax, softmax_backward
from assay.spec.softmax_bounds import softmax_backward_bound, softmax_bound
from tests.spec.rounded import DTYPES, ORDERS, Sum

ARITHMETICS = {
    "float32": Arithmetic("float32", "float32", "float32", exp_ulps=1.0),
    "bfloat16 in float32": Arithmetic("bfloat16", "float32", "float32", exp_ulps=1.0),
    "bfloat16 throughout": Arithmetic("bfloat16", "bfloat16", "bfloat16", exp_ulps=1.0),
}
each_arithmetic = pytest.mark.parametrize(
    "arithmetic", ARITHMETICS.values(), ids=ARITHMETICS.keys()
)
Rows = tuple[np.ndarray, np.ndarray, np.ndarray]


@st.composite
def rows(draw: st.DrawFn) -> Rows:
    """Scores, mask and cotangent [3, S]."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = (3, draw(st.integers(0, 40)))
    scores = rng.normal(size=shape) * draw(st.sampled_from([0.0, 1.0, 10.0, 100.0]))
    scores += draw(st.sampled_from([0.0, 1000.0]))
    return (
        scores,
        rng.random(shape) < draw(st.sampled_from([0.0, 0.5, 1.0])),
        rng.normal(size=shape),
    )


def stored(x: np.ndarray, arithmetic: Arithmetic) -> np.ndarray:
    return x.astype(DTYPES[arithmetic.storage]).astype(np.float64)


def rounded_weights(
    scores: np.ndarray, allowed: np.ndarray, arithmetic: Arithmetic, order: Sum
) -> np.ndarray:
    """Weights in the accumulation format."""
    kind = DTYPES[arithmetic.accumulate]
    s = scores.astype(kind)
    top = np.max(s, axis=-1, keepdims=True, where=allowed, initial=-np.inf)
    top = np.where(allowed.any(axis=-1, keepdims=True), top, 0).astype(kind)
    shifted = np.where(allowed, (s - top).astype(np.longdouble), -np.inf)
    raised = np.exp(shifted).astype(kind)
    mass = order(raised)[..., None]
    return raised / np.where(mass == 0, np.ones_like(mass), mass)


@each_arithmetic
@pytest.mark.parametrize("order", ORDERS)
@given(case=rows())
@settings(max_examples=60)
def test_bounds_hold(arithmetic: Arithmetic, order: str, case: Rows) -> None:
    scores, cotangent = (stored(x, arithmetic) for x in (case[0], case[2]))
    allowed = case[1]
    weights = rounded_weights(scores, allowed, arithmetic, ORDERS[order])
    gap = np.abs(stored(weights, arithmetic) - masked_softmax(scores, allowed))
    assert (gap <= softmax_bound(scores, allowed, arithmetic)).all()

    g = cotangent.astype(weights.dtype)
    raw = weights * (
        g - ORDERS[order](np.where(allowed, g * weights, 0).astype(g.dtype))[..., None]
    )
    got = stored(np.where(allowed, raw, 0), arithmetic)
    want = softmax_backward(masked_softmax(scores, allowed), cotangent, allowed)
    bound = softmax_backward_bound(scores, cotangent, allowed, arithmetic)
    assert (np.abs(got - want) <= bound).all()


@pytest.mark.parametrize("name", ["float32", "bfloat16 in float32"])
def test_scores_one_percent_off_exceed_the_bounds(name: str) -> None:
    arithmetic = ARITHMETICS[name]
    rng = np.random.default_rng(5)
    scores, cotangent = (stored(rng.normal(size=(4, 32)) * 3, arithmetic) for _ in range(2))
    allowed = np.ones_like(scores, dtype=bool)
    want, wrong = masked_softmax(scores), masked_softmax(scores * 1.01)
    gap = np.abs(wrong - want) / softmax_bound(scores, allowed, arithmetic)
    assert np.max(gap) > 1.5
    slope = np.abs(softmax_backward(wrong, cotangent) - softmax_backward(want, cotangent))
    assert np.max(slope / softmax_backward_bound(scores, cotangent, allowed, arithmetic)) > 1.5


@each_arithmetic
def test_blocked_entries_have_bound_zero(arithmetic: Arithmetic) -> None:
    scores, allowed = np.array([1.0, np.nan, 2.0]), np.array([True, False, True])
    bound = softmax_bound(scores, allowed, arithmetic)
    assert (bound == 0.0).tolist() == [False, True, False]


def test_a_coarser_contract_gets_a_wider_bound() -> None:
    scores = np.random.default_rng(2).normal(size=8)
    widths = [softmax_bound(scores, None, a).max() for a in ARITHMETICS.values()]
    assert widths == sorted(widths)
    assert widths[0] < widths[-1] / 1000
    exact = softmax_bound(scores, None, Arithmetic(exp_ulps=0.5)).max()
    assert exact < softmax_bound(scores, None, Arithmetic(exp_ulps=20.0)).max()
