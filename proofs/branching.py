"""Run Python code with branches on symbolic integers: every path, with the condition that it needs.

The code is run again for each path. A comparison of symbolic integers asks the solver which answers
are still possible; where both are, one is taken now and the other in a later run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import z3

T = TypeVar("T")


@dataclass
class _Trail:
    """One run: answers that are given, and what was decided."""

    given: tuple[bool, ...]
    conditions: list[z3.BoolRef] = field(default_factory=list)
    known: dict[int, bool] = field(default_factory=dict)
    taken: list[bool] = field(default_factory=list)
    open: list[tuple[bool, ...]] = field(default_factory=list)

    def decide(self, condition: z3.BoolRef) -> bool:
        """The answer on this path."""
        # The spec often asks again what it asked before: terms of the same text have the same id,
        # and those in ``conditions`` keep it.
        again = condition.get_id() in self.known
        answer = self.known[condition.get_id()] if again else self._answer(condition)
        self.taken.append(answer)
        if not again:
            self.conditions.append(condition if answer else z3.Not(condition))
            self.known[condition.get_id()] = answer
        return answer

    def _answer(self, condition: z3.BoolRef) -> bool:
        if len(self.taken) < len(self.given):
            return self.given[len(self.taken)]
        if not self._possible(condition):
            return False
        if self._possible(z3.Not(condition)):
            self.open.append((*self.taken, False))
        return True

    def _possible(self, condition: z3.BoolRef) -> bool:
        """False only when the solver has refuted it: a path too many does no harm."""
        solver = z3.Solver()
        solver.set("timeout", 500)
        return bool(solver.check(*self.conditions, condition) != z3.unsat)


_current: list[_Trail] = []


def paths(run: Callable[[], T]) -> Iterator[tuple[z3.BoolRef, T]]:
    """The condition and the result of every path of ``run``; the conditions cover all values.

    >>> x = Whole("x")
    >>> [(str(z3.simplify(c)), r) for c, r in paths(lambda: "low" if x < 1 else "high")]
    [('Not(1 <= x)', 'low'), ('1 <= x', 'high')]
    """
    waiting: list[tuple[bool, ...]] = [()]
    while waiting:
        trail = _Trail(waiting.pop())
        _current.append(trail)
        try:
            result = run()
        finally:
            _current.pop()
        waiting += trail.open
        yield z3.And(*trail.conditions), result


def decided(condition: z3.BoolRef) -> bool:
    """The answer to a condition on the path that is being run."""
    return _current[-1].decide(condition)


def _term(x: Any) -> z3.ArithRef:
    return x.term if isinstance(x, Whole) else z3.IntVal(int(x))


class Whole(int):
    """An int that stands for any integer, in code that asks for ints.

    What goes around Python's operators, such as ``math.isqrt``, sees the number 1. ``//`` and ``%``
    are meant for positive divisors.
    """

    term: z3.ArithRef

    def __new__(cls, term: str | z3.ArithRef) -> Whole:
        """The integer of this name, or the value of this term."""
        made = super().__new__(cls, 1)
        made.term = z3.Int(term) if isinstance(term, str) else term
        return made

    def __repr__(self) -> str:
        return str(self.term)

    def __format__(self, _: str) -> str:
        return str(self.term)

    def __hash__(self) -> int:
        return 1

    def __bool__(self) -> bool:
        return _current[-1].decide(self.term != 0)

    def __eq__(self, other: object) -> bool:
        return _current[-1].decide(self.term == _term(other))

    def __ne__(self, other: object) -> bool:
        return _current[-1].decide(self.term != _term(other))

    def __lt__(self, other: int) -> bool:
        return _current[-1].decide(self.term < _term(other))

    def __le__(self, other: int) -> bool:
        return _current[-1].decide(self.term <= _term(other))

    def __gt__(self, other: int) -> bool:
        return _current[-1].decide(self.term > _term(other))

    def __ge__(self, other: int) -> bool:
        return _current[-1].decide(self.term >= _term(other))

    def __abs__(self) -> Whole:
        return Whole(z3.If(self.term < 0, -self.term, self.term))

    def __add__(self, other: int) -> Whole:
        return Whole(self.term + _term(other))

    def __sub__(self, other: int) -> Whole:
        return Whole(self.term - _term(other))

    def __rsub__(self, other: int) -> Whole:
        return Whole(_term(other) - self.term)

    def __mul__(self, other: int) -> Whole:
        return Whole(self.term * _term(other))

    def __floordiv__(self, other: int) -> Whole:
        return Whole(self.term / _term(other))

    def __rfloordiv__(self, other: int) -> Whole:
        return Whole(_term(other) / self.term)

    def __mod__(self, other: int) -> Whole:
        return Whole(self.term % _term(other))

    def __rmod__(self, other: int) -> Whole:
        return Whole(_term(other) % self.term)

    __radd__ = __add__
    __rmul__ = __mul__
