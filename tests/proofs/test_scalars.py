"""The interpretations compute what the spec computes on floats."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import sympy
import z3

from assay.proofs.scalars.balls import Ball, precision
from assay.proofs.scalars.duals import Dual
from assay.proofs.scalars.opaque import opaque
from assay.proofs.scalars.rationals import Rational, array
from assay.proofs.scalars.reals import Real
from assay.proofs.scalars.rounded import Rounded
from assay.proofs.scalars.symbols import Symbolic
from assay.spec.attention import attention, attention_backward, flash_attention
from assay.spec.recurrent.rnn import rnn
from assay.spec.softmax import masked_softmax, softmax_backward

SCORES = [[0.5, -1.0, 2.0, 0.25], [3.0, 3.0, -2.0, 1.0], [1.0, 2.0, 3.0, 4.0]]
MASK = np.array([[1, 1, 0, 1], [0, 1, 1, 1], [0, 0, 0, 0]], dtype=bool)


def test_balls_hold_the_float_value_of_masked_softmax() -> None:
    floats = masked_softmax(np.array(SCORES), MASK)
    with precision(100):
        balls = masked_softmax(array(SCORES, Ball), MASK)
        assert all(
            Ball(b).distance(f) < 1e-15 for b, f in zip(balls.flat, floats.flat, strict=True)
        )


def test_a_ball_does_not_contain_a_neighbouring_float() -> None:
    with precision(100):
        third = Ball(1) / 3
    assert not third.contains(1 / 3)
    assert third.distance(1 / 3) < 2e-17


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
def test_rounded_scalars_stay_near_the_float_value(name: str) -> None:
    floats = masked_softmax(np.array(SCORES), MASK)
    rounded = masked_softmax(array(SCORES, lambda x: Rounded(x, name)), MASK)
    got = np.array([getattr(x, "value", x) for x in rounded.flat])
    assert np.allclose(got, floats.ravel(), atol=1e-2)
    assert name == "float32" or not np.array_equal(got, floats.ravel())


def test_rationals_sum_to_exactly_one() -> None:
    weights = masked_softmax(array([[1, 0, 3, -2]]), np.array([[True, True, True, False]]))
    assert sum(weights[0], Rational(0)) == 1
    assert weights[0, 1] == Rational(1) / 11


def test_a_rational_has_no_exponential_of_a_fraction() -> None:
    with pytest.raises(ValueError, match="exp of 1/2 is not rational"):
        Rational(0.5).exp()


def test_symbols_give_the_formula() -> None:
    s = sympy.symbols("s:2")
    weights = masked_softmax(_symbols(s), np.ones(2, bool))
    want = sympy.exp(s[0]) / (sympy.exp(s[0]) + sympy.exp(s[1]))
    assert sympy.simplify(weights[0].value - want) == 0


def _symbols(names: tuple[sympy.Symbol, ...]) -> np.ndarray:
    result = np.empty(len(names), dtype=object)
    result[:] = [Symbolic(n) for n in names]
    return result


def test_balls_hold_attention_its_tiles_and_its_gradients() -> None:
    draw = np.random.default_rng(0)
    q, k, v, g = (draw.normal(size=(1, 2, n, 2)) for n in (3, 4, 4, 3))
    with precision(100):
        bq, bk, bv, bg = (array(x, Ball) for x in (q, k, v, g))
        want = attention(q, k, v, causal=True, offset=1)
        for got in (
            attention(bq, bk, bv, causal=True, offset=1),
            flash_attention(bq, bk, bv, block=3, causal=True, offset=1),
        ):
            assert _far(got, want) < 1e-14
        grads = attention_backward(q, k, v, g, causal=True, offset=1)
        balls = attention_backward(bq, bk, bv, bg, causal=True, offset=1)
        assert all(_far(b, f) < 1e-13 for b, f in zip(balls, grads, strict=True))


def _far(balls: np.ndarray, floats: np.ndarray) -> float:
    return max(Ball(b).distance(f) for b, f in zip(balls.flat, floats.flat, strict=True))


def test_softmax_backward_of_balls() -> None:
    w, g = np.array([0.25, 0.75, 0.0]), np.array([1.0, -2.0, 5.0])
    allowed = np.array([True, True, False])
    with precision(100):
        got = softmax_backward(array(w, Ball), array(g, Ball), allowed)
        assert _far(got, softmax_backward(w, g, allowed)) < 1e-15


def test_balls_of_smooth_functions_hold_the_float_value() -> None:
    with precision(100):
        assert Ball(0.5).tanh().distance(math.tanh(0.5)) < 1e-15
        assert Ball(0.5).log1p().distance(math.log1p(0.5)) < 1e-15
        assert Ball(0.5).apart(Ball(0.25))


def test_a_wide_ball_does_not_say_on_which_side_it_lies() -> None:
    with precision(20):
        nought = (Ball(1) / 3) * 3 - 1
    assert Ball(-1) <= 0
    assert not Ball(1) <= 0
    with pytest.raises(ValueError, match="too wide to tell"):
        assert nought <= 0


def test_a_cell_runs_in_an_unknown_arithmetic() -> None:
    names = iter(range(99))
    make: Any = np.frompyfunc(lambda _: opaque(f"v{next(names)}"), 1, 1)
    run = rnn(*(make(np.zeros(shape)) for shape in ((1, 1, 1), (1, 2), (1,))))
    assert run.h[0, 0].term.decl().name() == "op tanh"
    assert (opaque("x") <= 0).term.decl().name() == "op at most"
    assert opaque("x").log1p().term.decl().name() == "op log1p"


def test_symbols_compare_where_their_signs_decide() -> None:
    x, t = Symbolic(sympy.Symbol("x", real=True)), Symbolic(sympy.Symbol("t", positive=True))
    share = 1 / (1 + t)
    assert 0 <= share <= 1
    assert share < 1
    assert not t <= 0
    with pytest.raises(ValueError, match="x <= 0 is not decided"):
        assert x <= 0


def test_symbols_offer_the_smooth_functions_of_the_spec() -> None:
    names = ("log", "log1p", "sqrt", "tanh", "erf", "atan")
    want = (math.log, math.log1p, math.sqrt, math.tanh, math.erf, math.atan)
    for name, f in zip(names, want, strict=True):
        got = getattr(Symbolic(sympy.Rational(1, 2)), name)().value
        assert float(got) == pytest.approx(f(0.5), abs=1e-15)


def test_a_symbol_leaves_an_array_to_numpy() -> None:
    x = _symbols(sympy.symbols("x:2"))
    both = Symbolic(2) * x - (x + x)
    assert [e.value for e in both] == [0, 0]


def test_balls_of_the_other_smooth_functions_hold_the_float_value() -> None:
    with precision(100):
        for name in ("erf", "atan", "log"):
            assert getattr(Ball(0.5), name)().distance(getattr(math, name)(0.5)) < 1e-15


def test_duals_differentiate_logarithms_roots_and_quotients() -> None:
    one = Dual(Symbolic(sympy.Symbol("x", positive=True)), Symbolic(1))
    for made in (one.log(), one.sqrt(), 1 / one, 1 - one, -one, 3 * one / (one + 1)):
        slope = sympy.diff(made.value.value, sympy.Symbol("x", positive=True))
        assert sympy.simplify(slope - made.slope.value) == 0
    low, high = Dual(Real(1), Real(5)), Dual(Real(2), Real(0))
    for condition, holds in ((low <= high, True), (low >= high, False), (low >= 0, True)):
        assert z3.is_true(z3.simplify(condition.term)) is holds


def test_a_dual_of_a_single_entry_counts_once() -> None:
    assert Dual(Real(1)).count() == 1
