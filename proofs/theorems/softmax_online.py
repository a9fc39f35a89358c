"""Online softmax equals the direct form: induction over blocks of any width with the real
recurrence.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator
from functools import partial, reduce
from typing import Any

import numpy as np
import z3

from assay.proofs.induction import by_induction
from assay.proofs.mutants import mutant, rebound
from assay.proofs.obligation import Obligation, Premise, Query, Twin
from assay.proofs.scalars.reals import EXP, Real, real
from assay.proofs.scalars.stretches import Axis, Fold, Stretch
from assay.proofs.scalars.terms import Condition, row
from assay.proofs.theorems.rows import SoftmaxRow, concrete, general
from assay.proofs.theorems.softmax_reals import SUMS
from assay.spec.contraction import contract
from assay.spec.online import (
    OnlineState,
    online_attend,
    online_finish,
    online_merge,
    online_start,
    online_step,
)
from assay.spec.softmax import masked_softmax

Attend = Callable[..., np.ndarray]


class Direct:
    """What a state must summarise: whether a key is allowed, sum exp(s) and sum exp(s) v over
    these.
    """

    def __init__(self, seen: z3.BoolRef, mass: Any, weighted: Any) -> None:
        self.seen, self.mass, self.weighted = seen, mass, weighted

    @classmethod
    def variables(cls, tag: str, seen: bool | None = None) -> Direct:
        """Arbitrary sums."""
        known = z3.Bool(f"seen{tag}") if seen is None else z3.BoolVal(seen)
        return cls(known, z3.Real(f"U{tag}"), z3.Real(f"V{tag}"))

    def plus(self, other: Direct) -> Direct:
        """The sums of both parts."""
        seen = z3.Or(self.seen, other.seen)
        return Direct(seen, self.mass + other.mass, self.weighted + other.weighted)

    def summarised_by(self, state: OnlineState) -> z3.BoolRef:
        """The invariant: mass e^top and acc e^top are the sums; all is 0 while nothing was
        allowed.
        """
        top, mass, acc = (Real(x.flat[0]).term for x in (state.top, state.mass, state.acc))
        nothing = z3.And(mass == 0, acc == 0, self.mass == 0, self.weighted == 0)
        scaled = z3.And(
            mass * EXP(top) == self.mass, acc * EXP(top) == self.weighted, self.mass > 0
        )
        same = Condition.of(state.seen.flat[0]) == self.seen
        return z3.And(same, z3.If(self.seen, scaled, nothing))


def state(tag: str, seen: object) -> OnlineState:
    """An arbitrary state of one row and one value column."""
    top, mass, acc = (row(real(f"{name}{tag}")) for name in ("top", "mass", "acc"))
    return OnlineState(top, mass, acc, row(Condition(seen)))


class Block:
    """A block of keys of any width, its direct sums, and the folds that prove things of it."""

    def __init__(self, scores: Callable[[Axis], Stretch] | None = None) -> None:
        self.axis = Axis("B")
        self.scores = scores(self.axis) if scores else self.axis.values("sB")
        self.values, self.allowed = self.axis.values("vB"), self.axis.mask("aB")
        plain = self.allowed.select(self.scores.exp(), 0)
        self.plain = self.axis.sum_of(plain)
        self.weighted = self.axis.sum_of(self.allowed.select(self.scores.exp() * self.values, 0))

    def sums(self, m: Any) -> Direct:
        """The direct sums of the first m keys."""
        seen = self.axis.seen_of(self.allowed).at(m)
        return Direct(seen, self.plain.at(m), self.weighted.at(m))

    def rescaled(self, folds: list[Fold], top: Any, m: Any) -> z3.BoolRef:
        """The sums of shifted exponentials are the direct sums over e^top; signs of the direct
        ones.
        """
        direct = self.sums(m)
        shifted = [f.at(m) * EXP(top) for f in folds]
        sign = z3.If(direct.seen, direct.mass > 0, z3.And(direct.mass == 0, direct.weighted == 0))
        return z3.And(shifted[0] == direct.mass, shifted[1] == direct.weighted, sign)


def starts() -> Iterator[Query]:
    """The state before any key summarises nothing."""
    begin = online_start((), 1, row(real("s")))
    nothing = Direct(z3.BoolVal(False), z3.RealVal(0), z3.RealVal(0))
    yield Query("no keys", nothing.summarised_by(begin))


def steps(block: Block) -> Iterator[Query]:
    """A step over a block of any width adds the block's sums, also when nothing in it is
    allowed.
    """
    before, direct = state("0", z3.Bool("seen0")), Direct.variables("0")
    values = row(block.values)[:, None]
    after, taken = block.axis.record(
        lambda: online_step(before, row(block.scores), row(block.allowed), values)
    )
    folds = [f for f in taken if f.function.range() == z3.RealSort()]
    yield from _adds(block, folds, after, direct, before)


def _adds(
    block: Block, folds: list[Fold], after: OnlineState, direct: Direct, before: OnlineState
) -> Iterator[Query]:
    top = after.top.flat[0].term
    queries, lemma = by_induction(
        "shifted sums of the block", block.axis, lambda m: block.rescaled(folds, top, m)
    )
    yield from queries
    hypothesis = Premise(
        "the state summarises what came before", direct.summarised_by(before), "lemma"
    )
    goal = direct.plus(block.sums(block.axis.length)).summarised_by(after)
    witness = {"seen0": True, "top0": 0, "mass0": 1, "acc0": 2, "U0": 1, "V0": 2}
    yield general("the state after the block", goal, [lemma, hypothesis], block.axis, **witness)


def directly(block: Block) -> Any:
    """The direct form of one row: ``masked_softmax`` applied to the values."""
    allowed = row(block.allowed)[None]
    weights = masked_softmax(row(block.scores), row(block.allowed))[None]
    return contract(weights, allowed, row(block.values)[:, None]).flat[0]


def finishes(block: Block, run: Callable[[Block], Any]) -> Iterator[Query]:
    """The finished state of a whole row is the direct result that ``run`` computes."""
    end = state("1", z3.Bool("seen1"))
    direct = SoftmaxRow(block.axis, block.scores, block.allowed)
    out, taken = block.axis.record(lambda: run(block))
    weighted, n = taken[-1], block.axis.length
    divisor = z3.If(direct.seen.at(n), direct.mass.at(n), 1)
    queries, positive = direct.positive_mass()
    yield from queries
    queries, sums = by_induction(
        "the direct form in terms of plain sums",
        block.axis,
        lambda m: z3.And(
            direct.mass.at(m) * EXP(direct.top) == block.plain.at(m),
            weighted.at(m) * divisor * EXP(direct.top) == block.weighted.at(m),
        ),
        premises=[positive],
    )
    yield from queries
    whole = block.sums(n).summarised_by(end)
    summary = Premise("the state summarises the row", whole, "lemma")
    goal = online_finish(end).flat[0].term == out.term
    # Three keys of score 0 and value 1, all allowed.
    keys = {"aB": lambda j: True, "sB": lambda j: 0, "vB": lambda j: 1, "q0_0": 0}
    witness = {**keys, "seen1": True, "top1": 0, "mass1": 3, "acc1": 3}
    yield general("the result", goal, [positive, sums, summary], block.axis, **witness)


def induction() -> Iterator[Query]:
    """Start, step and finish: online softmax is the direct form for any sequence of blocks."""
    yield from starts()
    yield from steps(Block())
    yield from finishes(Block(), directly)


def merges() -> Iterator[Query]:
    """Merging two summaries summarises both parts: any tree of merges of blocks of any width."""
    for seen in itertools.product((False, True), repeat=2):
        states = [state(str(i), seen[i]) for i in range(2)]
        parts = [Direct.variables(str(i), seen[i]) for i in range(2)]
        given = [
            Premise("the states summarise their parts", part.summarised_by(s), "lemma")
            for part, s in zip(parts, states, strict=True)
        ]
        some = {f"{x}{i}": int(seen[i]) for x in ("mass", "acc", "U", "V") for i in range(2)}
        goal = parts[0].plus(parts[1]).summarised_by(online_merge(*states))
        witness = {**some, "top0": 0, "top1": 0}
        yield Query(f"the merged state, keys allowed: {seen}", goal, tuple(given), witness)


def split(attend: Attend, n: int = 2, block: int = 1) -> Iterator[Query]:
    """n keys, ``block`` at a time, for a given online form, against the direct one."""
    scores, allowed = concrete(n)
    values = row(*[real(f"v{i}") for i in range(n)])
    online = attend(scores, allowed, values[:, None], block).flat[0].term
    direct = [allowed[i].select(scores[i].exp(), 0) for i in range(n)]
    mass = reduce(operator.add, direct)
    weighted = reduce(operator.add, [w * v for w, v in zip(direct, values, strict=True)])
    seen = z3.Or(*[a.term for a in allowed])
    goal = z3.If(seen, online * mass.term == weighted.term, online == 0)
    yield Query(f"{n} keys, {block} at a time", goal)


def unrolled() -> Iterator[Query]:
    """The loop of the spec on up to three keys."""
    for n, block in ((1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (3, 3)):
        yield from split(online_attend, n, block)


def merged(merge: Callable[[OnlineState, OnlineState], OnlineState]) -> Iterator[Query]:
    """Two single keys merged by a given rule, against the direct form."""
    scores = row(real("s0"), real("s1"))
    values = row(real("v0"), real("v1"))
    keys = []
    for i in range(2):
        begin = online_start((), 1, scores)
        keys.append(online_step(begin, scores[i : i + 1], row(True), values[i : i + 1, None]))
    out = online_finish(merge(*keys)).flat[0].term
    e = [EXP(s.term) for s in scores]
    v = [x.term for x in values]
    yield Query("two keys", out * (e[0] + e[1]) == e[0] * v[0] + e[1] * v[1])


FORGETFUL_STEP = mutant(online_step, "rescale * state.mass + total", "state.mass + total")
FORGETFUL = rebound(online_attend, online_step=FORGETFUL_STEP)
FORGETFUL_MERGE = mutant(online_merge, "left * a.mass", "a.mass")

OBLIGATIONS: tuple[Obligation, ...] = (
    Obligation(
        "softmax.online/induction",
        "softmax.online",
        r"\operatorname{online}(s, a, v) = \sum_j w_j v_j",
        "any number of blocks of any widths, blocks with nothing allowed in any place, real scores "
        "and values, any shift in place of the running maximum",
        "proved",
        "z3",
        induction,
        Twin("the mass is not rescaled when the maximum moves", partial(split, FORGETFUL)),
        (*SUMS, "a sum over a concatenation is the sum of the sums"),
    ),
    Obligation(
        "softmax.online/merge",
        "softmax.online",
        r"\operatorname{merge}(\operatorname{state}(x), \operatorname{state}(y)) = "
        r"\operatorname{state}(x \frown y)",
        "summaries of any two parts, empty ones included: every tree of merges",
        "proved",
        "z3",
        merges,
        Twin("the left mass is not rescaled", partial(merged, FORGETFUL_MERGE)),
        ("induction over trees",),
    ),
    Obligation(
        "softmax.online/unrolled",
        "softmax.online",
        r"\operatorname{online}_b(s, a, v) = \sum_j w_j v_j",
        "n <= 3 keys, blocks of 1, 2 and 3, every mask, real scores and values, true row maximum",
        "bounded",
        "z3",
        unrolled,
        Twin("the mass is not rescaled when the maximum moves", partial(split, FORGETFUL)),
    ),
)
