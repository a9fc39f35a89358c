"""Masked softmax over the reals, for rows of any length."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import z3

from assay.proofs.induction import by_induction
from assay.proofs.mutants import mutant
from assay.proofs.obligation import Obligation, Premise, Query, Twin
from assay.proofs.scalars.reals import EXP, real
from assay.proofs.scalars.stretches import Axis
from assay.proofs.scalars.terms import row
from assay.proofs.theorems.rows import (
    J,
    Softmax,
    SoftmaxRow,
    concrete,
    general,
    inside,
    real_row,
)
from assay.spec.softmax import masked_softmax, penalty_softmax, sentinel_softmax

ANY_ROW = "any row length n >= 0, real scores, mask, and shift in place of the row maximum"
SUMS = (
    "a sum is the left fold: sum(0) = 0, sum(j + 1) = sum(j) + x(j)",
    "induction over the natural numbers",
)


def row_sum() -> Iterator[Query]:
    """Weights are >= 0 and sum to 1, or all are 0."""
    axis, scores, allowed = real_row()
    r = SoftmaxRow(axis, scores, allowed)
    n, total = axis.length, axis.sum_of(r.weights)
    queries, positive = r.positive_mass()
    yield from queries
    divisor = z3.If(r.seen.at(n), r.mass.at(n), 1)
    queries, shares = by_induction(
        "partial sums of the weights are shares of the mass",
        axis,
        lambda m: total.at(m) * divisor == r.mass.at(m),
        premises=[positive],
    )
    yield from queries
    one = total.at(n) == z3.If(r.seen.at(n), z3.RealVal(1), z3.RealVal(0))
    yield general("the sum", one, [positive, shares], axis)
    yield general("no weight is negative", r.w(J) >= 0, [positive, inside(axis)], axis)


def row_sum_of(f: Softmax) -> Iterator[Query]:
    """The sum of two weights of a given softmax."""
    scores, allowed = concrete(2)
    w0, w1 = (w.term for w in f(scores, allowed))
    seen = z3.Or(*[a.term for a in allowed])
    yield Query("two keys", w0 + w1 == z3.If(seen, z3.RealVal(1), z3.RealVal(0)))


def blocked_zero() -> Iterator[Query]:
    """A blocked weight is 0."""
    axis, scores, allowed = real_row()
    r = SoftmaxRow(axis, scores, allowed)
    queries, positive = r.positive_mass()
    yield from queries
    blocked = Premise(r"\neg a_j", z3.Not(allowed.at(J).term))
    facts = [positive, blocked, inside(axis)]
    yield general("the weight", r.w(J) == 0, facts, axis, a=lambda j: j != 1)


def blocked_zero_of(f: Softmax) -> Iterator[Query]:
    """The blocked weight of two, for a given softmax."""
    scores, allowed = concrete(2)
    blocked = Premise(r"\neg a_0", z3.Not(allowed[0].term))
    yield Query("two keys", f(scores, allowed)[0].term == 0, (blocked,))


def shift_invariant() -> Iterator[Query]:
    """Scores s and s + c have the same weights, whatever is subtracted from each."""
    axis, scores, allowed = real_row()
    c = real("c")
    first, second = (SoftmaxRow(axis, s, allowed) for s in (scores, scores + c))
    queries, positive = first.positive_mass()
    yield from queries
    factor = EXP(first.top) * EXP(c.term)
    queries, ratio = by_induction(
        "the masses differ by the factor of the shifts",
        axis,
        lambda m: second.mass.at(m) * EXP(second.top) == first.mass.at(m) * factor,
    )
    yield from queries
    facts = [positive, ratio, inside(axis)]
    yield general("the weight", first.w(J) == second.w(J), facts, axis)


def scale_invariant() -> Iterator[Query]:
    """What is not true: scores s and c s have the same weights."""
    scores, allowed = concrete(2)
    same = (
        masked_softmax(scores, allowed)[0].term
        == masked_softmax(scores * real("c"), allowed)[0].term
    )
    yield Query("two keys", same)


def one_visible() -> Iterator[Query]:
    """A single allowed key among any number of blocked ones has weight 1."""
    before, after = Axis("B"), Axis("A")
    scores = row(before.values("s"), real("s"), after.values("t"))
    weights = masked_softmax(scores, row(before.same(False), True, after.same(False)))
    lemmas = []
    for axis in (before, after):
        empty = partial(_no_mass, axis)
        queries, lemma = by_induction("blocked keys have no mass", axis, empty)
        yield from queries
        lemmas.append(lemma)
    yield general("the weight", weights[1].term == 1, lemmas, before, after)


def _no_mass(axis: Axis, m: object) -> z3.BoolRef:
    """Every sum along the axis is 0 and nothing is seen."""
    return z3.And(*[f.at(m) == f.start for f in axis.folds.values()])


def one_visible_of(f: Softmax) -> Iterator[Query]:
    """Two keys, the first allowed, for a given softmax."""
    scores, _ = concrete(2)
    yield Query("two keys", f(scores, row(True, False))[0].term == 1)


def penalty_leaks() -> Iterator[Query]:
    """With any finite penalty every weight is positive."""
    axis, scores, allowed = real_row()
    penalty: Any = real("c")
    weights = penalty_softmax(row(scores), row(allowed), penalty)[0]
    mass = next(f for key, f in axis.folds.items() if key.startswith("sum"))
    queries, positive = by_induction(
        "the mass of some keys is positive",
        axis,
        lambda m: z3.And(mass.at(m) >= 0, z3.Implies(z3.IntVal(0) < m, mass.at(m) > 0)),
    )
    yield from queries
    facts = [positive, inside(axis)]
    yield general("the weight", weights.at(J).term > 0, facts, axis)


def penalty_leaks_of(f: Softmax) -> Iterator[Query]:
    """Two keys, for a given softmax."""
    scores, allowed = concrete(2)
    yield Query("two keys", f(scores, allowed)[0].term > 0)


def _twin(text: str, check: Callable[[Softmax], Iterator[Query]], f: Softmax) -> Twin:
    return Twin(text, partial(check, f))


KEEP_ALL = mutant(masked_softmax, "select(allowed, exp(", "select(allowed | True, exp(")

OBLIGATIONS: tuple[Obligation, ...] = (
    Obligation(
        "softmax.row_sum/reals",
        "softmax.row_sum",
        r"w_j \ge 0,\quad \sum_{j<n} w_j = [\exists j\, a_j]",
        ANY_ROW,
        "proved",
        "z3",
        row_sum,
        _twin("blocked entries keep their exponential", row_sum_of, KEEP_ALL),
        SUMS,
    ),
    Obligation(
        "softmax.blocked_zero/reals",
        "softmax.blocked_zero",
        r"\neg a_j \Rightarrow w_j = 0",
        ANY_ROW,
        "proved",
        "z3",
        blocked_zero,
        _twin("blocked entries keep their exponential", blocked_zero_of, KEEP_ALL),
        SUMS,
    ),
    Obligation(
        "softmax.shift_invariant/reals",
        "softmax.shift_invariant",
        r"w(s + c, a) = w(s, a)",
        f"{ANY_ROW}; any constant c",
        "proved",
        "z3",
        shift_invariant,
        Twin("the scores are multiplied by c instead", scale_invariant),
        SUMS,
    ),
    Obligation(
        "softmax.one_visible/reals",
        "softmax.one_visible",
        r"a_j \Leftrightarrow j = i \;\Rightarrow\; w_i = 1",
        "one allowed key with any number of blocked ones before and after it, real scores",
        "proved",
        "z3",
        one_visible,
        _twin(
            "a blocked score becomes -30 instead of vanishing",
            one_visible_of,
            lambda s, a: sentinel_softmax(s, a, -30.0),
        ),
        SUMS,
    ),
    Obligation(
        "softmax.penalty_leaks/reals",
        "softmax.penalty_leaks",
        r"\operatorname{softmax}(s - c\,[\neg a])_j > 0",
        f"{ANY_ROW}; any finite penalty c",
        "proved",
        "z3",
        penalty_leaks,
        _twin("the mask is hard", penalty_leaks_of, masked_softmax),
        SUMS,
    ),
)
