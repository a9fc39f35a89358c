"""Polynomials in given names over the rationals and the roots of unity: the spec's linear and
multilinear maps, exactly, in one normal form.

A root of unity z of order N turns cosines and sines into polynomials: with i = z^(N / 4), cos(2 pi
k / N) = (z^k + z^-k) / 2 and sin(2 pi k / N) = (z^k - z^-k) / 2 i. Two of them are equal iff the
cyclotomic polynomial of order N divides their difference.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import sympy
from jaxtyping import Shaped
from sympy.polys.rings import PolyElement, PolyRing

from assay.proofs.scalars.named import arranged, entries

Array = Shaped[np.ndarray, "..."]


class Names:
    """Arrays of distinct names, by their shapes, and the ring of polynomials in all of them.

    >>> names = Names(x=(2,), w=())
    >>> (names["x"] * names["w"]).tolist()
    [x0*w0, x1*w0]
    """

    def __init__(self, order: int = 1, **shapes: tuple[int, ...]) -> None:
        self.order, self.shapes = order, shapes
        self.ring = PolyRing(["z", *entries(shapes)], sympy.QQ, sympy.lex)

    @cached_property
    def arrays(self) -> Mapping[str, Array]:
        """The names, each in its shape."""
        return arranged(self.shapes, (Polynomial(self, x) for x in self.ring.gens[1:]))

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name]

    def number(self, value: Any) -> PolyElement:
        """A constant; floats are read as exact rationals."""
        exact = Fraction(value)
        return self.ring(sympy.QQ(exact.numerator, exact.denominator))

    @cached_property
    def cyclotomic(self) -> PolyElement:
        """What z is a root of."""
        z, whole = self.ring.gens[0], sympy.Symbol("z")
        factors = sympy.Poly(sympy.cyclotomic_poly(self.order, whole), whole).all_coeffs()
        return sum((int(c) * z**k for k, c in enumerate(reversed(factors))), self.ring.zero)

    def reduced(self, element: PolyElement) -> PolyElement:
        """Powers of z below N: z^N = 1."""
        if self.order == 1 or element.degree(self.ring.gens[0]) < self.order:
            return element
        result = self.ring.zero
        for powers, factor in element.terms():
            key = (powers[0] % self.order, *powers[1:])
            result[key] = result.get(key, sympy.QQ(0)) + factor
        result.strip_zero()
        return result


class Polynomial:
    """An element of the ring of ``names``; plain numbers mix in."""

    __slots__ = ("element", "names")

    def __init__(self, names: Names, element: PolyElement) -> None:
        self.names, self.element = names, element

    def derivative(self, name: Polynomial) -> Polynomial:
        """The partial derivative by one of the names."""
        return self._like(self.element.diff(name.element))

    @property
    def vanishes(self) -> bool:
        """True when it is 0 for all values of the names."""
        if self.names.order == 1:
            return not self.element
        return not self.element.rem(self.names.cyclotomic)

    definitions: tuple[str, ...] = ()
    """What ``formula`` speaks of beside the names: nothing."""

    @property
    def terms(self) -> int:
        """How long its formula is."""
        return len(self.element)

    @property
    def formula(self) -> sympy.Expr:
        """It as sympy writes it."""
        return self.element.as_expr()

    def cos_pi(self) -> Polynomial:
        """Cosine of pi times a number that is a multiple of 2 / N."""
        return self._wave(1, 0)

    def sin_pi(self) -> Polynomial:
        """Sine of pi times a number that is a multiple of 2 / N."""
        return self._wave(-1, 3 * self.names.order // 4)

    def _wave(self, sign: int, turn: int) -> Polynomial:
        order, z = self.names.order, self.names.ring.gens[0]
        place = Fraction(str(self.element)) * order / 2
        if place.denominator != 1 or order % 4:
            raise ValueError(f"angle={self} pi is no multiple of a turn by order={order}")
        ahead, back = (z ** ((s * int(place) + turn) % order) for s in (1, -1))
        return self._like((ahead + sign * back) / 2)

    def _like(self, element: PolyElement) -> Polynomial:
        return Polynomial(self.names, element)

    def _with(self, operation: Callable[[Any, Any], PolyElement], a: Any, b: Any) -> Any:
        if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
            return NotImplemented  # an array does it for each of its elements
        return self._like(self.names.reduced(operation(self._of(a), self._of(b))))

    def _of(self, other: Any) -> PolyElement:
        return other.element if isinstance(other, Polynomial) else self.names.number(other)

    def __repr__(self) -> str:
        return str(self.element)

    def __neg__(self) -> Polynomial:
        return self._like(-self.element)

    def __add__(self, other: Any) -> Any:
        return self._with(operator.add, self, other)

    def __sub__(self, other: Any) -> Any:
        return self._with(operator.sub, self, other)

    def __rsub__(self, other: Any) -> Any:
        return self._with(operator.sub, other, self)

    def __mul__(self, other: Any) -> Any:
        return self._with(operator.mul, self, other)

    def __truediv__(self, other: Any) -> Polynomial:
        """By a plain number."""
        return self._like(self.element / self.names.number(other).LC)

    __radd__ = __add__
    __rmul__ = __mul__


def vanish(x: Array) -> bool:
    """True when every entry is 0 for all values of the names; plain numbers are compared."""
    return all(e.vanishes if isinstance(e, Polynomial) else e == 0 for e in np.ravel(x))


def inner(a: Array, b: Array) -> Any:
    """Sum of the products of all entries."""
    return np.sum(np.ravel(a) * np.ravel(b))
