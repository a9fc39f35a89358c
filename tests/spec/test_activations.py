"""Activations: values, gradients, tails, and dropout with a given mask."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.spec.arithmetic import Arithmetic
from assay.spec.layers import activations
from assay.spec.layers.activations import ACTIVATIONS, gelu, gelu_backward
from assay.spec.layers.dropout import dropout, dropout_backward
from assay.spec.ops import op
from tests.spec.agreement import (
    assert_agrees_with_torch,
    assert_encloses,
    assert_notices,
    assert_rounded_within_bounds,
    balls,
    excess,
)

# torch's softplus is the identity from its threshold on: see the finding below.
TORCH: dict[str, Callable[..., Any]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "silu": F.silu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "softplus": lambda x: F.softplus(x, threshold=60),
}
CALLS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in TORCH if name != "gelu"),
    ("gelu", {"approximate": "none"}),
    ("gelu", {"approximate": "tanh"}),
]
each = pytest.mark.parametrize(("name", "rules"), CALLS, ids=lambda x: str(x))


def by_torch(name: str) -> Any:
    return lambda tensors, rules: {"out": TORCH[name](tensors["x"], **rules)}


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray:
    sizes = st.sampled_from([0, 1, 2, 3, 7, 16])
    shape = draw(st.lists(sizes, max_size=3))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    return rng.normal(size=shape) * draw(st.sampled_from([0.1, 1.0, 4.0, 15.0]))


@each
@settings(max_examples=200)
@given(x=arrays(), dtype=st.sampled_from(["float32", "float64"]))
def test_activation_and_its_gradient_agree_with_torch(
    name: str, rules: dict[str, Any], x: np.ndarray, dtype: str
) -> None:
    assert_agrees_with_torch(name, {"x": x}, rules, by_torch(name), dtype)


@each
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_activation_rounded_at_every_operation_stays_within_its_bounds(
    name: str, rules: dict[str, Any], dtype: str
) -> None:
    for scale in (0.1, 1.0, 5.0):
        x = np.random.default_rng(0).normal(size=200) * scale
        assert_rounded_within_bounds(name, {"x": x}, rules, dtype)


@each
def test_an_error_of_a_ten_thousandth_is_noticed(name: str, rules: dict[str, Any]) -> None:
    x = np.random.default_rng(0).normal(size=(3, 5))
    wrong = x.copy()
    wrong[x > 0] += 1e-4
    assert_notices(name, {"x": x}, rules, {"x": wrong})


@each
def test_activation_runs_on_balls(name: str, rules: dict[str, Any]) -> None:
    x = np.array([[0.0, 0.5, -0.5], [3.0, -3.0, 9.0]])
    assert_encloses(name, {"x": x}, rules)
    assert_encloses(name, {"x": np.zeros((0, 2))}, rules)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_the_gradient_is_the_derivative(name: str) -> None:
    """(f(x + h) - f(x - h)) / 2h in 300 bits, with an error of h^2 f''' / 6."""
    before, flint.ctx.prec = flint.ctx.prec, 300
    try:
        step = flint.arb(2) ** -80
        x = balls({"x": np.array([-2.5, -0.75, 0.3, 1.9])})["x"]
        forward, backward = ACTIVATIONS[name].forward, ACTIVATIONS[name].backward
        slope = (forward(x + step) - forward(x - step)) / (2 * step)
        cotangent = balls({"g": np.array([1.0, 2.0, -1.0, 0.5])})["g"]
        for got, want in zip(backward(x, cotangent), slope * cotangent, strict=True):
            assert abs(got - want) < 1e-40
    finally:
        flint.ctx.prec = before


def test_every_activation_that_a_model_may_name_is_there() -> None:
    assert sorted(ACTIVATIONS) == [
        *("gelu", "gelu_tanh", "identity", "relu", "sigmoid", "silu", "softplus", "tanh")
    ]
    x, g = np.array([0.5, -2.0]), np.array([1.0, 3.0])
    assert (ACTIVATIONS["identity"].forward(x) == x).all()
    assert (ACTIVATIONS["identity"].backward(x, g) == g).all()
    assert (ACTIVATIONS["gelu_tanh"].forward(x) == gelu(x, approximate="tanh")).all()


def test_rectifier_is_exact_on_fractions_with_slope_0_at_0() -> None:
    x = np.array([Fraction(-1, 3), Fraction(0), Fraction(2, 3)], dtype=object)
    one = np.array([Fraction(1)] * 3, dtype=object)
    assert activations.relu(x).tolist() == [0, 0, Fraction(2, 3)]
    assert activations.relu_backward(x, one).tolist() == [0, 0, 1]
    assert np.isnan(activations.relu(np.array([np.nan]))).all()
    assert (x + activations.relu(x)).tolist()[0] == Fraction(-1, 3)


def test_the_two_forms_of_gelu_are_told_apart() -> None:
    x = np.linspace(-3.0, 3.0, 61)
    apart = np.abs(gelu(x) - gelu(x, approximate="tanh"))
    assert 4e-4 < apart.max() < 5e-4
    bound = op("gelu").bound({"x": x}, {"approximate": "tanh"}, Arithmetic())["out"]
    assert (apart > bound).sum() > 40
    slopes = [gelu_backward(x, np.ones(61), approximate=form) for form in ("none", "tanh")]
    assert np.abs(slopes[0] - slopes[1]).max() > 5e-4
    with pytest.raises(ValueError, match=r"approximate='erf' is no form of gelu; valid: 'none'"):
        gelu(x, approximate="erf")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["sigmoid", "silu", "softplus", "gelu", "tanh"])
def test_arguments_of_any_size_give_finite_values_and_slopes(name: str) -> None:
    for kind in (np.float32, np.float64):
        x = np.array([-1e30, -800.0, -90.0, 0.0, 90.0, 800.0, 1e30], dtype=kind)
        with np.errstate(over="ignore"):
            y = ACTIVATIONS[name].forward(x)
            slope = ACTIVATIONS[name].backward(x, np.ones(7, dtype=kind))
        assert y.dtype == slope.dtype == kind
        assert np.isfinite(y).all()
        assert np.isfinite(slope).all()


@pytest.mark.parametrize("name", ["sigmoid", "silu", "softplus"])
def test_small_results_keep_their_digits_and_kernels_may_flush_the_last_of_them(name: str) -> None:
    x = np.linspace(-200.0, 200.0, 401)
    inputs = {"x": x.astype(np.float32)}
    assert_agrees_with_torch(name, inputs, {}, by_torch(name), "float32")
    tiny = {"x": np.array([-86.791077, -95.0, -103.0], dtype=np.float32)}
    assert_agrees_with_torch(name, tiny, {}, by_torch(name), "float32")
    y = ACTIVATIONS[name].forward(np.array([-50.0]))
    wanted = np.exp(-50.0) * (-50.0 if name == "silu" else 1.0)
    assert abs(y[0] / wanted - 1) < 1e-15
    bound = op(name).bound({"x": np.array([-50.0])}, {}, Arithmetic())["out"]
    assert bound[0] < 1e-5 * abs(wanted)


def test_torch_drops_the_tail_of_softplus_in_double_precision() -> None:
    """Finding: from 20 on torch returns x. ln(1 + exp(20.5)) - 20.5 lies between 1.25e-9 and
    1.26e-9, as the ball shows: a million times what double precision loses.
    """
    ball = activations.softplus(balls({"x": np.array([20.5])})["x"])[0] - flint.arb(20.5)
    assert 1.25e-9 < ball < 1.26e-9
    x = np.array([20.5])
    got = F.softplus(torch.tensor(x)).numpy()
    assert got[0] == 20.5
    arithmetic = Arithmetic("float64", "float64", "float64")
    bound = op("softplus").bound({"x": x}, {}, arithmetic)["out"]
    assert excess(got, activations.softplus(x.astype(np.longdouble)), bound) > 1e4


def by_torch_dropout(tensors: dict[str, Any], rules: Any) -> dict[str, Any]:
    """torch draws its own mask: with the same seed it is the mask of the ones."""
    torch.manual_seed(0)
    return {"out": F.dropout(tensors["x"], rules["p"], rules.get("training", True))}


@settings(max_examples=200)
@given(
    x=arrays(),
    p=st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9, 1.0]),
    training=st.booleans(),
    dtype=st.sampled_from(["float32", "float64"]),
)
def test_dropout_and_its_gradient_agree_with_torch(
    x: np.ndarray, p: float, training: bool, dtype: str
) -> None:
    torch.manual_seed(0)
    like = torch.ones(x.shape, dtype=getattr(torch, dtype))
    keep = F.dropout(like, p).numpy() != 0
    rules = {"p": p, "training": training}
    assert_agrees_with_torch("dropout", {"x": x, "keep": keep}, rules, by_torch_dropout, dtype)


def test_dropout_is_bounded_noticed_and_runs_on_balls() -> None:
    x = np.random.default_rng(0).normal(size=(3, 4))
    inputs = {"x": x, "keep": x < 0.5}
    for dtype in ("float32", "bfloat16", "float16"):
        assert_rounded_within_bounds("dropout", inputs, {"p": 0.3}, dtype)
    assert_notices("dropout", inputs, {"p": 0.3}, {**inputs, "x": x + 1e-5})
    assert_encloses("dropout", inputs, {"p": 0.3})
    assert not op("dropout").bound(inputs, {"p": 0.3}, Arithmetic())["out"][x >= 0.5].any()


def test_dropout_is_exact_on_fractions_and_its_mean_over_all_masks_is_the_input() -> None:
    p, x = Fraction(1, 3), np.array([Fraction(2, 7), Fraction(-1, 5)], dtype=object)
    mean = x * 0
    for first in (True, False):
        for second in (True, False):
            chance = (1 - p if first else p) * (1 - p if second else p)
            mean = mean + chance * dropout(x, np.array([first, second]), p=p)  # type: ignore[arg-type]
    assert mean.tolist() == x.tolist()


def test_a_dropped_entry_is_0_whatever_it_holds_and_p_1_drops_all() -> None:
    x, keep = np.array([np.nan, np.inf, 1.0]), np.array([False, False, True])
    assert dropout(x, keep, p=0.5).tolist() == [0.0, 0.0, 2.0]
    assert dropout_backward(x, keep, x, p=0.5).tolist() == [0.0, 0.0, 2.0]
    assert dropout(x, keep, p=1.0).tolist() == [0.0, 0.0, 0.0]
    assert dropout(x[1:], keep[1:], p=1.0, training=False).tolist() == [np.inf, 1.0]


def test_a_rate_or_mask_that_does_not_fit_is_named() -> None:
    with pytest.raises(ValueError, match=r"p=1.5 must lie in \[0, 1\]"):
        dropout(np.ones(1), np.ones(1, bool), p=1.5)
    with pytest.raises(ValueError, match=r"keep \(2,\) must have the shape \(1,\) of x"):
        dropout(np.ones(1), np.ones(2, bool), p=0.5)
