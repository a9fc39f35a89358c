"""Solver terms that numpy can calculate with: what real, opaque and IEEE terms have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
import z3


class Condition:
    """A z3 truth value: the mask entry of a symbolic row."""

    __slots__ = ("term",)

    def __init__(self, term: Any) -> None:
        self.term = term if z3.is_expr(term) else z3.BoolVal(bool(term))

    @staticmethod
    def of(x: Any) -> z3.BoolRef:
        """The term of a condition or a Python truth value."""
        return x.term if isinstance(x, Condition) else z3.BoolVal(bool(x))

    def select(self, yes: Any, no: Any) -> Any:
        """``yes`` where the condition holds, else ``no``."""
        for branch in sorted((yes, no), key=lambda b: not hasattr(b, "slope")):
            if hasattr(branch, "chosen"):
                return branch.chosen(self, yes, no)
        if yes == no:
            return yes
        raise TypeError(f"yes={yes!r} or no={no!r} must be a term")

    def __repr__(self) -> str:
        return f"Condition({self.term})"

    def __and__(self, other: Any) -> Any:
        if not isinstance(other, Condition | bool | np.bool_):
            return NotImplemented
        return Condition(z3.And(self.term, Condition.of(other)))

    def __or__(self, other: Any) -> Any:
        if not isinstance(other, Condition | bool | np.bool_):
            return NotImplemented
        return Condition(z3.Or(self.term, Condition.of(other)))

    def __invert__(self) -> Condition:
        return Condition(z3.Not(self.term))

    __rand__ = __and__
    __ror__ = __or__


class Term(ABC):
    """A z3 term with the spec's scalar operations. Subclasses say what each of them means."""

    __slots__ = ("term",)
    term: Any

    def __init__(self, term: Any) -> None:
        inner = term.term if isinstance(term, Term) else term
        self.term = inner if z3.is_expr(inner) else self.constant(inner)

    @classmethod
    @abstractmethod
    def constant(cls, x: Any) -> z3.ExprRef:
        """The z3 value of a plain number."""

    @classmethod
    @abstractmethod
    def sort(cls) -> z3.SortRef:
        """The z3 sort of these terms."""

    @classmethod
    @abstractmethod
    def apply(cls, operation: str, *terms: z3.ExprRef) -> z3.ExprRef:
        """The term of add, sub, mul, div, neg, exp or max."""

    def exp(self) -> Self:
        """Exponential."""
        return type(self)(self.apply("exp", self.term))

    def maximum(self, other: Any) -> Any:
        """The larger of the two."""
        return self._with("max", self, other)

    def chosen(self, condition: Condition, yes: Any, no: Any) -> Any:
        """``yes`` where the condition holds, else ``no``."""
        for branch in (yes, no):
            if not isinstance(branch, Term) and hasattr(branch, "chosen"):
                return branch.chosen(condition, yes, no)
        return type(self)(z3.If(condition.term, type(self)(yes).term, type(self)(no).term))

    def _with(self, operation: str, a: Any, b: Any) -> Any:
        # A stretch of an axis, and an array, decide for themselves.
        if any(hasattr(x, "total") or isinstance(x, np.ndarray) for x in (a, b)):
            return NotImplemented
        kind = type(self)
        return kind(self.apply(operation, kind(a).term, kind(b).term))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.term})"

    def __neg__(self) -> Self:
        return type(self)(self.apply("neg", self.term))

    def __add__(self, other: Any) -> Any:
        return self._with("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return self._with("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return self._with("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return self._with("sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return self._with("mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return self._with("mul", other, self)

    def __truediv__(self, other: Any) -> Any:
        return self._with("div", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._with("div", other, self)


def row(*elements: Any) -> np.ndarray:
    """Object array of one axis."""
    result = np.empty(len(elements), dtype=object)
    result[:] = elements
    return result
