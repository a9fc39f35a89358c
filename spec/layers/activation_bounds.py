"""Error bounds of activations whose forms in use differ: sigmoid, silu, softplus, gelu, and tanh's
gradient.

The rules of running analysis cover 1 / (1 + exp(-x)) as they cover exp(x) / (1 + exp(x)), but for
one thing: exp(-x) overflows for x below -ln(largest number), and a result that is less than about
1 / largest comes out as 0. tanh(x / 2) / 2 + 1 / 2 is no sound form of sigmoid: it keeps no digit
of small results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from assay.spec.arithmetic import Arithmetic
from assay.spec.functions import log1p
from assay.spec.inexact import RUNNING_SLACK, Inexact, running_bound, widest
from assay.spec.layers.activations import (
    Approximate,
    gelu,
    gelu_backward,
    softplus,
    tanh_backward,
)
from assay.spec.scalars import Array, exp


def _brink(arithmetic: Arithmetic) -> float:
    """Where exp comes within a factor e of the largest number."""
    return float(np.log(Inexact(0.0, 0.0, arithmetic).largest)) - 1.0


def flushed_bound(
    function: Callable[[Any], Any], x: Array, arithmetic: Arithmetic, slope: Array | float = 1.0
) -> Array:
    """Running bound of slope function(x), and its own size where exp(-x) may overflow.

    The factors slope, sigmoid(x) and at most 1 + |x| are multiplied in any order: where a product
    of two underflows, its error tau is multiplied by the third.

    >>> from assay.spec.layers.activations import sigmoid
    >>> float(flushed_bound(sigmoid, np.array([-100.0]), Arithmetic())[0]) > float(np.exp(-100))
    True
    """

    def apply(given: Any) -> dict[str, Any]:
        return {"y": given["slope"] * function(given["x"])}

    given = {"x": x, "slope": np.broadcast_to(np.asarray(slope, dtype=x.dtype), x.shape)}
    bound = running_bound(apply, given, arithmetic)["y"]
    with np.errstate(all="ignore"):
        flushed = np.where(x < -_brink(arithmetic), np.abs(apply(given)["y"]), 0.0)
        return bound + flushed + arithmetic.tau_acc * (1 + np.abs(x)) * (1 + np.abs(slope))


def softplus_bound(x: Array, arithmetic: Arithmetic) -> Array:
    """Bound for softplus, also as ln(1 + exp(x)) where that exponential does not overflow."""
    stable = running_bound(lambda a: {"y": softplus(a["x"])}, {"x": x}, arithmetic)
    inside = {"x": np.minimum(x, _brink(arithmetic))}
    direct = running_bound(lambda a: {"y": log1p(exp(a["x"]))}, inside, arithmetic)
    reachable = np.where(x < _brink(arithmetic), direct["y"], 0.0)
    return widest(stable, {"y": reachable})["y"]


def _loose_erf(size: Array, approximate: Approximate, arithmetic: Arithmetic) -> Array:
    """What an erf that is good to eta of 1, and not of itself, adds to (1 + erf) / 2 times size.

    Kernels approximate erf by polynomials with a small absolute error (M. Abramowitz and I. Stegun,
    7.1.26): near 0 it is larger than eta |erf|.
    """
    if approximate != "none":
        return np.zeros(size.shape)
    return arithmetic.eta / 2.0 * (1.0 + arithmetic.u_store) * RUNNING_SLACK * np.abs(size)


def gelu_bound(x: Array, approximate: Approximate, arithmetic: Arithmetic) -> Array:
    """Running bound of gelu, with an erf that may be loose near 0."""
    bound = running_bound(
        lambda a: {"y": gelu(a["x"], approximate=approximate)}, {"x": x}, arithmetic
    )
    return bound["y"] + _loose_erf(x, approximate, arithmetic)


def gelu_backward_bound(
    x: Array, cotangent: Array, approximate: Approximate, arithmetic: Arithmetic
) -> Array:
    """Running bound of the gradient of gelu, with an erf that may be loose near 0."""
    bound = running_bound(
        lambda a: {"x": gelu_backward(a["x"], a["g"], approximate=approximate)},
        {"x": x, "g": cotangent},
        arithmetic,
    )
    return bound["x"] + _loose_erf(cotangent, approximate, arithmetic)


def _tanh_slope(x: Any, cotangent: Any) -> Any:
    """g (1 - tanh(x)^2) by exponentials, as the derivative of a quotient of them comes out."""
    e = exp(-2 * np.abs(x))
    return cotangent * (4 * e / ((1 + e) * (1 + e)))


def tanh_backward_bound(x: Array, cotangent: Array, arithmetic: Arithmetic) -> Array:
    """Running bound of the gradient of tanh, by its value or by exponentials.

    >>> small = tanh_backward_bound(np.array([1e-4]), np.array([1.0]), Arithmetic())
    >>> bool(3 * Arithmetic().u_acc < small[0] < 30 * Arithmetic().u_acc)
    True
    """
    given = {"x": x, "g": cotangent}
    by_value = running_bound(lambda a: {"x": tanh_backward(a["x"], a["g"])}, given, arithmetic)
    by_powers = running_bound(lambda a: {"x": _tanh_slope(a["x"], a["g"])}, given, arithmetic)
    return widest(by_value, by_powers)["x"]
