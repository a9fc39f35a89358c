"""Exact softmax arithmetic: fractions whose exponential is the power of two of an integer.

x -> 2^x is a positive function with f(x + y) = f(x) f(y) and f(0) = 1, which is all that the proofs
over the reals ask of exp. On integer scores it is rational, so every equality is decided exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from jaxtyping import Shaped


class Rational:
    """A fraction with ``exp``, ``maximum`` and comparisons; plain numbers mix in.

    >>> (Rational(3) - 1).exp() / 3
    Rational(4/3)
    """

    __slots__ = ("value",)
    value: Fraction

    def __init__(self, value: Any) -> None:
        self.value = value.value if isinstance(value, Rational) else Fraction(value)

    def exp(self) -> Rational:
        """2^x; only for an integer x, where it is rational."""
        if self.value.denominator != 1:
            raise ValueError(f"exp of {self.value} is not rational; valid: integers")
        return Rational(Fraction(2) ** self.value.numerator)

    def maximum(self, other: Any) -> Rational:
        """The larger of the two."""
        return Rational(max(self.value, Rational(other).value))

    def __repr__(self) -> str:
        return f"Rational({self.value})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rational | int | float) and self.value == Rational(other).value

    def __hash__(self) -> int:
        return hash(self.value)

    def __neg__(self) -> Rational:
        return Rational(-self.value)

    def __add__(self, other: Any) -> Rational:
        return Rational(self.value + Rational(other).value)

    def __sub__(self, other: Any) -> Rational:
        return Rational(self.value - Rational(other).value)

    def __mul__(self, other: Any) -> Rational:
        return Rational(self.value * Rational(other).value)

    def __truediv__(self, other: Any) -> Rational:
        return Rational(self.value / Rational(other).value)

    def __rsub__(self, other: Any) -> Rational:
        return Rational(other) - self

    def __rtruediv__(self, other: Any) -> Rational:
        return Rational(other) / self

    __radd__ = __add__
    __rmul__ = __mul__


def array(values: Any, make: Callable[[Any], Any] = Rational) -> Shaped[np.ndarray, "..."]:
    """Object array of scalars made from nested numbers."""
    plain = np.asarray(values)
    result = np.empty(plain.shape, dtype=object)
    result.reshape(-1)[:] = [make(x) for x in plain.ravel().tolist()]
    return result
