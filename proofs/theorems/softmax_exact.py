"""Masked softmax in any arithmetic: what follows from the order of the spec's operations alone.

+, -, *, / and exp are unknown functions here, so these statements hold bit for bit in IEEE
arithmetic of every format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import z3

from assay.proofs.induction import agreement, by_induction
from assay.proofs.mutants import mutant
from assay.proofs.obligation import Obligation, Premise, Query, Twin
from assay.proofs.scalars.opaque import Opaque
from assay.proofs.scalars.reals import real
from assay.proofs.scalars.stretches import Axis
from assay.proofs.scalars.terms import Condition, row
from assay.proofs.theorems.rows import J, Softmax, concrete, general, inside
from assay.spec.softmax import masked_softmax, penalty_softmax, softmax_backward

ANY_ARITHMETIC = (
    "any row length, any mask, any arithmetic whatever +, -, *, / and exp compute: "
    "bit-identical in every floating-point format, NaN and infinity included"
)
ORDER = (
    "sums and maxima run over the row from the left; both sides use the same order",
    "induction over the natural numbers",
)


def same_where_allowed(j: Any) -> Sequence[Premise]:
    """s and t agree at j where it is allowed."""
    a, s, t = (z3.Function(n, z3.IntSort(), r)(j) for n, r in _SORTS.items())
    return [Premise(r"a_j \Rightarrow s_j = t_j", z3.Implies(a, s == t))]


_SORTS = {"a": z3.BoolSort(), "s": Opaque.sort(), "t": Opaque.sort()}
# Entry 1 is blocked, and differs.
ONE_BLOCKED = {"a": lambda j: j != 1, "s": lambda j: j, "t": lambda j: j if j != 1 else 1000}


def blocked_independent() -> Iterator[Query]:
    """Rows that agree where they are allowed have the same weights."""
    axis = Axis("S", Opaque)
    allowed = row(axis.mask("a"))
    first, taken = axis.record(lambda: masked_softmax(row(axis.values("s")), allowed)[0])
    second, also = axis.record(lambda: masked_softmax(row(axis.values("t")), allowed)[0])
    queries, lemmas = agreement(axis, taken, also, same_where_allowed, witness=ONE_BLOCKED)
    yield from queries
    facts = [*lemmas, *same_where_allowed(J), inside(axis)]
    yield general("the weight", first.at(J).term == second.at(J).term, facts, axis, **ONE_BLOCKED)


def blocked_independent_of(f: Softmax) -> Iterator[Query]:
    """Two keys over the reals, the second one blocked, for a given softmax."""
    scores, _ = concrete(2)
    other = row(scores[0], real("t1"))
    mask = row(True, False)
    yield Query("two keys", f(scores, mask)[0].term == f(other, mask)[0].term)


def all_true_neutral() -> Iterator[Query]:
    """An all-true mask gives the weights and the gradient of no mask."""
    axis = Axis("S", Opaque)
    scores, cotangent, every = row(axis.values("s")), row(axis.values("g")), row(axis.same(True))

    def both(mask: Any) -> tuple[Any, Any]:
        weights = masked_softmax(scores, mask)
        return weights[0], softmax_backward(weights, cotangent, mask)[0]

    some = Premise("n > 0", axis.length > 0)
    seen = axis.seen_of(axis.same(True))
    queries, visible = by_induction(
        "a key is seen", axis, lambda m: seen.at(m) == (z3.IntVal(0) < m)
    )
    yield from queries
    masked, taken = axis.record(lambda: both(every))
    plain, also = axis.record(lambda: both(None))
    taken = [f for f in taken if f is not seen]
    also = [f for f in also if f is not seen]
    queries, lemmas = agreement(axis, taken, also, premises=[visible, some])
    yield from queries
    for name, one, other in zip(("weight", "gradient"), masked, plain, strict=True):
        facts = [visible, some, *lemmas, inside(axis)]
        yield general(f"the {name}", one.at(J).term == other.at(J).term, facts, axis)


def all_true_of(f: Softmax) -> Iterator[Query]:
    """Two keys over the reals, for a given softmax."""
    scores, _ = concrete(2)
    masked = f(scores, row(Condition(True), Condition(True)))[0].term
    yield Query("two keys", masked == masked_softmax(scores, None)[0].term)


def grad_blocked_zero() -> Iterator[Query]:
    """The gradient into a blocked score is the constant 0, whatever the weights and cotangents
    are.
    """
    axis = Axis("S", Opaque)
    weights, cotangent, allowed = axis.values("w"), axis.values("g"), axis.mask("a")
    gradient = softmax_backward(row(weights), row(cotangent), row(allowed))[0]
    blocked = Premise(r"\neg a_j", z3.Not(allowed.at(J).term))
    goal = gradient.at(J).term == Opaque(0).term
    yield general("the gradient", goal, [blocked, inside(axis)], axis, a=lambda j: j != 1)


def grad_blocked_of(f: Callable[..., Any]) -> Iterator[Query]:
    """Two keys over the reals, arbitrary weights, for a given backward."""
    _, allowed = concrete(2)
    weights, cotangent = row(real("w0"), real("w1")), row(real("g0"), real("g1"))
    blocked = Premise(r"\neg a_0", z3.Not(allowed[0].term))
    gradient = f(weights, cotangent, allowed)[0].term
    yield Query("two keys", gradient == 0, (blocked,))


UNMASKED_BACKWARD = mutant(
    softmax_backward,
    "return select(allowed, weights * (seen - total(seen * weights)), 0)",
    "return weights * (seen - total(seen * weights))",
)
FLIPPED = mutant(
    masked_softmax,
    "if allowed is None:",
    "if allowed is not None:\n        allowed = ~allowed\n    else:",
)

OBLIGATIONS: tuple[Obligation, ...] = (
    Obligation(
        "softmax.blocked_independent/any-arithmetic",
        "softmax.blocked_independent",
        r"(\forall j\; a_j \Rightarrow s_j = t_j) \;\Rightarrow\; w(s, a) = w(t, a)",
        ANY_ARITHMETIC,
        "proved",
        "z3",
        blocked_independent,
        Twin(
            "a penalty of 30 instead of the hard mask",
            partial(blocked_independent_of, lambda s, a: penalty_softmax(s, a, 30.0)),
        ),
        ORDER,
    ),
    Obligation(
        "softmax.all_true_neutral/any-arithmetic",
        "softmax.all_true_neutral",
        r"w(s, \top) = \operatorname{softmax}(s),\quad \bar s(\top) = \bar s",
        f"{ANY_ARITHMETIC}; rows that are not empty",
        "proved",
        "z3",
        all_true_neutral,
        Twin("the mask is read the other way round", partial(all_true_of, FLIPPED)),
        ORDER,
    ),
    Obligation(
        "softmax.grad_blocked_zero/any-arithmetic",
        "softmax.grad_blocked_zero",
        r"\neg a_j \Rightarrow \bar s_j = 0",
        ANY_ARITHMETIC,
        "proved",
        "z3",
        grad_blocked_zero,
        Twin("the result is not masked", partial(grad_blocked_of, UNMASKED_BACKWARD)),
        ORDER,
    ),
)
