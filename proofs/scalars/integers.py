"""z3 integer terms: sizes and indices without a bound."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import z3

from assay.proofs.laws import subterms
from assay.proofs.obligation import Premise
from assay.proofs.scalars.terms import Condition, Term


class Integer(Term):
    """A whole number; ``//`` and ``%`` are Python's where the divisor is positive."""

    __slots__ = ()

    @classmethod
    def constant(cls, x: Any) -> z3.ArithRef:
        """The numeral."""
        return z3.IntVal(int(x))

    @classmethod
    def sort(cls) -> z3.SortRef:
        """The sort of integers."""
        return z3.IntSort()

    @classmethod
    def apply(cls, operation: str, *terms: z3.ExprRef) -> z3.ExprRef:
        """Exact arithmetic; an integer has no exponential here."""
        a, b = terms[0], terms[-1]
        match operation:
            case "add":
                return a + b
            case "sub":
                return a - b
            case "mul":
                return a * b
            case "neg":
                return -a
            case "max":
                return z3.If(a >= b, a, b)
            case "floordiv":
                return a / b
            case "mod":
                return a % b
            case _:
                raise TypeError(f"operation={operation!r} of integers is not an integer")

    def __floordiv__(self, other: Any) -> Any:
        return self._with("floordiv", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._with("floordiv", other, self)

    def __mod__(self, other: Any) -> Any:
        return self._with("mod", self, other)

    def __le__(self, other: Any) -> Condition:
        return Condition(self.term <= Integer(other).term)

    def __ge__(self, other: Any) -> Condition:
        return Condition(self.term >= Integer(other).term)

    def __lt__(self, other: Any) -> Condition:
        return Condition(self.term < Integer(other).term)

    def __gt__(self, other: Any) -> Condition:
        return Condition(self.term > Integer(other).term)


def whole(name: str) -> Integer:
    """An integer variable."""
    return Integer(z3.Int(name))


def euclid(*terms: z3.ExprRef) -> Iterator[Premise]:
    """What division is, for each quotient and remainder in the terms: a = b q + r with 0 <= r < b,
    for b > 0.

    Solvers know it of constant divisors only.
    """
    for term in subterms(terms):
        if z3.is_app_of(term, z3.Z3_OP_IDIV) or z3.is_app_of(term, z3.Z3_OP_MOD):
            a, b = term.children()
            quotient = a / b
            rest = a - b * quotient if term.eq(quotient) else term
            known = z3.Implies(b > 0, z3.And(rest >= 0, rest < b, a == b * quotient + rest))
            yield Premise(rf"0 \le {a} - {b} q < {b}", known, "definition")
