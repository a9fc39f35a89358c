"""Gradients of attention against autograd, finite differences and what must be zero."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.spec.arithmetic import Arithmetic
from assay.spec.attention import attention, attention_backward
from assay.spec.attention_bounds import attention_backward_bound
from tests.spec.cases import Case, cases, torch_attention

FLOAT64 = Arithmetic("float64", accumulate="float64", intermediate="float64")
RNG = np.random.default_rng(0)


@given(cases())
def test_gradients_agree_with_autograd(case: Case) -> None:
    _, want = torch_attention(case)
    got = attention_backward(*case.arrays, case.cotangent, **case.rules)
    bound = attention_backward_bound(*case.arrays, case.cotangent, arithmetic=FLOAT64, **case.rules)
    for name in "qkv":
        gap = np.abs(getattr(got, name) - want[name])
        assert (gap <= 2.0 * getattr(bound, name)).all(), name


def central_difference(case: Case, name: str, step: float) -> np.ndarray:
    """Slope of sum(O * cotangent) along each entry of one input."""
    arrays = dict(zip("qkv", case.arrays, strict=True))
    slope = np.zeros_like(arrays[name])
    for index in np.ndindex(slope.shape):
        ends = []
        for sign in (1.0, -1.0):
            moved = arrays[name].copy()
            moved[index] += sign * step
            q, k, v = (moved if n == name else arrays[n] for n in "qkv")
            out = attention(q, k, v, **case.rules)
            ends.append((out * case.cotangent).sum())
        slope[index] = (ends[0] - ends[1]) / (2 * step)
    return slope


@pytest.mark.parametrize(
    "rules",
    [
        {},
        {"causal": True, "offset": -1},
        {"window": (1, 1), "scale": -0.7},
        {"mask": np.array([[True, False, True], [False, False, False]])},
        {"mask": np.array([[0.5, -np.inf, -1.0], [0.0, 2.0, -np.inf]])},
    ],
    ids=["plain", "causal", "window", "bool", "additive"],
)
def test_gradients_equal_central_differences(rules: dict[str, Any]) -> None:
    q, k = RNG.normal(size=(1, 4, 2, 3)), RNG.normal(size=(1, 2, 3, 3))
    v, cotangent = RNG.normal(size=(1, 2, 3, 2)), RNG.normal(size=(1, 4, 2, 2))
    case = Case(q, k, v, cotangent, rules)
    got = attention_backward(q, k, v, cotangent, **rules)
    for name in "qkv":
        # The error of a central difference falls as step^2: two steps tell it from a wrong slope.
        wide, narrow = (central_difference(case, name, step) for step in (2.0**-8, 2.0**-10))
        extrapolated = (16.0 * narrow - wide) / 15.0
        assert np.max(np.abs(getattr(got, name) - extrapolated)) <= 1e-9, name


@given(cases(smallest=1))
def test_keys_that_no_query_sees_get_gradient_zero(case: Case) -> None:
    got = attention_backward(*case.arrays, case.cotangent, **case.rules)
    assert (got.k[case.unseen] == 0.0).all()
    assert (got.v[case.unseen] == 0.0).all()
    assert (got.q[case.blind] == 0.0).all()


@given(cases(smallest=1), st.sampled_from([np.nan, np.inf]))
def test_nonfinite_rows_that_nobody_sees_leave_gradients_as_they_are(
    case: Case, poison: float
) -> None:
    q, k, v = case.arrays
    unseen, blind = case.unseen[..., None], case.blind[..., None]
    clean = attention_backward(q, k, v, case.cotangent, **case.rules)
    with np.errstate(invalid="ignore"):
        got = attention_backward(
            q,
            np.where(unseen, poison, k),
            np.where(unseen, poison, v),
            np.where(blind, poison, case.cotangent),
            **case.rules,
        )
    bound = attention_backward_bound(q, k, v, case.cotangent, arithmetic=FLOAT64, **case.rules)
    for name in "qkv":
        gap = np.abs(getattr(got, name) - getattr(clean, name))
        assert (gap <= 2.0 * getattr(bound, name)).all(), name


def test_value_gradient_keeps_the_mass_of_the_cotangent() -> None:
    q, k, v = (RNG.normal(size=(2, 3, 5, 4)) for _ in "qkv")
    cotangent = RNG.normal(size=(2, 3, 5, 4))
    got = attention_backward(q, k, v, cotangent, causal=True).v
    assert np.max(np.abs(got.sum(axis=2) - cotangent.sum(axis=2))) <= 1e-14


def test_grouped_key_heads_collect_from_all_their_query_heads() -> None:
    q, cotangent = RNG.normal(size=(1, 4, 3, 2)), RNG.normal(size=(1, 4, 3, 2))
    k, v = RNG.normal(size=(1, 2, 3, 2)), RNG.normal(size=(1, 2, 3, 2))
    shared = attention_backward(q, k, v, cotangent)
    wide = attention_backward(q, k.repeat(2, axis=1), v.repeat(2, axis=1), cotangent)
    for name in "kv":
        collected = getattr(wide, name).reshape(1, 2, 2, 3, 2).sum(axis=2)
        assert np.max(np.abs(getattr(shared, name) - collected)) <= 1e-15


@pytest.mark.parametrize("empty", ["queries", "keys", "width"])
def test_empty_axes_give_gradients_of_the_inputs_shapes(empty: str) -> None:
    queries, keys, width = (0 if empty == n else 3 for n in ("queries", "keys", "width"))
    q, k, v = (
        np.ones((1, 2, queries, width)),
        np.ones((1, 1, keys, width)),
        np.ones((1, 1, keys, 2)),
    )
    got = attention_backward(q, k, v, np.ones((1, 2, queries, 2)))
    assert (got.q.shape, got.k.shape, got.v.shape) == (q.shape, k.shape, v.shape)
    assert all(np.isfinite(g).all() for g in got)
