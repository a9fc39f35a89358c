"""Inputs that stand for any number of steps: how the loops over time speak of every length.

A loop over a stretch of inputs is its body, taken once for each of them. So the states before each
input are a fold: S(0) is the state that the stretch starts from, and S(k + 1) is what the body
makes of S(k) and input k. A stretch counts as one input of the spec's loop, whose body then takes
all of its steps at once; what that one pass appends stands for one output a step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import z3

from assay.proofs.scalars.reals import Real
from assay.proofs.scalars.stretches import GENERIC, Axis, Fold, Index, Stretch

STATE, INPUT, OUTPUT = (z3.DeclareSort(name) for name in ("State", "Input", "Output"))
NEXT = z3.Function("next", STATE, INPUT, STATE)
EMIT = z3.Function("emit", STATE, INPUT, OUTPUT)
COURSE = (
    "a loop over a stretch of inputs is its body, once for each: one pass stands for all of them",
)


@dataclass(frozen=True)
class Inputs:
    """Any number of arbitrary inputs x(0), x(1), ..."""

    axis: Axis
    at: Callable[[Index], z3.ExprRef]

    def states(self, start: z3.ExprRef) -> Fold:
        """The states before each of them, from ``start``."""
        key = f"state {start.sexpr()} {self.at(GENERIC).sexpr()}"
        return self.axis.folded(key, STATE, start, lambda before, j: NEXT(before, self.at(j)))


@dataclass(frozen=True)
class Outputs:
    """What a stretch of inputs gives, one output each."""

    axis: Axis
    at: Callable[[Index], z3.ExprRef]


def inputs(name: str) -> Inputs:
    """A stretch of its own length, of which nothing is known."""
    function = z3.Function(f"x{name}", z3.IntSort(), INPUT)
    return Inputs(Axis(name), lambda j: function(j))


def joined(name: str, first: Inputs, second: Inputs) -> Inputs:
    """The inputs of both, as one stretch. Its length is a name: say that it is the sum."""
    n = first.axis.length
    return Inputs(Axis(name), lambda j: z3.If(j < n, first.at(j), second.at(j - n)))


def step(state: z3.ExprRef, x: Any) -> tuple[z3.ExprRef, Any]:
    """An arbitrary step of an arbitrary state, taken once, or once for each input of a stretch."""
    if not isinstance(x, Inputs):
        return NEXT(state, x), EMIT(state, x)
    states = x.states(state)
    outputs = Outputs(x.axis, lambda j: EMIT(states.at(j), x.at(j)))
    return states.at(x.axis.length), outputs


class Factors:
    """The factors a(j) of a stretch of affine steps h -> a h + v."""

    __slots__ = ("values",)

    def __init__(self, values: Stretch) -> None:
        self.values = values

    def __mul__(self, state: Any) -> Moved:
        return Moved(self.values, Real(state))


@dataclass(frozen=True)
class Moved:
    """A state under a stretch of factors, to which what is added at each step is still missing."""

    factors: Stretch
    start: Real

    def __add__(self, added: Stretch) -> Course:
        axis, factors = self.factors.axis, self.factors
        name = " ".join(x.at(GENERIC).term.sexpr() for x in (factors, added))

        def after(before: z3.ExprRef, j: Index) -> z3.ExprRef:
            return (factors.at(j) * Real(before) + added.at(j)).term

        start = self.start.term
        return Course(axis, axis.folded(f"run {start.sexpr()} {name}", z3.RealSort(), start, after))


class Course(Real):
    """All states of a stretch of steps; as a number it is the last of them."""

    __slots__ = ("axis", "states")

    def __init__(self, axis: Axis, states: Fold) -> None:
        super().__init__(states.at(axis.length))
        self.axis, self.states = axis, states
