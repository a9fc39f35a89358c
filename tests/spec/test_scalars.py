"""The same functions run on machine numbers and on exact ones."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.spec.attention import expand_kv
from assay.spec.contraction import contract
from assay.spec.masks import causal_mask
from assay.spec.scalars import (
    any_of,
    at_most,
    count,
    is_symbolic,
    maximum,
    row_max,
    select,
    total,
)

fractions = st.builds(Fraction, st.integers(-50, 50), st.integers(1, 6))


def exact(values: Any) -> np.ndarray:
    return np.asarray(values, dtype=object)


class Term:
    """A condition that is not known yet: it writes down what is asked of it."""

    def __init__(self, text: str) -> None:
        self.text = text

    def select(self, yes: Any, no: Any) -> str:
        return f"if {self.text} then {yes} else {no}"


def test_only_object_arrays_are_symbolic() -> None:
    assert is_symbolic(exact([Fraction(1)]))
    assert not is_symbolic(np.zeros(1))
    assert not is_symbolic(np.zeros(1, dtype=bool))


def test_select_asks_a_condition_that_is_a_term() -> None:
    got = select(exact([Term("a"), True]), exact([1, 2]), exact([3, 4]))
    assert got.tolist() == ["if a then 1 else 3", 2]


@given(st.lists(fractions, min_size=0, max_size=6))
def test_total_is_exact_over_fractions(values: list[Fraction]) -> None:
    assert total(exact(values)).tolist() == [sum(values)]


@given(st.lists(st.tuples(fractions, fractions), min_size=1, max_size=6))
def test_at_most_compares_elementwise(pairs: list[tuple[Fraction, Fraction]]) -> None:
    a, b = (exact([pair[i] for pair in pairs]) for i in (0, 1))
    assert at_most(a, b).tolist() == [x <= y for x, y in pairs]


def test_any_of_keeps_the_axis() -> None:
    condition = np.array([[True, False], [False, False]])
    for form in (condition, condition.astype(object)):
        assert any_of(form).tolist() == [[True], [False]]


def test_scalars_without_an_order_have_maximum_zero() -> None:
    row = exact([Fraction(1), Fraction(5)])
    assert row_max(row, np.array([True, True])).tolist() == [0]
    assert maximum(row, row).tolist() == [0, 0]


class Ordered(Fraction):
    """A fraction that offers ``maximum``."""

    def maximum(self, other: Ordered) -> Ordered:
        return max(self, other)


@given(st.lists(st.tuples(st.integers(-9, 9), st.booleans()), min_size=1, max_size=6))
def test_row_max_of_ordered_scalars_is_that_of_floats(pairs: list[tuple[int, bool]]) -> None:
    allowed = np.array([ok for _, ok in pairs])
    numbers = np.array([float(x) for x, _ in pairs])
    terms = exact([Ordered(x) for x, _ in pairs])
    assert float(row_max(terms, allowed)[0]) == row_max(numbers, allowed)[0]


def test_row_max_never_reads_blocked_scores() -> None:
    scores, allowed = np.array([np.nan, 1.0, np.inf]), np.array([False, True, False])
    assert row_max(scores, allowed).tolist() == [1.0]


@given(st.integers(0, 2**32 - 1), st.sampled_from([0, 1, 4]))
def test_contraction_is_exact_over_fractions(seed: int, keys: int) -> None:
    rng = np.random.default_rng(seed)
    weights, values = rng.integers(-8, 9, (2, 3, keys)), rng.integers(-8, 9, (2, keys, 2))
    allowed = causal_mask(3, keys, 1)
    got = contract(exact(weights) * Fraction(1, 3), allowed, exact(values) * Fraction(1, 5))
    assert got.shape == (2, 3, 2)
    for b, i, w in np.ndindex(got.shape):
        terms = (
            Fraction(int(weights[b, i, j]) * int(values[b, j, w]), 15)
            for j in range(keys)
            if allowed[i, j]
        )
        assert got[b, i, w] == sum(terms)


def test_contraction_ignores_blocked_rows_that_are_not_finite() -> None:
    weights, allowed = np.array([[0.0, 1.0]]), np.array([[False, True]])
    for poison in (np.nan, np.inf):
        assert contract(weights, allowed, np.array([[poison], [3.0]])).tolist() == [[3.0]]
    assert np.isnan(contract(weights, ~allowed, np.array([[np.nan], [3.0]]))).all()


@pytest.mark.parametrize("kind", [np.float32, object])
def test_expanding_heads_keeps_the_kind_of_scalar(kind: type) -> None:
    x: np.ndarray = np.arange(4).reshape(1, 2, 2, 1).astype(kind)
    got = expand_kv(x, 6)
    assert got.dtype == kind
    assert got[0, :, 0, 0].tolist() == [0, 0, 0, 2, 2, 2]


class Stretch:
    """Stands for some entries of the last axis."""

    def count(self) -> int:
        return 5


def test_entries_are_counted_and_none_counts_as_one() -> None:
    assert count(np.zeros((2, 3))) == 3
    assert count(np.zeros((2, 0))) == 1
    assert count(exact([[Fraction(1), Fraction(2)]])) == 2
    assert count(exact([])) == 1
    assert count(exact([Stretch(), Fraction(1)])) == 6
