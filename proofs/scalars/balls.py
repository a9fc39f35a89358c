"""Arb balls: the true real value of a spec expression, enclosed between proved error bars."""

from __future__ import annotations

from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from flint import arb, ctx, fmpq

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Compute with ``bits`` bits inside the block."""
    before = ctx.prec
    ctx.prec = bits
    try:
        yield
    finally:
        ctx.prec = before


def to_arb(x: Any) -> arb:
    """The ball of a ball or an exact number (float64 is exact: no rounding takes part)."""
    if isinstance(x, Ball):
        return x.value
    if isinstance(x, arb):
        return x
    if isinstance(x, Fraction):
        return arb(fmpq(x.numerator, x.denominator))
    if isinstance(x, int):
        return arb(x)
    return arb(float(x))


class Ball:
    """An interval that contains the true value of the expression that built it.

    >>> with precision(100):
    ...     Ball(1).exp().contains(2.718281828459045)
    False
    """

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = to_arb(value)

    def exp(self) -> Ball:
        """Exponential."""
        return Ball(self.value.exp())

    def sqrt(self) -> Ball:
        """Square root."""
        return Ball(self.value.sqrt())

    def tanh(self) -> Ball:
        """Hyperbolic tangent."""
        return Ball(self.value.tanh())

    def erf(self) -> Ball:
        """Error function."""
        return Ball(self.value.erf())

    def atan(self) -> Ball:
        """Inverse tangent."""
        return Ball(self.value.atan())

    def log(self) -> Ball:
        """Natural logarithm."""
        return Ball(self.value.log())

    def log1p(self) -> Ball:
        """log(1 + x)."""
        return Ball(self.value.log1p())

    def maximum(self, other: Any) -> Ball:
        """The larger of the two, as a ball that contains it."""
        return Ball(self.value.max(to_arb(other)))

    def contains(self, number: float) -> bool:
        """True when the exact number lies in the ball."""
        return bool(self.value.contains(arb(number)))

    def distance(self, number: float) -> float:
        """An upper bound on |value - number|."""
        return float(abs(self.value - arb(number)).upper())

    def apart(self, other: Ball) -> bool:
        """True when the two true values certainly differ."""
        return not self.value.overlaps(other.value)

    def __le__(self, other: Any) -> bool:
        if not (self.value <= to_arb(other) or self.value > to_arb(other)):
            raise ValueError(f"{self} <= {other}: the ball is too wide to tell")
        return bool(self.value <= to_arb(other))

    def __repr__(self) -> str:
        return f"Ball({self.value})"

    def __neg__(self) -> Ball:
        return Ball(-self.value)

    def __add__(self, other: Any) -> Ball:
        return Ball(self.value + to_arb(other))

    def __sub__(self, other: Any) -> Ball:
        return Ball(self.value - to_arb(other))

    def __mul__(self, other: Any) -> Ball:
        return Ball(self.value * to_arb(other))

    def __truediv__(self, other: Any) -> Ball:
        return Ball(self.value / to_arb(other))

    def __rsub__(self, other: Any) -> Ball:
        return Ball(to_arb(other) - self.value)

    def __rtruediv__(self, other: Any) -> Ball:
        return Ball(to_arb(other) / self.value)

    __radd__ = __add__
    __rmul__ = __mul__
