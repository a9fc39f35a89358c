"""Integer terms: division is Python's for positive divisors."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import z3

from assay.proofs.evaluate import Evaluation
from assay.proofs.scalars.integers import Integer, euclid, whole
from assay.spec.scalars import at_most, maximum
from assay.spec.spatial.windows import extent

A, B = whole("a"), whole("b")


def test_arithmetic_and_order_are_those_of_python() -> None:
    terms = [A + B, A - 1, 2 - A, A * B, A // B, A % B, 7 // B, -A]
    order = [A < B, A <= B, A > B, A >= B, A <= 2]
    for a, b in itertools.product(range(-5, 6), range(1, 4)):
        value = Evaluation({"a": a, "b": b})
        want = [a + b, a - 1, 2 - a, a * b, a // b, a % b, 7 // b, -a]
        assert [value(t.term) for t in terms] == want
        assert [value(c.term) for c in order] == [a < b, a <= b, a > b, a >= b, a <= 2]


def test_a_quotient_obeys_euclid_for_every_positive_divisor() -> None:
    (known,) = euclid((A // B).term)
    solver = z3.Solver()
    solver.add(z3.Not(known.term), B.term == 3)
    assert solver.check() == z3.unsat
    assert list(euclid((A + B).term)) == []


def test_the_helpers_of_the_spec_keep_integers_symbolic() -> None:
    numbers = np.array([A, Integer(3)], dtype=object)
    assert [Evaluation({"a": 5})(c.term) for c in at_most(numbers, 4)] == [False, True]
    assert [Evaluation({"a": 5})(x.term) for x in maximum(numbers, numbers[::-1])] == [5, 5]
    m = extent(A, 3, B, 1)
    for a, b in itertools.product(range(6), range(1, 4)):
        assert Evaluation({"a": a, "b": b})(m.term) == extent(a, 3, b, 1)


def test_an_integer_has_no_exponential() -> None:
    with pytest.raises(TypeError, match="operation='exp'"):
        A.exp()


def test_division_by_zero_has_a_value_like_any_other_function() -> None:
    value = Evaluation({"a": 5, "b": 0})
    assert (value((A // B).term), value((A % B).term)) == (0, 0)


def test_a_remainder_obeys_euclid_for_every_positive_divisor() -> None:
    (known,) = euclid((A % B).term)
    solver = z3.Solver()
    solver.add(z3.Not(known.term), B.term == 3)
    assert solver.check() == z3.unsat
    assert Evaluation({"a": -5, "b": 3})(known.term)
