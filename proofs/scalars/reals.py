"""z3 real terms. exp, log and the square root are uninterpreted functions: what is used of them are
the ground instances of their laws.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import z3

from assay.proofs.scalars.terms import Condition, Term

EXP = z3.Function("exponential", z3.RealSort(), z3.RealSort())
LOG = z3.Function("logarithm", z3.RealSort(), z3.RealSort())
SQRT = z3.Function("square root", z3.RealSort(), z3.RealSort())


class Real(Term):
    """A real number of exact arithmetic."""

    __slots__ = ()

    @classmethod
    def constant(cls, x: Any) -> z3.ArithRef:
        """The exact value of a Python or numpy number."""
        exact = Fraction(x) if isinstance(x, int | Fraction) else Fraction(float(x))
        return z3.RealVal(f"{exact.numerator}/{exact.denominator}")

    def log(self) -> Real:
        """Natural logarithm; known of positive numbers only."""
        return Real(LOG(z3.simplify(self.term, som=True)))

    def sqrt(self) -> Real:
        """Square root; known of numbers that are not negative."""
        return Real(SQRT(z3.simplify(self.term, som=True)))

    def __le__(self, other: Any) -> Condition:
        return Condition(self.term <= Real(other).term)

    def __ge__(self, other: Any) -> Condition:
        return Condition(self.term >= Real(other).term)

    @classmethod
    def sort(cls) -> z3.SortRef:
        """The sort of reals."""
        return z3.RealSort()

    @classmethod
    def apply(cls, operation: str, *terms: z3.ExprRef) -> z3.ExprRef:
        """Exact arithmetic; exp of the simplified argument, so that equal arguments give one
        term.
        """
        a, b = terms[0], terms[-1]
        match operation:
            case "add":
                return a + b
            case "sub":
                return a - b
            case "mul":
                return a * b
            case "div":
                return a / b
            case "neg":
                return -a
            case "max":
                return z3.If(a >= b, a, b)
            case _:
                return EXP(z3.simplify(a, som=True))


def real(name: str) -> Real:
    """A real variable."""
    return Real(z3.Real(name))
