"""One element that stands for a stretch of an axis of any length: how the spec's own body speaks of
all n.

An elementwise operation of the spec treats every index alike, so it acts on the formula of the
generic index j. A reduction becomes a fold: an uninterpreted function P of the prefix length with
P(0) = start and P(j + 1) = step(P(j), j). Statements about P follow by induction over the prefix
(``induction.py``). An axis may be empty, except where it is not masked at all: numpy's ``ones``
then says that a key is seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import z3

from assay.proofs.scalars.opaque import Opaque
from assay.proofs.scalars.reals import Real
from assay.proofs.scalars.terms import Condition, Term

T = TypeVar("T")
Index: TypeAlias = z3.ArithRef
GENERIC = z3.Int("j")


@dataclass(frozen=True)
class Fold:
    """A reduction over a prefix: value(0) = start, value(j + 1) = step(value(j), j)."""

    function: z3.FuncDeclRef
    start: z3.ExprRef
    step: Callable[[z3.ExprRef, Index], z3.ExprRef]

    def at(self, length: Any) -> z3.ExprRef:
        """The fold of the first ``length`` entries."""
        return self.function(z3.IntVal(length) if isinstance(length, int) else length)


class Axis:
    """An axis of ``length`` entries, any non-negative number, and the folds taken along it."""

    def __init__(self, name: str, kind: type[Term] = Real) -> None:
        self.name = name
        self.kind = kind
        self.length = z3.Int(f"n{name}")
        self.folds: dict[str, Fold] = {}
        self.taken: list[Fold] = []

    def values(self, name: str) -> Stretch:
        """Arbitrary entries ``name(j)``."""
        function = z3.Function(name, z3.IntSort(), self.kind.sort())
        return Stretch(self, lambda j: self.kind(function(j)))

    def mask(self, name: str) -> StretchMask:
        """Arbitrary conditions ``name(j)``."""
        function = z3.Function(name, z3.IntSort(), z3.BoolSort())
        return StretchMask(self, lambda j: Condition(function(j)))

    def same(self, value: Any) -> StretchMask:
        """The same truth value at every entry."""
        return StretchMask(self, lambda j: Condition(value))

    def folded(self, key: str, sort: z3.SortRef, start: z3.ExprRef, step: Any) -> Fold:
        """The reduction of this key; its first letters are the name that solvers see."""
        # The same formula is the same fold, so that two runs of the spec share it.
        if key not in self.folds:
            name = f"{key[:3]}{self.name}{len(self.folds)}"
            self.folds[key] = Fold(z3.Function(name, z3.IntSort(), sort), start, step)
        self.taken.append(self.folds[key])
        return self.folds[key]

    def record(self, run: Callable[[], T]) -> tuple[T, list[Fold]]:
        """The result of ``run`` and the folds that it took along this axis, in order."""
        start = len(self.taken)
        result = run()
        return result, self.taken[start:]

    def sum_of(self, x: Stretch) -> Fold:
        """Sums of the prefixes of x, from the left."""
        kind = type(x.at(GENERIC))
        return self.folded(
            f"sum {x.at(GENERIC).term.sexpr()}",
            kind.sort(),
            kind(0).term,
            lambda before, j: (kind(before) + x.at(j)).term,
        )

    def seen_of(self, allowed: StretchMask) -> Fold:
        """Whether a prefix holds an allowed entry."""
        return self.folded(
            f"any {allowed.at(GENERIC).term.sexpr()}",
            z3.BoolSort(),
            z3.BoolVal(False),
            lambda before, j: z3.Or(before, allowed.at(j).term),
        )

    def top_of(self, scores: Stretch, allowed: StretchMask) -> Fold:
        """Largest allowed score of the prefixes, by the loop of ``row_max``: the first one starts
        it.
        """
        seen, kind = self.seen_of(allowed), self.kind

        def step(before: z3.ExprRef, j: Index) -> z3.ExprRef:
            s = scores.at(j)
            better = Condition(seen.at(j)).select(kind(before).maximum(s), s)
            return Condition(allowed.at(j).term).select(better, kind(before)).term

        key = f"top {scores.at(GENERIC).term.sexpr()} {allowed.at(GENERIC).term.sexpr()}"
        return self.folded(key, kind.sort(), kind(0).term, step)


def _remembered(at: Callable[[Index], T]) -> Callable[[Index], T]:
    """``at``, calculated once for each index; the index is kept, so that its id stays its own."""
    known: dict[int, tuple[Index, T]] = {}

    def again(j: Index) -> T:
        key = j.get_id()
        if key not in known:
            known[key] = (j, at(j))
        return known[key][1]

    return again


def _body(x: Any, j: Index) -> Any:
    return x.at(j) if isinstance(x, Stretch | StretchMask) else x


class StretchMask:
    """Conditions along a stretch."""

    __slots__ = ("at", "axis")

    def __init__(self, axis: Axis, at: Callable[[Index], Condition]) -> None:
        self.axis, self.at = axis, _remembered(at)

    def select(self, yes: Any, no: Any) -> Any:
        """``yes`` where the condition holds, else ``no``, entry by entry."""
        for branch in (yes, no):
            if hasattr(branch, "slope"):  # a dual number chooses in both of its parts
                return branch.chosen(self, yes, no)

        def at(j: Index) -> Any:
            a, b = _body(yes, j), _body(no, j)
            plain = not any(isinstance(x, Term) for x in (a, b))
            return self.at(j).select(self.axis.kind(a) if plain else a, b)

        return Stretch(self.axis, at)

    def any_of(self) -> Condition:
        """Whether the stretch holds an allowed entry."""
        return Condition(self.axis.seen_of(self).at(self.axis.length))

    def __and__(self, other: Any) -> StretchMask:
        return StretchMask(self.axis, lambda j: self.at(j) & _body(other, j))

    def __or__(self, other: Any) -> StretchMask:
        return StretchMask(self.axis, lambda j: self.at(j) | _body(other, j))

    def __invert__(self) -> StretchMask:
        return StretchMask(self.axis, lambda j: ~self.at(j))

    __rand__ = __and__
    __ror__ = __or__


class Stretch:
    """Values along a stretch; arithmetic acts on the generic entry."""

    __slots__ = ("at", "axis")

    def __init__(self, axis: Axis, at: Callable[[Index], Term]) -> None:
        self.axis, self.at = axis, _remembered(at)

    def exp(self) -> Stretch:
        """Exponential of every entry."""
        return Stretch(self.axis, lambda j: self.at(j).exp())

    def maximum(self, other: Any) -> Stretch:
        """The larger of the two, entry by entry."""
        return Stretch(self.axis, lambda j: self.at(j).maximum(_body(other, j)))

    def total(self) -> Term:
        """Sum of the stretch."""
        return type(self.at(GENERIC))(self.axis.sum_of(self).at(self.axis.length))

    def count(self) -> Term:
        """Number of entries, as a sum of ones: a scalar of the same arithmetic."""
        return Stretch(self.axis, lambda _: self.axis.kind(1)).total()

    def row_max(self, scores: Any, allowed: Any) -> Term:
        """The number that the spec subtracts before the exponential.

        Over the reals it is an unknown function of the allowed scores, in any order, as their
        maximum is: what is proved does not need it to be the maximum. In an opaque arithmetic it is
        the loop over the row, which must then be this one stretch.
        """
        if self.axis.kind is not Opaque:
            pairs = ((_name(s), _name(a)) for s, a in zip(scores, allowed, strict=True))
            names = sorted(f"{s} {a}" for s, a in pairs if a not in ("false", "False"))
            return self.axis.kind(z3.Real(f"top[{'; '.join(names)}]"))
        if len(scores) != 1:
            raise ValueError(f"row of {len(scores)} elements must be one stretch")
        mask = allowed[0] if isinstance(allowed[0], StretchMask) else self.axis.same(allowed[0])
        return self.axis.kind(self.axis.top_of(self, mask).at(self.axis.length))

    def chosen(self, condition: Condition, yes: Any, no: Any) -> Stretch:
        """One condition for the whole stretch."""
        return Stretch(self.axis, lambda j: condition.select(_body(yes, j), _body(no, j)))

    def _with(self, f: Callable[[Any, Any], Any], a: Any, b: Any) -> Stretch:
        return Stretch(self.axis, lambda j: f(_body(a, j), _body(b, j)))

    def __neg__(self) -> Stretch:
        return Stretch(self.axis, lambda j: -self.at(j))

    def __add__(self, other: Any) -> Stretch:
        return self._with(lambda a, b: a + b, self, other)

    def __radd__(self, other: Any) -> Stretch:
        return self._with(lambda a, b: a + b, other, self)

    def __sub__(self, other: Any) -> Stretch:
        return self._with(lambda a, b: a - b, self, other)

    def __rsub__(self, other: Any) -> Stretch:
        return self._with(lambda a, b: a - b, other, self)

    def __mul__(self, other: Any) -> Stretch:
        return self._with(lambda a, b: a * b, self, other)

    def __rmul__(self, other: Any) -> Stretch:
        return self._with(lambda a, b: a * b, other, self)

    def __truediv__(self, other: Any) -> Stretch:
        return self._with(lambda a, b: a / b, self, other)

    def __rtruediv__(self, other: Any) -> Stretch:
        return self._with(lambda a, b: a / b, other, self)


def _name(x: Any) -> str:
    term = x.at(GENERIC) if isinstance(x, Stretch | StretchMask) else x
    return str(term.term.sexpr() if isinstance(term, Term | Condition) else term)
