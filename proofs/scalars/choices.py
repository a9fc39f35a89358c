"""Real terms for code that compares its numbers: each comparison is decided, path by path.

``branching.paths`` runs the code once for every way its comparisons may come out.
"""

from __future__ import annotations

import math
from typing import Any

import z3

from assay.proofs.branching import decided
from assay.proofs.scalars.reals import SQRT, Real


class Choice(Real):
    """A real number whose comparisons are Python's True or False on each path."""

    __slots__ = ()

    def _beside(self, other: Any) -> z3.ArithRef | None:
        """The other side of a comparison; None for an infinite or undefined number."""
        if isinstance(other, float) and not math.isfinite(other):
            return None
        return Real(other).term

    def __eq__(self, other: object) -> bool:
        beside = self._beside(other)
        return beside is not None and decided(self.term == beside)

    def __lt__(self, other: Any) -> bool:
        beside = self._beside(other)
        return bool(other > 0) if beside is None else decided(self.term < beside)

    def __gt__(self, other: Any) -> bool:
        beside = self._beside(other)
        return bool(other < 0) if beside is None else decided(self.term > beside)

    def __le__(self, other: Any) -> Any:
        return not self > other

    def __ge__(self, other: Any) -> Any:
        return not self < other

    def __bool__(self) -> bool:
        return decided(self.term != 0)

    def __hash__(self) -> int:
        return self.term.hash()

    def __abs__(self) -> Choice:
        return Choice(z3.If(self.term >= 0, self.term, -self.term))

    def __truediv__(self, other: Any) -> Any:
        undefined = isinstance(other, float) and math.isnan(other)
        return math.nan if undefined else super().__truediv__(other)

    def expm1(self) -> Choice:
        """exp(x) - 1."""
        return self.exp() - 1

    def sqrt(self) -> Choice:
        """Square root, of which only the laws are known that a query states."""
        return Choice(SQRT(self.term))


def choice(name: str) -> Choice:
    """A real variable."""
    return Choice(z3.Real(name))
