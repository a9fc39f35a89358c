"""Activations, elementwise: relu, gelu, silu, sigmoid, tanh, softplus, and their gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from assay.spec.functions import arctan, erf, log1p, number, sqrt
from assay.spec.functions import tanh as _tanh
from assay.spec.scalars import Array, at_most, exp, select

Approximate = Literal["none", "tanh"]

CUBIC = 0.044715
"""Coefficient of x^3 in the tanh form of GELU, as kernels have it: this double."""


def relu(x: Array) -> Array:
    """max(x, 0); NaN stays NaN. Source: V. Nair and G. Hinton (2010).

    >>> import numpy as np
    >>> relu(np.array([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    return select(at_most(x, 0), 0, x)


def relu_backward(x: Array, cotangent: Array) -> Array:
    """g where x > 0, else 0: the subgradient at 0 is 0."""
    return select(at_most(x, 0), 0, cotangent)


def _decay(x: Array) -> Array:
    """exp(-|x|): an exponential that cannot overflow."""
    return exp(select(at_most(x, 0), x, -x))


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), evaluated as exp(x) / (1 + exp(x)) where x <= 0.

    >>> import numpy as np
    >>> sigmoid(np.array([0.0, -1e4])).tolist()
    [0.5, 0.0]
    """
    small = _decay(x)
    gate = select(at_most(x, 0), small, 1) / (1 + small)
    # An array that carries errors (see ``inexact``) knows what other forms may give.
    own = getattr(x, "shut", None)
    return gate if own is None else own(gate)


def sigmoid_backward(x: Array, cotangent: Array) -> Array:
    """g s (1 - s) with s = sigmoid(x)."""
    s = sigmoid(x)
    return cotangent * s * (1 - s)


def silu(x: Array) -> Array:
    """x sigmoid(x). Source: S. Elfwing, E. Uchibe and K. Doya (2017), equation 7.

    >>> import numpy as np
    >>> silu(np.array([0.0, 100.0])).tolist()
    [0.0, 100.0]
    """
    return x * sigmoid(x)


def silu_backward(x: Array, cotangent: Array) -> Array:
    """g s (1 + x (1 - s)) with s = sigmoid(x)."""
    s = sigmoid(x)
    return cotangent * (s * (1 + x * (1 - s)))


def tanh(x: Array) -> Array:
    """Hyperbolic tangent."""
    return _tanh(x)


def tanh_backward(x: Array, cotangent: Array) -> Array:
    """g (1 - tanh(x)^2)."""
    y = _tanh(x)
    return cotangent * (1 - y * y)


def softplus(x: Array) -> Array:
    """ln(1 + exp(x)), evaluated as x + ln(1 + exp(-x)) where x > 0: no exponential overflows.

    >>> import numpy as np
    >>> softplus(np.array([-1e4, 1e4])).tolist()
    [0.0, 10000.0]
    """
    return relu(x) + log1p(_decay(x))


def softplus_backward(x: Array, cotangent: Array) -> Array:
    """g sigmoid(x)."""
    return cotangent * sigmoid(x)


def _check(approximate: str) -> None:
    if approximate not in ("none", "tanh"):
        raise ValueError(f"approximate={approximate!r} is no form of gelu; valid: 'none', 'tanh'")


def _slope(x: Array) -> Array:
    """sqrt(2 / pi) in the scalars of x; pi is 4 arctan 1."""
    return sqrt(1 / (2 * arctan(number(1, x))))


def _cubic_tanh(x: Array) -> Array:
    return _tanh(_slope(x) * (x + CUBIC * (x * x * x)))


def _normal_mass(x: Array) -> Array:
    """P(Z <= x) of a standard normal Z."""
    return (1 + erf(x / sqrt(number(2, x)))) / 2


def gelu(x: Array, *, approximate: Approximate = "none") -> Array:
    """x P(Z <= x) for a standard normal Z; by tanh x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2.

    Two functions that differ by up to 5e-4. Source: D. Hendrycks and K. Gimpel, "Gaussian error
    linear units" (2016), section 2.

    >>> import numpy as np
    >>> gelu(np.array([0.0, 1.0])).round(6).tolist()
    [0.0, 0.841345]
    >>> gelu(np.array([0.0, 1.0]), approximate="tanh").round(6).tolist()
    [0.0, 0.841192]
    """
    _check(approximate)
    return x * (_normal_mass(x) if approximate == "none" else (1 + _cubic_tanh(x)) / 2)


def gelu_backward(x: Array, cotangent: Array, *, approximate: Approximate = "none") -> Array:
    """g (P(Z <= x) + x p(x)) with the density p(x) = exp(-x^2 / 2) / sqrt(2 pi); by tanh, with t
    the hyperbolic tangent of ``gelu``: g ((1 + t) / 2 + x (1 - t^2) sqrt(2/pi) (1 + 3 * 0.044715
    x^2) / 2).
    """
    _check(approximate)
    if approximate == "none":
        density = exp(-(x * x) / 2) * (_slope(x) / 2)
        return cotangent * (_normal_mass(x) + x * density)
    t = _cubic_tanh(x)
    inner = _slope(x) * (1 + 3 * (CUBIC * (x * x)))
    return cotangent * ((1 + t) / 2 + x * ((1 - t * t) * inner) / 2)


@dataclass(frozen=True)
class Activation:
    """forward(x) -> y and backward(x, cotangent) -> gradient into x."""

    forward: Callable[[Array], Array]
    backward: Callable[[Array, Array], Array]


ACTIVATIONS: Mapping[str, Activation] = {
    "relu": Activation(relu, relu_backward),
    "gelu": Activation(gelu, gelu_backward),
    "gelu_tanh": Activation(
        lambda x: gelu(x, approximate="tanh"), lambda x, g: gelu_backward(x, g, approximate="tanh")
    ),
    "silu": Activation(silu, silu_backward),
    "sigmoid": Activation(sigmoid, sigmoid_backward),
    "tanh": Activation(tanh, tanh_backward),
    "softplus": Activation(softplus, softplus_backward),
    "identity": Activation(lambda x: x, lambda x, g: g),
}
"""The activations that a model may name."""
