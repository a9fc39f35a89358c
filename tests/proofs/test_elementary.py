"""Functions of symbols compute what the spec does on floats, differentiate, and know when one is
0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from assay.proofs.derivation import pullback_case
from assay.proofs.scalars.balls import Ball
from assay.proofs.scalars.elementary import ROOM, Elementary, Functions, Sides
from assay.proofs.scalars.ratios import Ring
from assay.spec.layers.activations import relu, sigmoid, silu, softplus, tanh, tanh_backward
from assay.spec.recurrent.lstm import lstm


def value(x: Elementary, *names: float) -> float:
    """The function at numbers, by the formulas that were recorded."""
    found: Ball = x.functions.value(x.ratio, [Ball(n) for n in names])
    return float(found.value.mid())


@pytest.mark.parametrize("function", [sigmoid, silu, softplus, tanh])
@pytest.mark.parametrize("at", [-3.0, 0.0, 0.75])
def test_a_stable_form_is_one_function_with_the_value_of_floats(function: Any, at: float) -> None:
    (made,) = function(Functions(x=(1,))["x"])
    assert isinstance(made, Elementary)
    assert value(made, at) == pytest.approx(float(function(np.array(at))), abs=1e-15)


def test_a_cell_of_symbols_has_the_value_of_floats() -> None:
    shapes = {"x": (1, 2, 1), "weight": (4, 1, 2), "bias": (4, 1), "h0": (1, 1), "c0": (1, 1)}
    functions, draw = Functions(**shapes), np.random.default_rng(0)
    floats: dict[str, Any] = {name: draw.normal(size=shape) for name, shape in shapes.items()}
    flat = [x for name in shapes for x in floats[name].flat]
    symbols: dict[str, Any] = {name: functions[name] for name in shapes}
    got = lstm(**symbols).c[0, 0]
    assert value(got, *flat) == pytest.approx(lstm(**floats).c.item(), abs=1e-14)


@pytest.mark.parametrize("function", [sigmoid, softplus, tanh, silu])
def test_a_derivative_is_the_slope_of_floats(function: Any) -> None:
    functions = Functions(x=(1,))
    (x,) = functions["x"]
    (made,) = function(np.array([x * x - 1], dtype=object))
    ahead, behind = (float(function(np.array(v * v - 1))) for v in (0.5 + 1e-5, 0.5 - 1e-5))
    assert value(made.derivative(x), 0.5) == pytest.approx((ahead - behind) / 2e-5, abs=1e-9)


def test_laws_of_the_functions_hold() -> None:
    x, y = Functions(x=(2,))["x"]
    assert (x.exp() * (-x).exp() - 1).vanishes
    assert (x.tanh() + (-x).tanh()).vanishes
    assert (x.exp().log1p() - (-x).exp().log1p() - x).vanishes
    assert (2 / x - 1 / (x / 2)).vanishes
    assert (0.5 - x * y - (1 / 2 - y * x)).vanishes
    assert not (x.tanh() - y.tanh()).vanishes


def test_what_is_not_known_to_be_nought_is_not_called_either() -> None:
    (x,) = Functions(x=(1,))["x"]
    with pytest.raises(ValueError, match="may be 0"):
        _ = ((2 * x).exp() - x.exp() * x.exp()).vanishes


def test_two_forms_stay_apart_where_they_differ() -> None:
    functions = Functions(x=(2,))
    one, other = relu(functions["x"])
    assert isinstance(one, Sides)
    assert repr(one) == "(0 if x0 <= 0 else x0)"
    with pytest.raises(ValueError, match="two comparisons"):
        _ = one + other
    assert (one / 2 * 2 / (1 + one)).parts[0].vanishes
    assert (one + np.array([1, 2], dtype=object)).shape == (2,)


def test_a_logarithm_of_no_exponential_is_refused() -> None:
    (x,) = Functions(x=(1,))["x"]
    with pytest.raises(ValueError, match="only of an exponential"):
        x.log1p()


def test_more_values_than_there_is_room_for_are_refused() -> None:
    (x,) = Functions(x=(1,))["x"]
    for i in range(ROOM):
        (x + i).tanh()
    with pytest.raises(ValueError, match=f"ROOM={ROOM}"):
        (x + ROOM).tanh()


def test_a_function_is_written_by_its_factors_or_told_by_a_value() -> None:
    x, y = Functions(x=(2,))["x"]
    t = x.tanh()
    assert str((t * y - t).formula) == "v1*(x1 - 1)"
    assert t.definitions == (r"v_{1} = \tanh\left(x_{0}\right)",)
    assert repr(t * y) == "x1*tanh(x0)"
    long = (1 + x + y) * (1 + x * y)
    assert long.terms == 6
    assert repr(long) == "2.14 where the names are 1/2, 1/3, ..."


def test_quotients_are_in_lowest_terms() -> None:
    x, y = Ring(["x", "y"]).generators
    assert ((x * x - y * y) / (2 * x - 2 * y)).key == (x / 2 + y / 2).key
    assert repr(1 / x + 1) == "(x + 1) / (x)"
    assert (1 / x).derivative(0).key == (-1 / (x * x)).key
    assert (x / (y * y)).at([3.0, 2.0]) == pytest.approx(0.75)
    assert bool(x - x) is False
    with pytest.raises(ZeroDivisionError):
        _ = x / (y - y)


def test_a_wrong_pullback_is_told_and_a_right_one_shown() -> None:
    def forward(x: Any) -> tuple[Any]:
        return (tanh(x),)

    def backward(x: Any, into: Any, slope: Any = tanh_backward) -> Any:
        return type("Gradients", (), {"x": slope(x, into)})

    shapes, cotangents = {"x": (2,)}, {"into": "g"}
    right = pullback_case("tanh", forward, backward, shapes, cotangents, "x")
    assert right.holds
    assert right.shown[:2] == (
        r"v_{1} = \tanh\left(x_{0}\right)",
        r"v_{2} = \tanh\left(x_{1}\right)",
    )

    def open_ended(x: Any, into: Any) -> Any:
        return backward(x, into, lambda _, g: g)

    wrong = pullback_case("tanh", forward, open_ended, shapes, cotangents)
    assert not wrong.holds
    assert wrong.name == "tanh: x[0] remains -g0*tanh(x0)**2"
