"""Masked softmax, its gradient, and the two soft variants kept for contrast."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.spec.softmax import (
    masked_softmax,
    penalty_softmax,
    sentinel_softmax,
    softmax,
    softmax_backward,
)

EPS = np.finfo(np.float64).eps


@st.composite
def rows(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores, mask and cotangent [2, S], some rows with nothing allowed."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = (2, draw(st.integers(0, 9)))
    scores = rng.normal(size=shape) * draw(st.sampled_from([0.0, 1.0, 30.0, 1e4]))
    allowed = rng.random(shape) < draw(st.sampled_from([0.0, 0.3, 0.8, 1.0]))
    return scores, allowed, rng.normal(size=shape)


@given(rows())
def test_weights_agree_with_torch_where_a_key_is_allowed(
    case: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    scores, allowed, _ = case
    got = masked_softmax(scores, allowed)
    blocked = torch.tensor(scores).masked_fill(~torch.tensor(allowed), -torch.inf)
    want = torch.softmax(blocked, dim=-1).numpy()
    for row in range(2):
        if allowed[row].any():
            # Two exponentials, one sum and one quotient each: a few units of the greatest weight.
            assert np.max(np.abs(got[row] - want[row])) <= 2 * (scores.shape[1] + 4) * EPS
        else:
            assert not got[row].any()


@given(rows())
def test_blocked_entries_weigh_zero_and_change_nothing(
    case: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    scores, allowed, _ = case
    got = masked_softmax(scores, allowed)
    assert (got[~allowed] == 0.0).all()
    for poison in (np.nan, np.inf, -np.inf, 1e308):
        spoiled = np.where(allowed, scores, poison)
        assert masked_softmax(spoiled, allowed).tobytes() == got.tobytes()


@given(rows())
def test_rows_sum_to_one_or_to_zero(case: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    scores, allowed, _ = case
    mass = masked_softmax(scores, allowed).sum(axis=-1)
    assert np.max(np.abs(mass - allowed.any(axis=-1))) <= (scores.shape[1] + 2) * EPS


@given(rows())
def test_gradient_agrees_with_autograd_and_is_zero_where_blocked(
    case: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    scores, allowed, cotangent = case
    weights = masked_softmax(scores, allowed)
    got = softmax_backward(weights, cotangent, allowed)
    assert (got[~allowed] == 0.0).all()
    leaf = torch.tensor(scores, requires_grad=True)
    mask = torch.tensor(allowed)
    seen = mask.any(-1, keepdim=True)
    out = torch.softmax(leaf.masked_fill(~mask & seen, -torch.inf), dim=-1)
    (torch.where(seen, out, 0.0) * torch.tensor(cotangent)).sum().backward()
    assert leaf.grad is not None
    size = 1.0 + np.abs(cotangent).sum()
    assert np.max(np.abs(got - leaf.grad.numpy()), initial=0.0) <= 16 * EPS * size


def test_gradient_ignores_what_the_cotangent_holds_where_blocked() -> None:
    weights, allowed = np.array([1.0, 0.0]), np.array([True, False])
    got = softmax_backward(weights, np.array([2.0, np.nan]), allowed)
    assert got.tolist() == [0.0, 0.0]


def test_gradient_equals_the_central_difference() -> None:
    rng = np.random.default_rng(7)
    scores, cotangent = rng.normal(size=5), rng.normal(size=5)
    allowed = np.array([True, True, False, True, True])
    got = softmax_backward(masked_softmax(scores, allowed), cotangent, allowed)
    step = 2.0**-17
    for j in range(5):
        high, low = scores.copy(), scores.copy()
        high[j] += step
        low[j] -= step
        slope = (masked_softmax(high, allowed) - masked_softmax(low, allowed)) @ cotangent
        # Truncation is step^2 / 6 times a third derivative below 2 |g|; cancellation is eps / step.
        assert abs(got[j] - slope / (2 * step)) <= 1e-9


def test_unmasked_softmax_equals_a_mask_that_allows_everything() -> None:
    scores = np.random.default_rng(1).normal(size=(3, 4))
    assert (softmax(scores) == masked_softmax(scores, np.ones_like(scores, dtype=bool))).all()


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3)])
def test_empty_axes_give_empty_results(shape: tuple[int, ...]) -> None:
    got = masked_softmax(np.zeros(shape))
    assert got.shape == shape
    assert softmax_backward(got, np.zeros(shape)).shape == shape


def test_nan_in_an_allowed_score_reaches_its_own_row_only() -> None:
    got = masked_softmax(np.array([[np.nan, 1.0], [0.0, 0.0]]))
    assert np.isnan(got[0]).all()
    assert got[1].tolist() == [0.5, 0.5]


def test_finite_penalty_leaks_as_its_formula_says() -> None:
    scores, allowed = np.array([0.5, 1.5, -0.5, 2.0]), np.array([True, False, False, False])
    leaked = penalty_softmax(scores, allowed, 30.0)[3]
    assert abs(leaked / np.exp(-28.5) - 1) < 1e-11  # the row's mass exceeds 1 by about 4e-13


def test_sentinel_makes_an_empty_row_uniform() -> None:
    got = sentinel_softmax(np.array([1.0, 2.0, 3.0]), np.zeros(3, dtype=bool), -1e30)
    assert got.tolist() == [1 / 3] * 3
