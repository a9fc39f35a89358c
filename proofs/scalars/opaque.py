"""Terms of an unknown arithmetic: nothing is known of +, -, *, /, <= and exp, tanh, log1p except
that they are functions.

What is proved of these terms holds bit for bit in every arithmetic, IEEE with NaN and infinity
included, as long as the operations are carried out in the spec's order.
"""

from __future__ import annotations

from typing import Any

import z3

from assay.proofs.scalars.terms import Condition, Term

SCALAR = z3.DeclareSort("Scalar")
ARITY = {"add": 2, "sub": 2, "mul": 2, "div": 2, "max": 2, "neg": 1, "exp": 1}
ARITY |= {"tanh": 1, "log1p": 1}
# The prefix keeps them apart from the operations that solvers know.
OPERATIONS = {name: z3.Function(f"op {name}", *[SCALAR] * (n + 1)) for name, n in ARITY.items()}
AT_MOST = z3.Function("op at most", SCALAR, SCALAR, z3.BoolSort())


class Opaque(Term):
    """A value of the unknown arithmetic; each plain number is a constant named after it."""

    __slots__ = ()

    @classmethod
    def constant(cls, x: Any) -> z3.ExprRef:
        """The constant of a plain number."""
        return z3.Const(f"#{float(x)!r}", SCALAR)

    @classmethod
    def sort(cls) -> z3.SortRef:
        """The uninterpreted sort."""
        return SCALAR

    @classmethod
    def apply(cls, operation: str, *terms: z3.ExprRef) -> z3.ExprRef:
        """The uninterpreted operation."""
        return OPERATIONS[operation](*terms)

    def tanh(self) -> Opaque:
        """Hyperbolic tangent."""
        return Opaque(self.apply("tanh", self.term))

    def log1p(self) -> Opaque:
        """log(1 + x)."""
        return Opaque(self.apply("log1p", self.term))

    def __le__(self, other: Any) -> Condition:
        return Condition(AT_MOST(self.term, Opaque(other).term))


def opaque(name: str) -> Opaque:
    """A variable of the unknown arithmetic."""
    return Opaque(z3.Const(name, SCALAR))
