"""Attention against torch in float64, and what must hold beside: heads, masks, offsets, edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.spec.arithmetic import Arithmetic
from assay.spec.attention import (
    attention,
    attention_weights,
    default_scale,
    expand_kv,
    flash_attention,
    kv_head,
    visible,
)
from assay.spec.attention_bounds import attention_bound
from tests.spec.cases import Case, cases, torch_attention

FLOAT64 = Arithmetic("float64", accumulate="float64", intermediate="float64", block=1)
RNG = np.random.default_rng(0)


def two_float64_bounds(case: Case) -> np.ndarray:
    """Both sides of a comparison are rounded in float64: each may be off by its bound."""
    return 2.0 * attention_bound(*case.arrays, arithmetic=FLOAT64, **case.rules)


@given(cases())
def test_output_agrees_with_torch(case: Case) -> None:
    want, _ = torch_attention(case)
    got = attention(*case.arrays, **case.rules)
    assert got.shape == want.shape
    assert (np.abs(got - want) <= two_float64_bounds(case)).all()


@given(cases(smallest=1))
def test_output_agrees_with_torch_sdpa(case: Case) -> None:
    mask, allowed = case.rules.get("mask"), torch.tensor(case.allowed)
    if mask is not None and mask.dtype != bool:
        allowed = torch.tensor(np.where(case.allowed, mask, -np.inf))
    q, k, v = (torch.tensor(x) for x in case.arrays)
    want = torch.nn.functional.scaled_dot_product_attention(
        q,
        k,
        v,
        attn_mask=allowed,
        scale=case.rules.get("scale"),
        enable_gqa=True,
    ).numpy()
    got = attention(*case.arrays, **case.rules)
    assert (np.abs(got - want) <= two_float64_bounds(case)).all()


@given(cases())
def test_visible_follows_the_rules_one_by_one(case: Case) -> None:
    rules = {name: rule for name, rule in case.rules.items() if name != "scale"}
    assert (visible(case.q, case.k, **rules) == case.allowed).all()


@given(cases(), st.integers(1, 8))
def test_tiled_form_agrees_for_every_block(case: Case, block: int) -> None:
    got = flash_attention(*case.arrays, block=block, **case.rules)
    want = attention(*case.arrays, **case.rules)
    assert (np.abs(got - want) <= two_float64_bounds(case)).all()


@given(cases())
def test_output_is_the_weights_applied_to_the_values(case: Case) -> None:
    weights = attention_weights(*case.arrays[:2], **case.rules)
    assert (weights[~case.allowed] == 0.0).all()
    want = weights @ expand_kv(case.v, case.q.shape[1])
    got = attention(*case.arrays, **case.rules)
    assert (np.abs(got - want) <= two_float64_bounds(case)).all()


@given(cases(smallest=1), st.sampled_from([np.nan, np.inf, -np.inf]))
def test_nonfinite_keys_and_values_that_nobody_sees_change_no_bit(
    case: Case, poison: float
) -> None:
    q, k, v = case.arrays
    clean = attention(q, k, v, **case.rules)
    spoiled = [np.where(case.unseen[..., None], poison, x) for x in (k, v)]
    with np.errstate(invalid="ignore"):
        got = attention(q, *spoiled, **case.rules)
    # A changed operand may send the product down another summation order: bits, or the bound.
    assert (np.abs(got - clean) <= two_float64_bounds(case)).all()


def test_nonfinite_value_reaches_the_rows_that_see_it_and_no_other() -> None:
    x = RNG.normal(size=(1, 1, 3, 2))
    for poison in (np.nan, np.inf):
        v = x.copy()
        v[0, 0, 1] = poison
        got = attention(x, x, v, causal=True)[0, 0]
        assert np.isfinite(got[0]).all()
        assert not np.isfinite(got[1:]).any()


def test_row_that_sees_nothing_is_zero() -> None:
    x = RNG.normal(size=(1, 2, 3, 2))
    got = attention(x, x, x, causal=True, offset=-2)
    assert not got[:, :, :2].any()
    assert got[:, :, 2].all()


@pytest.mark.parametrize("scale", [0.0, -1.0])
def test_scale_zero_means_and_scale_minus_one_prefers_the_least(scale: float) -> None:
    q = np.ones((1, 1, 1, 1))
    k = np.array([0.0, 50.0]).reshape(1, 1, 2, 1)
    v = np.array([1.0, 3.0]).reshape(1, 1, 2, 1)
    want = 2.0 if scale == 0.0 else 1.0
    assert attention(q, k, v, scale=scale).item() == want


def test_default_scale_is_one_over_the_root_of_the_width() -> None:
    q, k, v = (RNG.normal(size=(1, 1, 4, 9)) for _ in "qkv")
    assert (attention(q, k, v) == attention(q, k, v, scale=1.0 / 3.0)).all()
    assert default_scale(0) == 1.0


def test_grouped_heads_share_neighbouring_key_heads() -> None:
    q = RNG.normal(size=(2, 6, 3, 2))
    k, v = RNG.normal(size=(2, 2, 4, 2)), RNG.normal(size=(2, 2, 4, 5))
    got = attention(q, k, v)
    for h in range(6):
        alone = attention(q[:, [h]], k[:, [h // 3]], v[:, [h // 3]])
        assert np.max(np.abs(got[:, [h]] - alone)) <= 1e-15
    assert [kv_head(h, 6, 2) for h in range(6)] == [0, 0, 0, 1, 1, 1]


def test_chunks_at_their_offsets_make_the_full_run() -> None:
    q, k, v = (RNG.normal(size=(1, 2, 6, 3)) for _ in "qkv")
    whole = attention(q, k, v, causal=True, window=(3, None))
    for start in range(6):
        part = attention(q[:, :, start:], k, v, causal=True, window=(3, None), offset=start)
        assert np.max(np.abs(part - whole[:, :, start:])) <= 1e-15


@pytest.mark.parametrize(
    ("q", "k", "v"),
    [
        ((0, 2, 3, 4), (0, 2, 5, 4), (0, 2, 5, 1)),
        ((2, 0, 3, 4), (2, 0, 5, 4), (2, 0, 5, 1)),
        ((2, 2, 0, 4), (2, 2, 5, 4), (2, 2, 5, 1)),
        ((2, 2, 3, 4), (2, 1, 0, 4), (2, 1, 0, 1)),
        ((2, 2, 3, 0), (2, 1, 5, 0), (2, 1, 5, 1)),
        ((2, 2, 3, 4), (2, 1, 5, 4), (2, 1, 5, 0)),
    ],
)
def test_empty_axes_give_empty_or_zero_outputs(q: Any, k: Any, v: Any) -> None:
    got = attention(np.ones(q), np.ones(k), np.ones(v), causal=True)
    assert got.shape == (*q[:3], v[3])
    if k[2] == 0:
        assert not got.any()
    if q[3] == 0:
        assert (got == 1.0).all()


@pytest.mark.parametrize(
    ("q", "k", "v", "message"),
    [
        ((1, 2, 3), (1, 2, 3, 4), (1, 2, 3, 4), r"must have 4 axes"),
        ((1, 1, 3, 4), (1, 1, 3, 5), (1, 1, 3, 5), r"width of q \(4\) must equal width of k \(5\)"),
        ((1, 1, 3, 4), (1, 1, 3, 4), (1, 1, 2, 4), r"must equal those of v"),
        ((1, 1, 3, 4), (2, 1, 3, 4), (2, 1, 3, 4), r"batch of q \(1\) must equal batch of k"),
        ((1, 3, 3, 4), (1, 2, 3, 4), (1, 2, 3, 4), r"heads of q \(3\) must be a multiple"),
        ((1, 3, 3, 4), (1, 0, 3, 4), (1, 0, 3, 4), r"heads of q \(3\) must be a multiple"),
    ],
)
def test_shapes_that_do_not_fit_are_named(q: Any, k: Any, v: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        attention(np.zeros(q), np.zeros(k), np.zeros(v))
