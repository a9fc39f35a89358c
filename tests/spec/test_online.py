"""The block-wise recurrence gives what the direct form gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.spec.online import (
    online_attend,
    online_finish,
    online_merge,
    online_softmax,
    online_start,
    online_step,
)
from assay.spec.softmax import masked_softmax

EPS = np.finfo(np.float64).eps


@st.composite
def rows(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores and mask [2, S], values [2, S, 3]; whole leading blocks may be blocked."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    keys = draw(st.integers(0, 10))
    scores = rng.normal(size=(2, keys)) * draw(st.sampled_from([0.0, 1.0, 20.0]))
    allowed = rng.random((2, keys)) < draw(st.sampled_from([0.0, 0.3, 1.0]))
    allowed[:, : draw(st.integers(0, keys))] &= draw(st.booleans())
    return scores, allowed, rng.normal(size=(2, keys, 3))


def limit(scores: np.ndarray, values: np.ndarray) -> float:
    """Roundings of both forms: each factor exp(m - m') is off by eps |m - m'| besides its own."""
    span = np.ptp(scores) if scores.size else 0.0
    return float((4 * scores.shape[-1] + 8 + span) * EPS * np.max(np.abs(values), initial=1.0))


@given(rows(), st.integers(1, 11))
def test_every_block_size_gives_the_direct_form(
    case: tuple[np.ndarray, np.ndarray, np.ndarray], block: int
) -> None:
    scores, allowed, values = case
    weights = masked_softmax(scores, allowed)
    want = np.einsum("rs,rsw->rw", weights, values)
    got = online_attend(scores, allowed, values, block)
    assert np.max(np.abs(got - want), initial=0.0) <= limit(scores, values)
    close = np.abs(online_softmax(scores, allowed, block) - weights) <= limit(scores, np.ones(1))
    assert close.all()


@given(rows(), st.integers(0, 10))
def test_merging_two_halves_equals_reading_on(
    case: tuple[np.ndarray, np.ndarray, np.ndarray], cut: int
) -> None:
    scores, allowed, values = case
    start = online_start((2,), 3, scores)
    left = online_step(start, scores[:, :cut], allowed[:, :cut], values[:, :cut])
    right = online_step(start, scores[:, cut:], allowed[:, cut:], values[:, cut:])
    on = online_step(left, scores[:, cut:], allowed[:, cut:], values[:, cut:])
    for merged in (online_merge(left, right), online_merge(right, left)):
        gap = np.abs(online_finish(merged) - online_finish(on))
        assert np.max(gap) <= limit(scores, values)


def test_leading_empty_blocks_leave_no_trace() -> None:
    scores, values = np.array([1e3, 5.0, 1.0, 2.0]), np.eye(4)
    allowed = np.array([False, False, True, True])
    got = online_attend(scores, allowed, values, block=1)
    assert got[:2].tolist() == [0.0, 0.0]
    assert np.max(np.abs(got - masked_softmax(scores, allowed))) <= 4 * EPS


def test_no_key_at_all_gives_zeros() -> None:
    assert (
        online_attend(np.zeros((2, 0)), np.zeros((2, 0), bool), np.zeros((2, 0, 3)), 4).tolist()
        == [[0.0] * 3] * 2
    )


def test_block_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="block=0 must be at least 1"):
        online_attend(np.zeros(2), np.ones(2, bool), np.zeros((2, 1)), 0)
