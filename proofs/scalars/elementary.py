"""Rational functions of given names and of exp, tanh and log(1 + exp) of such functions, with their
derivatives.

Every value of an elementary function gets a name of its own, of which only the derivative is known.
exp(a) is s / (1 - s) with s = sigmoid(a), so that gates are polynomials. What is equal in this
normal form is equal for all values of the names; that it is not 0 is told by a value that is not.

A comparison with 0 is left open: both branches are carried on, side by side, until they are the
same function again, as those of a stable form are.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import sympy
from jaxtyping import Shaped

from assay.proofs.scalars.balls import Ball, precision
from assay.proofs.scalars.named import arranged, entries
from assay.proofs.scalars.ratios import Ratio, Ring
from assay.proofs.scalars.symbols import Symbolic, expression

Array = Shaped[np.ndarray, "..."]
ROOM = 32
"""How many values of elementary functions one calculation may make."""
BITS = 200
SHORT = 4
"""Terms of a function that is written out."""


class Kind(NamedTuple):
    """An elementary function: of scalars of any interpretation, and in LaTeX of an argument."""

    function: Callable[[Any], Any]
    written: str


SIGMOID = Kind(lambda x: 1 / (1 + (-x).exp()), r"\sigma\left(%s\right)")
TANH = Kind(lambda x: x.tanh(), r"\tanh\left(%s\right)")
SOFTPLUS = Kind(lambda x: x.exp().log1p(), r"\ln\left(1 + e^{%s}\right)")


class Made(NamedTuple):
    """A value of an elementary function: its name, that name's place, its argument, and its
    derivative by that.
    """

    kind: Kind
    name: Ratio
    place: int
    argument: Ratio
    rate: Ratio


class Functions:
    """Arrays of distinct names, by their shapes, and the functions of all of them.

    >>> functions = Functions(x=(2,))
    >>> x, y = functions["x"]
    >>> (x.exp() * (-x).exp() - 1).vanishes, (x.tanh() * y).derivative(y)
    (True, tanh(x0))
    """

    def __init__(self, **shapes: tuple[int, ...]) -> None:
        self.shapes = shapes
        self.names = entries(shapes)
        self.ring = Ring([*self.names, *(f"value {i}" for i in range(ROOM))])
        self.made: dict[tuple[str, str], Made] = {}
        self.slopes: dict[tuple[str, int], Ratio] = {}

    @cached_property
    def arrays(self) -> Mapping[str, Array]:
        """The names, each in its shape."""
        return arranged(self.shapes, (Elementary(self, x) for x in self.ring.generators))

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name]

    def sigmoid(self, a: Ratio) -> Ratio:
        """1 / (1 + exp(-a)), which at -a is 1 less that."""
        mirrored = self._made(SIGMOID, -a)
        return (
            1 - mirrored if mirrored is not None else self._make(SIGMOID, a, lambda s: s * (1 - s))
        )

    def tanh(self, a: Ratio) -> Ratio:
        """Hyperbolic tangent, which is odd."""
        mirrored = self._made(TANH, -a)
        return -mirrored if mirrored is not None else self._make(TANH, a, lambda t: 1 - t * t)

    def softplus(self, a: Ratio) -> Ratio:
        """log(1 + exp(a)), which at -a is a less."""
        mirrored, gate = self._made(SOFTPLUS, -a), self.sigmoid(a)
        return mirrored + a if mirrored is not None else self._make(SOFTPLUS, a, lambda _: gate)

    def logarithm(self, x: Ratio) -> Ratio:
        """The a of which x is the exponential; ValueError where x was not made as one."""
        gate = (x / (1 + x)).key
        for made in self.made.values():
            if made.kind is SIGMOID and gate in (made.name.key, (1 - made.name).key):
                return made.argument if gate == made.name.key else -made.argument
        raise ValueError(f"log1p of x={x}: only of an exponential of this calculation")

    def slope(self, x: Ratio, place: int) -> Ratio:
        """The derivative by the name at this place, by the chain rule."""
        known = (x.key, place)
        if known not in self.slopes:
            slope = x.derivative(place)
            for made in self.made.values():
                outer = x.derivative(made.place)
                if outer:
                    slope += outer * made.rate * self.slope(made.argument, place)
            self.slopes[known] = slope
        return self.slopes[known]

    def value(self, x: Ratio, names: list[Any]) -> Any:
        """The function at scalars of any interpretation, one for each name."""
        scalars = [*names, *(names[0] * 0 for _ in range(ROOM))]
        for made in self.made.values():
            scalars[made.place] = made.kind.function(made.argument.at(scalars))
        return x.at(scalars)

    def formula(self, x: Ratio) -> sympy.Expr:
        """Its factors as sympy writes them, values of elementary functions by their names."""
        values = [f"v{i + 1}" for i in range(ROOM)]
        symbols = _symbols([*self.names, *values])
        return sympy.Mul(*(expression(part.at(symbols)) ** power for part, power in x.factors()))

    def definitions(self) -> Iterator[str]:
        """What the names of values in a ``formula`` stand for, in LaTeX."""
        for kind, name, _, argument, _ in self.made.values():
            inner = sympy.latex(self.formula(argument))
            yield f"{sympy.latex(self.formula(name))} = {kind.written % inner}"

    def _made(self, kind: Kind, a: Ratio) -> Ratio | None:
        made = self.made.get((kind.written, a.key))
        return made.name if made else None

    def _make(self, kind: Kind, a: Ratio, rate: Callable[[Ratio], Ratio]) -> Ratio:
        known = self._made(kind, a)
        if known is not None:
            return known
        if len(self.made) == ROOM:
            raise ValueError(f"more than ROOM={ROOM} values of elementary functions")
        place = len(self.names) + len(self.made)
        name = self.ring.generators[place]
        self.made[kind.written, a.key] = Made(kind, name, place, a, rate(name))
        return name


def _symbols(names: list[str]) -> list[Symbolic]:
    # sympy would set what follows an underscore as an index.
    return [Symbolic(sympy.Symbol(name.replace("_", ""), real=True)) for name in names]


class Elementary:
    """One of the ``functions``; plain numbers mix in."""

    __slots__ = ("functions", "ratio")

    def __init__(self, functions: Functions, ratio: Ratio) -> None:
        self.functions, self.ratio = functions, ratio

    def exp(self) -> Elementary:
        """Exponential."""
        s = self.functions.sigmoid(self.ratio)
        return self._like(s / (1 - s))

    def tanh(self) -> Elementary:
        """Hyperbolic tangent."""
        return self._like(self.functions.tanh(self.ratio))

    def log1p(self) -> Elementary:
        """log(1 + x), where x is an exponential."""
        return self._like(self.functions.softplus(self.functions.logarithm(self.ratio)))

    def derivative(self, name: Elementary) -> Elementary:
        """The partial derivative by one of the names."""
        place = self.functions.names.index(str(name.ratio))
        return self._like(self.functions.slope(self.ratio, place))

    @property
    def vanishes(self) -> bool:
        """True when it is 0 for all values of the names, False when it is not at 1/2, 1/3, ...

        Raises ValueError where neither is known.
        """
        if not self.ratio:
            return True
        if self._sample().contains(0):
            raise ValueError(f"ratio={self.ratio} may be 0")
        return False

    @property
    def terms(self) -> int:
        """How long its formula is."""
        return self.ratio.terms

    @property
    def formula(self) -> sympy.Expr:
        """It as sympy writes it; ``definitions`` says what it speaks of beside the names."""
        return self.functions.formula(self.ratio)

    @property
    def definitions(self) -> tuple[str, ...]:
        """The values of elementary functions that were made so far, in LaTeX."""
        return tuple(self.functions.definitions())

    def _sample(self) -> Ball:
        """Its value where the names are 1/2, 1/3, ..."""
        with precision(BITS):
            names = [Ball(Fraction(1, 2 + i)) for i in range(len(self.functions.names))]
            found: Ball = self.functions.value(self.ratio, names)
            return found

    def _like(self, ratio: Ratio) -> Elementary:
        return Elementary(self.functions, ratio)

    def _with(self, operation: Callable[[Any, Any], Ratio], a: Any, b: Any) -> Any:
        if any(isinstance(x, np.ndarray | Sides) for x in (a, b)):
            return NotImplemented  # they do it for each of their elements
        parts = (x.ratio if isinstance(x, Elementary) else x for x in (a, b))
        return self._like(operation(*parts))

    def __le__(self, other: Any) -> Sign:
        return Sign(self - other)

    def __repr__(self) -> str:
        if self.terms > SHORT:
            value = float(self._sample().value.mid())
            return f"{value:.3g} where the names are 1/2, 1/3, ..."
        names = _symbols(self.functions.names)
        return str(expression(self.functions.value(self.ratio, names)))

    def __neg__(self) -> Elementary:
        return self._like(-self.ratio)

    def __add__(self, other: Any) -> Any:
        return self._with(operator.add, self, other)

    def __sub__(self, other: Any) -> Any:
        return self._with(operator.sub, self, other)

    def __rsub__(self, other: Any) -> Any:
        return self._with(operator.sub, other, self)

    def __mul__(self, other: Any) -> Any:
        return self._with(operator.mul, self, other)

    def __truediv__(self, other: Any) -> Any:
        return self._with(operator.truediv, self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._with(operator.truediv, other, self)

    __radd__ = __add__
    __rmul__ = __mul__


class Sign:
    """Whether ``point`` is at most 0."""

    __slots__ = ("point",)

    def __init__(self, point: Elementary) -> None:
        self.point = point

    def select(self, yes: Any, no: Any) -> Any:
        """``yes`` where it is, else ``no``."""
        return Sides(self.point, self.part(yes, 0), self.part(no, 1)).joined()

    def part(self, x: Any, side: int) -> Elementary:
        """What x is on one side: side 0 is at most 0."""
        if isinstance(x, Sides):
            if x.point.ratio.key != self.point.ratio.key:
                raise ValueError(f"{x} and point={self.point} are of two comparisons")
            return x.parts[side]
        return x if isinstance(x, Elementary) else self.point * 0 + x


class Sides:
    """A function that is one formula where ``point`` is at most 0 and another one beyond."""

    __slots__ = ("parts", "point")

    def __init__(self, point: Elementary, below: Elementary, above: Elementary) -> None:
        self.point, self.parts = point, (below, above)

    def joined(self) -> Sides | Elementary:
        """One formula where both are the same."""
        below, above = self.parts
        return below if below.ratio.key == above.ratio.key else self

    def _each(self, operation: Callable[..., Any], *operands: Any) -> Any:
        if any(isinstance(x, np.ndarray) for x in operands):
            return NotImplemented
        sign = Sign(self.point)
        sides = (operation(*(sign.part(x, side) for x in operands)) for side in (0, 1))
        return Sides(self.point, *sides).joined()

    def exp(self) -> Any:
        """Exponential."""
        return self._each(Elementary.exp, self)

    def log1p(self) -> Any:
        """log(1 + x), where x is an exponential."""
        return self._each(Elementary.log1p, self)

    def __repr__(self) -> str:
        below, above = self.parts
        return f"({below} if {self.point} <= 0 else {above})"

    def __add__(self, other: Any) -> Any:
        return self._each(operator.add, self, other)

    def __mul__(self, other: Any) -> Any:
        return self._each(operator.mul, self, other)

    def __truediv__(self, other: Any) -> Any:
        return self._each(operator.truediv, self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._each(operator.truediv, other, self)

    __radd__ = __add__
    __rmul__ = __mul__
