"""Induction over the prefixes of a stretch: one predicate gives base and step, so that they cannot
drift.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import z3

from assay.proofs.obligation import Premise, Query
from assay.proofs.scalars.stretches import Axis, Fold

K = z3.Int("k")
Predicate = Callable[[Any], z3.BoolRef]
Pointwise = Callable[[Any], Sequence[Premise]]


def nothing(_: Any) -> Sequence[Premise]:
    """No pointwise premises."""
    return ()


def folds_of(*axes: Axis) -> tuple[Fold, ...]:
    """The folds along all these axes."""
    return tuple(fold for axis in axes for fold in axis.folds.values())


def starts(axis: Axis) -> list[Premise]:
    """Every fold of an empty prefix."""
    return [
        Premise(f"{f.function.name()}(0)", f.at(0) == f.start, "definition")
        for f in axis.folds.values()
    ]


def unfoldings(axis: Axis, k: Any) -> list[Premise]:
    """Every fold of a prefix that is one entry longer than ``k``."""
    return [
        Premise(f"{f.function.name()}(k+1)", f.at(k + 1) == f.step(f.at(k), k), "definition")
        for f in axis.folds.values()
    ]


def by_induction(
    name: str,
    axis: Axis,
    predicate: Predicate,
    *,
    pointwise: Pointwise = nothing,
    premises: Sequence[Premise] = (),
    witness: Mapping[str, Any] | None = None,
    others: Sequence[Axis] = (),
) -> tuple[list[Query], Premise]:
    """The two queries that prove ``predicate`` of every prefix length, and the lemma they give.

    pointwise  premises about the entry at an index, taken at the step's index k
    premises   facts that do not speak of the index
    others     further axes that the premises speak of
    """
    # First, since the predicate may name folds that did not exist before.
    at_start, at_k, at_next = predicate(0), predicate(K), predicate(K + 1)
    folds, values = folds_of(axis, *others), {"k": 1, **(witness or {})}
    inside = Premise("0 <= k < n", z3.And(K >= 0, axis.length > K), "definition")
    step = [
        inside,
        Premise("hypothesis at k", at_k, "lemma"),
        *unfoldings(axis, K),
        *pointwise(K),
        *premises,
    ]
    base = (*premises, *starts(axis))
    lemma = Premise(f"by induction: {name}", predicate(axis.length), "lemma")
    return [
        Query(f"{name}, base", at_start, base, values, folds),
        Query(f"{name}, step", at_next, tuple(step), values, folds),
    ], lemma


def agreement(
    axis: Axis,
    first: Sequence[Fold],
    second: Sequence[Fold],
    pointwise: Pointwise = nothing,
    premises: Sequence[Premise] = (),
    witness: Mapping[str, Any] | None = None,
    others: Sequence[Axis] = (),
) -> tuple[list[Query], list[Premise]]:
    """Two runs of one body take the same folds: each pair agrees, by induction, given those before
    it.
    """
    queries: list[Query] = []
    lemmas: list[Premise] = []
    done: list[tuple[Fold, Fold]] = []
    for f, g in zip(first, second, strict=True):
        if f is not g and (f, g) not in done:
            more, lemma = by_induction(
                f"{f.function.name()} agrees with {g.function.name()}",
                axis,
                partial(_agree, f, g),
                pointwise=partial(_at_entry, pointwise, tuple(done)),
                premises=[*premises, *lemmas],
                witness=witness,
                others=others,
            )
            queries += more
            lemmas.append(lemma)
            done.append((f, g))
    return queries, lemmas


def _at_entry(pointwise: Pointwise, done: Sequence[tuple[Fold, Fold]], k: Any) -> list[Premise]:
    """What is given at k, and the pairs that agree at every prefix, so at k as well."""
    before = [Premise("an earlier fold agrees at k", _agree(f, g, k), "lemma") for f, g in done]
    return [*pointwise(k), *before]


def generalised(query: Query, term: z3.ExprRef, name: str) -> Query:
    """The stronger query with a free name in place of ``term``: what holds of any value holds of
    it.
    """
    free = z3.Const(name, term.sort())
    premises = tuple(replace(p, term=z3.substitute(p.term, (term, free))) for p in query.premises)
    goal = z3.substitute(query.goal, (term, free))
    return replace(query, goal=goal, premises=premises, witness={**query.witness, name: term})


def _agree(f: Fold, g: Fold, m: Any) -> z3.BoolRef:
    return f.at(m) == g.at(m)
