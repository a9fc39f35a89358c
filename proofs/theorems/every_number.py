"""Functions of one number at every number of float16 and bfloat16, against the true values.

A kernel that stores 16 bits calculates in float32: the spec runs in float32 here, and what it gives
is rounded to the format. Every true value is enclosed by an Arb ball.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import ml_dtypes
import numpy as np
from flint import arb

from assay.proofs.obligation import Case, Obligation, Twin
from assay.proofs.scalars.balls import precision
from assay.spec.arithmetic import FORMATS, Arithmetic
from assay.spec.functions import log1p
from assay.spec.functions import tanh as tanh_of
from assay.spec.layers import activations
from assay.spec.ops import op
from assay.spec.scalars import exp

Function = Callable[[Any], Any]
BITS = 90
"""Of the balls: an intermediate that cancels to 2^-25 still leaves 60 bits."""

TYPES: dict[str, Any] = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


def numbers(name: str) -> np.ndarray:
    """Every finite number of the format, 0 and -0 included, as float32."""
    every = np.arange(1 << 16, dtype=np.uint16).view(TYPES[name]).astype(np.float32)
    return every[np.isfinite(every)]


def stored(x: np.ndarray, name: str) -> np.ndarray:
    """Rounded to the format, as float64."""
    with np.errstate(over="ignore", under="ignore"):
        return x.astype(TYPES[name]).astype(np.float64)


@dataclass(frozen=True)
class Enclosed:
    """True values: each lies within ``radius`` of ``middle``, both float64."""

    middle: np.ndarray
    radius: np.ndarray

    def at(self, order: np.ndarray) -> Enclosed:
        """Those at these places."""
        return Enclosed(self.middle[order], self.radius[order])


@cache
def truth(function: Function, name: str) -> Enclosed:
    """The function's values at every number of the format, by balls."""
    with precision(BITS):
        balls = np.frompyfunc(arb, 1, 1)(numbers(name).astype(np.float64).astype(object))
        parts = [_parts(y if isinstance(y, arb) else arb(y)) for y in function(balls)]
    middle, radius = np.array(parts).T
    # The middle is rounded to float64.
    return Enclosed(middle, radius + 2.0**-52 * np.abs(middle) + 5e-324)


def _parts(y: arb) -> tuple[float, float]:
    return float(y.mid()), float(y.rad())


def worst_ulps(got: np.ndarray, true: Enclosed, name: str) -> np.ndarray:
    """The most units in the last place of the true value that each result may be off by."""
    form = FORMATS[name]
    size = np.maximum(np.abs(true.middle), form.tiny)
    unit = 2.0 ** (np.floor(np.log2(size)) - form.precision + 1)
    with np.errstate(invalid="ignore"):
        return (np.abs(got - true.middle) + true.radius) / unit


def judged(what: str, label: str, ratios: np.ndarray, x: np.ndarray, limit: float) -> Case:
    """One case for all numbers, with the worst."""
    i = int(np.argmax(np.where(np.isnan(ratios), np.inf, ratios)))
    said = f"{what}: worst {ratios[i]:.5g} {label} at x = {x[i]:.9g}"
    shown = rf"\text{{{what}: at most {ratios[i]:.4g} {label}, at }} x = {x[i]:.9g}"
    return Case(said, bool(ratios[i] <= limit), (shown,))


def within_bound(
    what: str, got: np.ndarray, true: Enclosed, bound: np.ndarray, x: np.ndarray
) -> Case:
    """Every result lies within its bound."""
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.abs(got - true.middle)
        # What is exact, as max(x, 0) is, has bound 0 and must be met exactly.
        exact = (error == 0) & (true.radius <= 2.0**-51 * np.abs(true.middle) + 5e-324)
        open_ended = np.isposinf(bound)
        ratios = np.where(exact | open_ended, 0.0, (error + true.radius) / bound)
    label = f"of the bound (none at {open_ended.sum()} numbers)"
    return judged(what, label, ratios, x, 1.0)


@dataclass(frozen=True)
class Unary:
    """An op of one number: its functions, how it is called, and a form that must be noticed.

    ulps  the most that the stored value may be off; None where a tail keeps no relative accuracy
    """

    op: str
    function: Function
    gradient: Function
    wrong: Function
    told: str
    ulps: float | None = 0.501
    attributes: tuple[tuple[str, Any], ...] = ()
    label: str = ""


def every_number(unary: Unary, name: str, function: Function) -> Iterator[Case]:
    """``function`` as the op's value, and the spec's own derivative, at every finite number."""
    x, entry, given = numbers(name), op(unary.op), dict(unary.attributes)
    arithmetic = Arithmetic(name, "float32", "float32", exp_ulps=4.0)
    inputs = {"x": x.astype(np.float64)}
    one = {"out": np.ones(x.shape)}
    with np.errstate(all="ignore"):
        value = stored(np.asarray(function(x)), name)
        slope = stored(np.asarray(unary.gradient(x)), name)
        value_bound = entry.bound(inputs, given, arithmetic)["out"]
        slope_bound = entry.backward_bound(inputs, one, given, arithmetic)["x"]
    true = truth(unary.function, name)
    yield within_bound("value", value, true, value_bound, x)
    if unary.ulps is not None:
        ulps = worst_ulps(value, true, name)
        yield judged("value", "units in the last place", ulps, x, unary.ulps)
    yield within_bound("derivative", slope, truth(unary.gradient, name), slope_bound, x)


def _slope(backward: Callable[..., Any]) -> Function:
    """The derivative: the gradient for a cotangent of 1."""
    return lambda x: backward(x, np.ones_like(x))


def _gelu(form: activations.Approximate) -> tuple[Function, Function]:
    def value(x: Any) -> Any:
        return activations.gelu(x, approximate=form)

    def gradient(x: Any) -> Any:
        return activations.gelu_backward(x, np.ones_like(x), approximate=form)

    return value, gradient


ERF, TANH = _gelu("none"), _gelu("tanh")
UNARY: tuple[Unary, ...] = (
    Unary(
        "relu",
        activations.relu,
        _slope(activations.relu_backward),
        lambda x: activations.relu(x - 1) + 1,
        "1 in place of 0",
        ulps=0.0001,
    ),
    Unary("gelu", *ERF, TANH[0], "its form by tanh", ulps=None),
    Unary(
        "gelu",
        *TANH,
        ERF[0],
        "its form by erf",
        ulps=None,
        attributes=(("approximate", "tanh"),),
        label="-tanh",
    ),
    Unary(
        "silu",
        activations.silu,
        _slope(activations.silu_backward),
        lambda x: x * (1 + tanh_of(x / 2)) / 2,
        "sigmoid as (1 + tanh(x / 2)) / 2, which keeps no digit of small results",
    ),
    Unary(
        "sigmoid",
        activations.sigmoid,
        _slope(activations.sigmoid_backward),
        lambda x: (1 + tanh_of(x / 2)) / 2,
        "(1 + tanh(x / 2)) / 2, which keeps no digit of small results",
    ),
    Unary(
        "tanh",
        activations.tanh,
        _slope(activations.tanh_backward),
        lambda x: 1 - 2 / (exp(2 * x) + 1),
        "1 - 2 / (exp(2 x) + 1), which cancels near 0",
    ),
    Unary(
        "softplus",
        activations.softplus,
        _slope(activations.softplus_backward),
        lambda x: log1p(exp(x)),
        "ln(1 + exp(x)), which overflows",
    ),
)


def _obligation(unary: Unary, name: str) -> Obligation:
    ulps = "" if unary.ulps is None else rf",\quad |\hat f - f| \le {unary.ulps} \text{{ ulp}}"
    return Obligation(
        f"bounds.every_input/{unary.op}{unary.label}-{name}",
        "bounds.every_input",
        rf"|\hat f(x) - f(x)| \le b(x),\quad |\hat f'(x) - f'(x)| \le b'(x){ulps}",
        f"every finite {name}: the spec in float32, rounded to {name} at the end, and its "
        "derivative; no bound where an intermediate overflows",
        "exhaustive",
        "arb",
        partial(every_number, unary, name, unary.function),
        Twin(unary.told, partial(every_number, unary, name, unary.wrong)),
        ("Arb's ball arithmetic", "numpy's functions in float32 and its rounding to 16 bits"),
    )


OBLIGATIONS: tuple[Obligation, ...] = tuple(
    _obligation(unary, name) for unary in UNARY for name in TYPES
)
