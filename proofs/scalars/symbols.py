"""sympy expressions: the spec's formula as an object of calculus. They have no order, so the
spec's shift is 0.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import sympy


def expression(x: Any) -> sympy.Expr:
    """The sympy expression of a wrapped or plain number; floats are read as exact rationals."""
    if isinstance(x, Symbolic):
        return x.value
    if isinstance(x, bool):  # a number here, as it is in Python
        return sympy.Integer(x)
    return sympy.Rational(x) if isinstance(x, float) else sympy.sympify(x)


def _decided(relation: Any) -> bool:
    if relation not in (sympy.true, sympy.false):
        raise ValueError(f"relation={relation} is not decided; valid: symbols of known signs")
    return bool(relation)


class Symbolic:
    """A sympy expression that numpy can calculate with.

    >>> Symbolic(sympy.Symbol("x")).exp() * 2
    Symbolic(2*exp(x))
    """

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = expression(value)

    def exp(self) -> Symbolic:
        """Exponential."""
        return Symbolic(sympy.exp(self.value))

    def log(self) -> Symbolic:
        """Natural logarithm."""
        return Symbolic(sympy.log(self.value))

    def sqrt(self) -> Symbolic:
        """Square root."""
        return Symbolic(sympy.sqrt(self.value))

    def log1p(self) -> Symbolic:
        """log(1 + x)."""
        return Symbolic(sympy.log(1 + self.value))

    def tanh(self) -> Symbolic:
        """Hyperbolic tangent."""
        return Symbolic(sympy.tanh(self.value))

    def erf(self) -> Symbolic:
        """Error function."""
        return Symbolic(sympy.erf(self.value))

    def atan(self) -> Symbolic:
        """Inverse tangent."""
        return Symbolic(sympy.atan(self.value))

    def cos_pi(self) -> Symbolic:
        """Cosine of pi times the expression."""
        return Symbolic(sympy.cos(sympy.pi * self.value))

    def sin_pi(self) -> Symbolic:
        """Sine of pi times the expression."""
        return Symbolic(sympy.sin(sympy.pi * self.value))

    def __le__(self, other: Any) -> bool:
        """Only where the signs of the symbols decide it; so are the other comparisons."""
        return _decided(self.value <= expression(other))

    def __ge__(self, other: Any) -> bool:
        return _decided(self.value >= expression(other))

    def __lt__(self, other: Any) -> bool:
        return _decided(self.value < expression(other))

    def __repr__(self) -> str:
        return f"Symbolic({self.value})"

    def _with(self, operation: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
        if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
            return NotImplemented  # an array does it for each of its elements
        return Symbolic(operation(expression(a), expression(b)))

    def __neg__(self) -> Symbolic:
        return Symbolic(-self.value)

    def __add__(self, other: Any) -> Any:
        return self._with(operator.add, self, other)

    def __sub__(self, other: Any) -> Any:
        return self._with(operator.sub, self, other)

    def __mul__(self, other: Any) -> Any:
        return self._with(operator.mul, self, other)

    def __truediv__(self, other: Any) -> Any:
        return self._with(operator.truediv, self, other)

    def __rsub__(self, other: Any) -> Any:
        return self._with(operator.sub, other, self)

    def __rtruediv__(self, other: Any) -> Any:
        return self._with(operator.truediv, other, self)

    def __pow__(self, other: int) -> Symbolic:
        return Symbolic(self.value**other)

    __radd__ = __add__
    __rmul__ = __mul__
