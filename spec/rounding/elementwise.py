"""Error rules of elementwise operations. e_x is the error of x, r the roundoff of one operation.

x + y    e_x + e_y + r (|x + y| + e_x + e_y)
x y      |x| e_y + e_x |y| + e_x e_y, and r of the largest product, and tau
x / y    (e_x + |x / y| e_y) / (|y| - e_y), two roundings (a reciprocal, then a product), and tau
f(x)     e_x times the largest |f'| on [x - e_x, x + e_x], the error of f itself, and tau
max      no larger than the largest e; nothing is rounded
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from assay.spec.error_function import error_function
from assay.spec.rounding.carried import Carried, magnitude
from assay.spec.rounding.conditions import comparison
from assay.spec.scalars import Array, is_symbolic


def _exactly(x: Carried, number: int) -> Array:
    """Where x is this number, without error."""
    return np.asarray((x.value == number) & x.exact)


def add(x: Carried, y: Carried, sign: int = 1) -> Carried:
    """x + y, or x - y; adding an exact 0 is exact."""
    own: Any = x.unit
    if not (x.nowhere_exact and y.nowhere_exact):
        own = np.where(_exactly(x, 0) | _exactly(y, 0), 0.0, own)
    return x.computed(x.value + sign * y.value, x.error + y.error, own, tau=False)


def times(a: Array, b: Array) -> Array:
    """Product of a magnitude and an error, where 0 times anything but an unknown error is 0."""
    product = a * b
    if is_symbolic(product):
        return product
    product = np.asarray(product, np.float64)
    if np.isfinite(product).all():
        return product
    return np.where((a == 0) & ~np.isinf(b) | (b == 0), 0.0, product)


def multiply(x: Carried | Array, y: Carried | Array) -> Carried:
    """x y; multiplying by 1, by -1 or by a truth value is exact."""
    if not isinstance(x, Carried):
        x, y = y, x
    assert isinstance(x, Carried)
    if not isinstance(y, Carried):
        mask = y
        return x.moved(lambda part: part * mask)
    a, b = magnitude(x.value), magnitude(y.value)
    value: Any = x.value * y.value
    if x.nowhere_exact and y.nowhere_exact:
        inherited = a * y.error + b * x.error + x.error * y.error
        plain = x.plainly(value, inherited, x.unit, tau=True)
        if plain is not None:
            return plain
    inherited = times(a, y.error) + times(b, x.error) + times(x.error, y.error)
    one = (a == 1) & x.exact | (b == 1) & y.exact
    zero = _exactly(x, 0) | _exactly(y, 0)
    result = x.computed(value, inherited, x.unit, tau=~zero)
    return x.of(result.value, np.where(one, inherited, result.error))


def divide(x: Carried, y: Carried) -> Carried:
    """x / y; no bound where y may be 0 but is not exactly 0."""
    value = x.value / y.value
    least = np.abs(y.value) - y.error
    inherited = (x.error + times(np.abs(value), y.error)) / np.where(least > 0, least, np.nan)
    nothing = (x.value == 0) & x.exact & (least > 0) | (y.value == 0) & y.exact
    own = x.unit * (2.0 + x.unit)
    return x.computed(value, np.where(nothing, 0.0, inherited), own, tau=~nothing)


def smooth(x: Carried, function: Callable[[Array], Array], inherited: Array) -> Carried:
    """f(x) for an f that is evaluated to eta, like the exponential."""
    value = function(x.value)
    own = np.where(value == 0, 0.0, x.eta)
    inherited = np.where(x.exact, 0.0, inherited)
    return x.computed(value, inherited, own, tau=~((value == 0) & x.exact))


def exp(x: Carried) -> Carried:
    """An error d of x moves it by at most e^x (e^|d| - 1) = e^(x + |d|) (1 - e^-|d|).

    exp2 forms round x log2(e) first.
    """
    shift = x.error + (2.0 * x.arithmetic.u_acc * np.abs(x.value) if x.arithmetic.exp2 else 0.0)
    value = np.exp(x.value)
    # The second form stays finite where e^|d| overflows and e^x is tiny.
    moved = np.exp(x.value + shift) * -np.expm1(-shift)
    nothing = x.value == -np.inf
    return x.computed(value, np.where(nothing, 0.0, moved), x.eta, tau=~nothing)


def expm1(x: Carried) -> Carried:
    """As the exponential, whose derivative it has."""
    return smooth(x, np.expm1, np.exp(x.value + x.error) * -np.expm1(-x.error))


def log(x: Carried) -> Carried:
    """An error d of x moves it by at most -ln(1 - |d / x|)."""
    return smooth(x, np.log, -np.log1p(-np.minimum(x.error / np.abs(x.value), 1.0)))


def log1p(x: Carried) -> Carried:
    """As the logarithm of 1 + x."""
    return smooth(x, np.log1p, -np.log1p(-np.minimum(x.error / np.abs(1 + x.value), 1.0)))


def sqrt(x: Carried) -> Carried:
    """An error d of x moves its root r by at most |d| / (r + r'), r' the root of x - |d|.

    Three roundings, since it may be taken as x times a reciprocal root.
    """
    steep = np.sqrt(np.maximum(x.value, 0)) + np.sqrt(np.maximum(x.value - x.error, 0))
    inherited = np.where(x.exact, 0.0, x.error / np.where(steep > 0, steep, np.nan))
    inherited = np.where(steep > 0, inherited, np.sqrt(x.error))
    own = x.unit * (3.0 + x.unit * (3.0 + x.unit))
    return x.computed(np.sqrt(x.value), inherited, own, tau=False)


def _nearest(x: Carried) -> Array:
    """Magnitude of the point nearest to 0 that x may be: where tanh and erf are steepest."""
    return np.maximum(np.abs(x.value).astype(np.float64) - x.error, 0.0)


def tanh(x: Carried) -> Carried:
    """tanh' = 1 / cosh^2; no two values are more than 2 apart."""
    moved = x.error / np.cosh(np.minimum(_nearest(x), 300.0)) ** 2
    return smooth(x, np.tanh, np.minimum(moved, 2.0))


def erf(x: Carried) -> Carried:
    """erf' = 2/sqrt(pi) exp(-x^2); no two values are more than 2 apart."""
    slope = 2.0 / math.sqrt(math.pi) * np.exp(-(_nearest(x) ** 2))
    return smooth(x, error_function, np.minimum(slope * x.error, 2.0))


def _wave(function: Callable[[Array], Array]) -> Callable[[Carried], Carried]:
    """Sine and cosine: steepness at most 1."""
    return lambda x: smooth(x, function, x.error)


def _extreme(choose: Callable[[Array, Array], Array]) -> Callable[[Carried, Carried], Carried]:
    return lambda x, y: x.of(choose(x.value, y.value), np.maximum(x.error, y.error))


def power(x: Carried, exponent: Carried) -> Carried:
    """Squares and cubes, as products."""
    if float(exponent.value) not in (2.0, 3.0):
        raise TypeError(f"no error rule for the power {exponent.value}")
    square = multiply(x, x)
    return square if exponent.value == 2.0 else multiply(square, x)


UFUNCS: Mapping[Any, Callable[..., Any]] = {
    np.add: add,
    np.subtract: functools.partial(add, sign=-1),
    np.multiply: multiply,
    np.divide: divide,
    np.negative: lambda x: x.of(-x.value, x.error),
    np.positive: lambda x: x,
    np.absolute: lambda x: x.of(np.abs(x.value), x.error),
    np.square: lambda x: multiply(x, x),
    np.power: power,
    np.exp: exp,
    np.expm1: expm1,
    np.log: log,
    np.log1p: log1p,
    np.sqrt: sqrt,
    np.tanh: tanh,
    np.sin: _wave(np.sin),
    np.cos: _wave(np.cos),
    np.maximum: _extreme(np.maximum),
    np.minimum: _extreme(np.minimum),
    np.less: comparison(np.less),
    np.less_equal: comparison(np.less_equal),
    np.greater: comparison(np.greater),
    np.greater_equal: comparison(np.greater_equal),
    np.equal: comparison(np.equal),
    np.not_equal: comparison(np.not_equal),
    np.isfinite: lambda x: np.isfinite(x.value),
    np.isnan: lambda x: np.isnan(x.value),
}
"""The rule of every ufunc that has one, for operands that carry errors or are truth values."""
