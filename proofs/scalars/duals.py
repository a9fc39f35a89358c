"""Dual numbers x + x' eps, eps^2 = 0: the spec's body carries its own directional derivative.

The parts are scalars of another interpretation, also stretches: the derivative of a sum of any
length is the sum of the derivatives.
"""

from __future__ import annotations

from typing import Any


class Dual:
    """A value and its derivative in the direction that the inputs' slopes give."""

    __slots__ = ("slope", "value")

    def __init__(self, value: Any, slope: Any = 0) -> None:
        self.value, self.slope = value, slope

    @staticmethod
    def of(x: Any) -> Dual:
        """A plain scalar is a constant."""
        return x if isinstance(x, Dual) else Dual(x)

    def exp(self) -> Dual:
        """(e^x)' = x' e^x."""
        value = self.value.exp()
        return Dual(value, self.slope * value)

    def log(self) -> Dual:
        """(ln x)' = x' / x."""
        return Dual(self.value.log(), self.slope / self.value)

    def sqrt(self) -> Dual:
        """(sqrt x)' = x' / (2 sqrt x)."""
        root = self.value.sqrt()
        return Dual(root, self.slope / (2 * root))

    def chosen(self, condition: Any, yes: Any, no: Any) -> Dual:
        """The parts of the branch that is taken."""
        yes, no = Dual.of(yes), Dual.of(no)
        return Dual(condition.select(yes.value, no.value), condition.select(yes.slope, no.slope))

    def total(self) -> Dual:
        """Sum of a stretch, part by part; a single entry is its own sum."""
        parts = (x.total() if hasattr(x, "total") else x for x in (self.value, self.slope))
        return Dual(*parts)

    def count(self) -> Any:
        """Number of entries of a stretch; a constant."""
        return self.value.count() if hasattr(self.value, "count") else 1

    def row_max(self, scores: Any, allowed: Any) -> Any:
        """The shift, with a slope that is left free: no result depends on it.

        Single entries have no order, and no shift.
        """
        if not hasattr(self.value, "row_max"):
            return 0
        top = self.value.row_max([x.value for x in scores], allowed)
        return Dual(top, self.slope.row_max([x.slope for x in scores], allowed))

    def __le__(self, other: Any) -> Any:
        """Where the values are; the slopes take no part."""
        return self.value <= Dual.of(other).value

    def __ge__(self, other: Any) -> Any:
        return self.value >= Dual.of(other).value

    def __add__(self, other: Any) -> Dual:
        other = Dual.of(other)
        return Dual(self.value + other.value, self.slope + other.slope)

    def __sub__(self, other: Any) -> Dual:
        other = Dual.of(other)
        return Dual(self.value - other.value, self.slope - other.slope)

    def __mul__(self, other: Any) -> Dual:
        other = Dual.of(other)
        slope = self.slope * other.value + self.value * other.slope
        return Dual(self.value * other.value, slope)

    def __truediv__(self, other: Any) -> Dual:
        other = Dual.of(other)
        value = self.value / other.value
        return Dual(value, (self.slope - value * other.slope) / other.value)

    def __neg__(self) -> Dual:
        return Dual(-self.value, -self.slope)

    def __rsub__(self, other: Any) -> Dual:
        return Dual.of(other) - self

    def __rtruediv__(self, other: Any) -> Dual:
        return Dual.of(other) / self

    __radd__ = __add__
    __rmul__ = __mul__
