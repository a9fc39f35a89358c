"""Masked softmax bit for bit in IEEE arithmetic, rounded to nearest even.

Of the exponential only this is used: exp(0) = 1, exp(x) lies in [0, 1] for x <= 0 (exhaustively
true of numpy's in float16; a library's exp that breaks it breaks the statement too).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import z3

from assay.proofs.laws import subterms
from assay.proofs.mutants import mutant
from assay.proofs.obligation import Obligation, Premise, Query, Twin
from assay.proofs.scalars.ieee import NEAREST, Float, Float16, Float32, finite
from assay.proofs.scalars.terms import row
from assay.proofs.theorems.rows import Softmax, condition
from assay.spec.softmax import masked_softmax, softmax_backward

EXP_FACT = r"\exp(0) = 1,\; x \le 0 \Rightarrow 0 \le \exp(x) \le 1"
Kind = type[Float]


def floats(kind: Kind, name: str, n: int) -> np.ndarray:
    """A row of n variables of the format."""
    return row(*[kind.variable(f"{name}{i}") for i in range(n)])


def exp_facts(kind: Kind, *terms: z3.ExprRef) -> tuple[Premise, ...]:
    """What is used of exp, at every argument that occurs."""
    zero, one = kind(0).term, kind(1).term
    facts = []
    for term in subterms(terms):
        if term.decl().eq(kind.exponential()):
            x = term.arg(0)
            unit = z3.And(z3.fpLEQ(zero, term), z3.fpLEQ(term, one))
            at_zero = z3.Implies(z3.fpIsZero(x), term == one)
            fact = z3.And(at_zero, z3.Implies(z3.fpLEQ(x, zero), unit))
            facts.append(Premise(EXP_FACT, fact, "law"))
    return tuple(facts)


def one_visible(f: Softmax, kind: Kind) -> Iterator[Query]:
    """The only allowed key, the second of three, has weight 1; its score is finite, the others
    anything.
    """
    scores = floats(kind, "s", 3)
    weights = f(scores, row(False, True, False))
    goal = z3.And(*[kind(w).term == kind(x).term for w, x in zip(weights, (0, 1, 0), strict=True)])
    given = Premise(r"s_1 \text{ finite}", finite(scores[1]))
    yield Query("the weights", goal, (given, *exp_facts(kind, goal)))


def blocked_zero(f: Softmax, kind: Kind) -> Iterator[Query]:
    """A blocked key of two has weight +0, whatever it holds."""
    scores, allowed = floats(kind, "s", 2), row(condition("a0"), condition("a1"))
    goal = f(scores, allowed)[0].term == kind(0).term
    given = (
        Premise(r"s_1 \text{ finite}", finite(scores[1])),
        Premise(r"\neg a_0", z3.Not(allowed[0].term)),
    )
    yield Query("the weight", goal, (*given, *exp_facts(kind, goal)), {"a0": False})


def in_range(f: Softmax, kind: Kind) -> Iterator[Query]:
    """Finite scores give weights 0 <= w <= 1: each is a quotient x / y with 0 <= x <= 1 <= y <=
    2.
    """
    scores = floats(kind, "s", 2)
    zero, one, two = (kind(x).term for x in (0, 1, 2))
    larger = z3.fpGEQ(scores[0].term, scores[1].term)
    # Solvers are quicker when they know which score is the maximum, and with one bound at a time.
    for mask, order in (
        ((True, True), larger),
        ((True, True), z3.Not(larger)),
        ((True, False), None),
    ):
        _, x, y = kind(f(scores, row(*mask))[0]).term.children()
        given = [Premise(r"s \text{ finite}", finite(*scores))]
        if order is not None:
            given.append(Premise("the order of the scores", order, "definition"))
        bounds = (z3.And(z3.fpLEQ(zero, x), z3.fpLEQ(x, one)), z3.fpLEQ(one, y), z3.fpLEQ(y, two))
        witness = {
            "s0": kind.NUMPY(2 if order is larger else 1),
            "s1": kind.NUMPY(2 if order is not larger else 1),
        }
        for bound in bounds:
            facts = (*given, *exp_facts(kind, bound))
            yield Query(f"numerator and mass, mask {mask}", bound, facts, witness)
    x, y = (kind.variable(name).term for name in "xy")
    bounds = z3.And(z3.fpLEQ(zero, x), z3.fpLEQ(x, one), z3.fpLEQ(one, y), z3.fpLEQ(y, two))
    quotient = z3.fpDiv(NEAREST, x, y)
    goal = z3.And(z3.fpLEQ(zero, quotient), z3.fpLEQ(quotient, one))
    lemma = Premise("the bounds of numerator and mass", bounds, "lemma")
    yield Query("their quotient", goal, (lemma,), {"x": kind.NUMPY(1), "y": kind.NUMPY(1)})


def masked_gradient(backward: Callable[..., Any], kind: Kind) -> Iterator[Query]:
    """With the mask at hand the blocked gradient is +0 for all weights and cotangents."""
    gradient = backward(floats(kind, "w", 2), floats(kind, "g", 2), row(False, True))
    yield Query("the gradient", kind(gradient[0]).term == kind(0).term)


def gradient_from_weights(kind: Kind, difference: bool) -> Iterator[Query]:
    """From weights alone: w_0 = 0 gives 0 where g_0 - sum g w is finite.

    Finite cotangents do not suffice: the difference of two finite numbers may overflow, and 0 * inf
    is NaN.
    """
    weights, cotangent = floats(kind, "w", 2), floats(kind, "g", 2)
    gradient = softmax_backward(weights, cotangent)[0].term
    unit = z3.And(z3.fpLEQ(kind(0).term, weights[1].term), z3.fpLEQ(weights[1].term, kind(1).term))
    given = [
        Premise("w_0 = 0", z3.fpIsZero(weights[0].term)),
        Premise(r"0 \le w_1 \le 1", unit),
        Premise(r"g \text{ finite}", finite(*cotangent)),
    ]
    if difference:
        products = cotangent * weights
        rest = finite(cotangent[0] - (products[0] + products[1]))
        given.append(Premise(r"g_0 - \sum_k g_k w_k \text{ finite}", rest))
    witness = {"w0": kind.NUMPY(0), "w1": kind.NUMPY(1)}
    yield Query("the gradient", z3.fpIsZero(gradient), tuple(given), witness)


UNMASKED = mutant(
    softmax_backward,
    "select(allowed, weights * (seen - total(seen * weights)), 0)",
    "weights * (seen - total(seen * weights))",
)
TOP_OF_ALL = mutant(
    masked_softmax, "row_max(scores, allowed)", "row_max(scores, _everywhere(scores))"
)
NEGATED = mutant(masked_softmax, "weights = select(allowed", "weights = select(~allowed")
EXP = "exp(0) = 1 and 0 <= exp(x) <= 1 for x <= 0 in this format"


def _obligation(
    claim: str,
    kind: Kind,
    statement: str,
    generality: str,
    body: Any,
    twin: Twin,
    *trust: str,
    variant: str = "",
) -> Obligation:
    name = kind.NUMPY.__name__
    return Obligation(
        f"{claim}/{name}{variant}", claim, statement, f"{name}: {generality}", "bounded", "z3",
        body, twin, ("z3's theory of IEEE 754 arithmetic", *trust), 30.0,
    )  # fmt: skip


OBLIGATIONS: tuple[Obligation, ...] = tuple(
    o
    for kind in (Float16, Float32)
    for o in (
        _obligation(
            "softmax.one_visible",
            kind,
            r"a = (\bot, \top, \bot),\; s_1 \text{ finite} \;\Rightarrow\; w = (0, 1, 0)",
            "three keys, blocked scores may be NaN or infinite",
            partial(one_visible, masked_softmax, kind),
            Twin(
                "the maximum is taken over blocked keys too", partial(one_visible, TOP_OF_ALL, kind)
            ),
            EXP,
        ),
        _obligation(
            "softmax.blocked_zero",
            kind,
            r"\neg a_0,\; s_1 \text{ finite} \;\Rightarrow\; w_0 = +0",
            "two keys, the blocked score may be NaN or infinite",
            partial(blocked_zero, masked_softmax, kind),
            Twin(
                "the maximum is taken over blocked keys too",
                partial(blocked_zero, TOP_OF_ALL, kind),
            ),
            EXP,
        ),
        _obligation(
            "softmax.row_sum",
            kind,
            r"s \text{ finite} \;\Rightarrow\; 0 \le w_j \le 1",
            "two keys, any mask, finite scores, differences that overflow included",
            partial(in_range, masked_softmax, kind),
            Twin("the maximum is taken over blocked keys too", partial(in_range, TOP_OF_ALL, kind)),
            EXP,
            variant="-range",
        ),
        _obligation(
            "softmax.grad_blocked_zero",
            kind,
            r"\neg a_0 \Rightarrow \bar s_0 = +0",
            "two keys, all weights and cotangents, NaN and infinity included",
            partial(masked_gradient, softmax_backward, kind),
            Twin("the result is not masked", partial(masked_gradient, UNMASKED, kind)),
        ),
        _obligation(
            "softmax.grad_blocked_zero",
            kind,
            r"w_0 = 0,\; g_0 - \sum_k g_k w_k \text{ finite} \;\Rightarrow\; \bar s_0 = \pm 0",
            "two keys, gradient from the weights alone, finite cotangents",
            partial(gradient_from_weights, kind, True),
            Twin(
                "only the cotangents are finite: the difference may overflow",
                partial(gradient_from_weights, kind, False),
            ),
            variant="-from-weights",
        ),
    )
)
