"""Symbolic rows for the theorems, and the one lemma that most of them need: the mass is
positive.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import z3

from assay.proofs.induction import by_induction, folds_of, starts
from assay.proofs.obligation import Premise, Query
from assay.proofs.scalars.reals import Real, real
from assay.proofs.scalars.stretches import Axis, Fold, Stretch, StretchMask
from assay.proofs.scalars.terms import Condition, row
from assay.spec.softmax import masked_softmax

Softmax = Callable[[np.ndarray, np.ndarray], np.ndarray]
J = z3.Int("j")


def condition(name: str) -> Condition:
    """A boolean variable."""
    return Condition(z3.Bool(name))


def inside(axis: Axis, j: Any = J) -> Premise:
    """j is an index of the axis."""
    return Premise(rf"0 \le j < {axis.length}", z3.And(j >= 0, j < axis.length), "definition")


def concrete(n: int, tag: str = "") -> tuple[np.ndarray, np.ndarray]:
    """A row of n real scores and n mask entries."""
    scores = row(*[real(f"s{tag}{i}") for i in range(n)])
    return scores, row(*[condition(f"a{tag}{i}") for i in range(n)])


class SoftmaxRow:
    """``masked_softmax`` of a row of any length, with the facts about its mass by induction.

    weights  the stretch of results; w(j) is its term at j
    mass     the fold that the spec divides by, where a key is seen
    seen     the fold that says whether a key is allowed
    """

    def __init__(self, axis: Axis, scores: Stretch, allowed: StretchMask) -> None:
        self.axis, self.allowed = axis, allowed
        self.top = scores.row_max([scores], [allowed]).term
        before = set(axis.folds)
        self.weights: Stretch = masked_softmax(row(scores), row(allowed))[0]
        new = [f for key, f in axis.folds.items() if key not in before and key.startswith("sum")]
        self.mass: Fold = new[0]
        self.seen: Fold = axis.seen_of(allowed)

    def w(self, j: Any) -> Any:
        """The weight at j, a z3 term."""
        return self.weights.at(j).term

    def facts(self, m: Any) -> z3.BoolRef:
        """The mass of m keys is positive when one of them is allowed, as j is, and 0 otherwise."""
        mass, seen = self.mass.at(m), self.seen.at(m)
        among = z3.And(J >= 0, m > J, self.allowed.at(J).term)
        return z3.And(z3.If(seen, mass > 0, mass == 0), z3.Implies(among, seen))

    def positive_mass(self) -> tuple[list[Query], Premise]:
        """The lemma ``facts(n)``."""
        return by_induction("the mass is positive where a key is seen", self.axis, self.facts)


def general(
    name: str, goal: z3.BoolRef, premises: Sequence[Premise], *axes: Axis, **witness: Any
) -> Query:
    """A query about the generic index j of rows of any length, with everything about empty
    prefixes.
    """
    known = [p for axis in axes for p in starts(axis)]
    return Query(name, goal, (*premises, *known), {"j": 1, **witness}, folds_of(*axes))


def real_row(name: str = "S") -> tuple[Axis, Stretch, StretchMask]:
    """An axis of any length, with arbitrary real scores and mask."""
    axis = Axis(name, Real)
    return axis, axis.values("s"), axis.mask("a")
