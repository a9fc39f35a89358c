"""Quotients of polynomials in given names over the rationals, in lowest terms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import reduce
from itertools import chain
from operator import mul
from typing import Any

import flint


class Ring:
    """The polynomials in ``names``.

    >>> x, y = Ring(["x", "y"]).generators
    >>> (x * x - y * y) / (x - y)
    x + y
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.context = flint.fmpq_mpoly_ctx.get(list(names), "lex")
        self.one = self.context.constant(1)
        self.generators = [Ratio(self, x, self.one) for x in self.context.gens()]

    def number(self, value: Any) -> Ratio:
        """A constant; floats are read as exact rationals."""
        exact = Fraction(value)
        rational = flint.fmpq(int(exact.numerator), int(exact.denominator))
        return Ratio(self, self.context.constant(rational), self.one)


class Ratio:
    """``top / bottom`` without a common factor; ``bottom`` leads with the coefficient 1, so that
    equal functions have equal parts.
    """

    __slots__ = ("bottom", "ring", "top")

    def __init__(self, ring: Ring, top: Any, bottom: Any) -> None:
        self.ring, self.top, self.bottom = ring, top, bottom

    def over(self, top: Any, bottom: Any) -> Ratio:
        """Another quotient of the same ring, brought to lowest terms."""
        if not bottom.is_constant():
            shared = top.gcd(bottom)
            top, bottom = top // shared, bottom // shared
        lead = bottom.leading_coefficient()
        return Ratio(self.ring, top / lead, bottom / lead)

    def derivative(self, place: int) -> Ratio:
        """By the name at this place."""
        slope = self.top.derivative(place) * self.bottom - self.top * self.bottom.derivative(place)
        return self.over(slope, self.bottom * self.bottom)

    def at(self, values: Sequence[Any]) -> Any:
        """The function of scalars of any interpretation, one for each name."""
        top, bottom = (_polynomial(part, values) for part in (self.top, self.bottom))
        return top / bottom

    def factors(self) -> Iterator[tuple[Ratio, int]]:
        """Factors that cannot be taken apart further, and their powers."""
        for part, sign in ((self.top, 1), (self.bottom, -1)):
            constant, found = part.factor()
            yield self.ring.number(Fraction(int(constant.p), int(constant.q))), sign
            for factor, power in found:
                yield Ratio(self.ring, factor, self.ring.one), sign * int(power)

    @property
    def terms(self) -> int:
        """How long its formula is."""
        return len(self.top) + len(self.bottom) - 1

    @property
    def key(self) -> str:
        """The same text iff the functions are the same."""
        return f"({self.top}) / ({self.bottom})"

    def _of(self, other: Any) -> Ratio:
        return other if isinstance(other, Ratio) else self.ring.number(other)

    def __bool__(self) -> bool:
        return bool(self.top)

    def __repr__(self) -> str:
        return str(self.top) if self.bottom.is_one() else self.key

    def __neg__(self) -> Ratio:
        return Ratio(self.ring, -self.top, self.bottom)

    def __add__(self, other: Any) -> Ratio:
        b = self._of(other)
        if self.bottom == b.bottom:
            return self.over(self.top + b.top, self.bottom)
        return self.over(self.top * b.bottom + b.top * self.bottom, self.bottom * b.bottom)

    def __sub__(self, other: Any) -> Ratio:
        return self + -self._of(other)

    def __rsub__(self, other: Any) -> Ratio:
        return -self + other

    def __mul__(self, other: Any) -> Ratio:
        b = self._of(other)
        return self.over(self.top * b.top, self.bottom * b.bottom)

    def __truediv__(self, other: Any) -> Ratio:
        b = self._of(other)
        return self.over(self.top * b.bottom, self.bottom * b.top)

    def __rtruediv__(self, other: Any) -> Ratio:
        return self._of(other) / self

    __radd__ = __add__
    __rmul__ = __mul__


def _polynomial(part: Any, values: Sequence[Any]) -> Any:
    zero = values[0] * 0
    terms = [zero]
    for powers, factor in part.to_dict().items():
        repeated = ([value] * int(power) for value, power in zip(values, powers, strict=True))
        coefficient = zero + Fraction(int(factor.p), int(factor.q))
        terms.append(reduce(mul, chain.from_iterable(repeated), coefficient))
    # By halves: sympy walks through both summands each time.
    while len(terms) > 1:
        terms = [
            sum(pair[1:], pair[0]) for pair in (terms[i : i + 2] for i in range(0, len(terms), 2))
        ]
    return terms[0]
