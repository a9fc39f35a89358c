"""Masks: who may see whom."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.spec.masks import (
    bottom_right_offset,
    causal_mask,
    combine,
    future_mask,
    key_padding_mask,
    window_mask,
)

SIZES = st.integers(0, 9)
OFFSETS = st.integers(-12, 12)


@given(SIZES, SIZES, OFFSETS)
def test_causal_mask_follows_its_definition(queries: int, keys: int, offset: int) -> None:
    want = [[j <= offset + i for j in range(keys)] for i in range(queries)]
    assert causal_mask(queries, keys, offset).tolist() == want


@given(SIZES, SIZES, OFFSETS)
def test_future_mask_is_the_complement(queries: int, keys: int, offset: int) -> None:
    assert (causal_mask(queries, keys, offset) ^ future_mask(queries, keys, offset)).all()


@given(SIZES, SIZES, OFFSETS, st.none() | st.integers(0, 9), st.none() | st.integers(0, 9))
def test_window_mask_follows_its_definition(
    queries: int, keys: int, offset: int, left: int | None, right: int | None
) -> None:
    got = window_mask(queries, keys, offset, left, right)
    for i in range(queries):
        for j in range(keys):
            distance = j - (offset + i)
            inside = (left is None or -distance <= left) and (right is None or distance <= right)
            assert got[i, j] == inside


@given(SIZES, st.integers(1, 9))
def test_chunk_at_an_offset_sees_what_the_full_run_sees(start: int, queries: int) -> None:
    total = start + queries
    assert (causal_mask(queries, total, start) == causal_mask(total, total)[start:]).all()


def test_window_without_future_is_causal() -> None:
    assert (window_mask(5, 7, 1, None, 0) == causal_mask(5, 7, 1)).all()


@pytest.mark.parametrize(("queries", "keys"), [(1, 4), (4, 1), (3, 3), (0, 2)])
def test_bottom_right_offset_shows_the_last_key_to_the_last_query(queries: int, keys: int) -> None:
    mask = causal_mask(queries, keys, bottom_right_offset(queries, keys))
    if queries:
        assert mask[-1].all()
        assert (queries == 1) or not mask[-2, -1]


def test_negative_offset_blocks_the_first_rows_wholly() -> None:
    assert causal_mask(3, 3, -2).astype(int).tolist() == [[0, 0, 0], [0, 0, 0], [1, 0, 0]]


def test_key_padding_mask_broadcasts_over_heads_and_queries() -> None:
    mask = key_padding_mask(np.array([0, 2, 5]), 4)
    assert mask.shape == (3, 1, 1, 4)
    assert mask.sum(axis=-1).ravel().tolist() == [0, 2, 4]


def test_combine_is_a_conjunction_with_none_neutral() -> None:
    first, second = causal_mask(3, 3), window_mask(3, 3, 0, 1, 1)
    both = combine(None, first, None, second)
    assert both is not None
    assert (both == (first & second)).all()
    assert combine(first) is first
    assert combine() is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: causal_mask(-1, 2), r"queries=-1 and keys=2 must not be negative"),
        (
            lambda: window_mask(2, 2, 0, -1, None),
            r"left=-1 must be None \(unlimited\) or at least 0",
        ),
        (lambda: window_mask(2, 2, 0, None, -3), r"right=-3 must be"),
    ],
)
def test_bad_sizes_are_named(call: object, message: str) -> None:
    assert callable(call)
    with pytest.raises(ValueError, match=message):
        call()
