"""Log-softmax over the reals, for rows of any length: gradient, shift, and all logits equal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import z3

from assay.proofs.induction import by_induction
from assay.proofs.mutants import mutant
from assay.proofs.obligation import Obligation, Premise, Query, Twin
from assay.proofs.scalars.duals import Dual
from assay.proofs.scalars.reals import EXP, Real, real
from assay.proofs.scalars.stretches import Axis, Stretch
from assay.proofs.scalars.terms import row
from assay.proofs.theorems.rows import J, concrete, general, inside
from assay.proofs.theorems.softmax_reals import SUMS
from assay.spec.layers.log_softmax import log_softmax, log_softmax_backward
from assay.spec.softmax import softmax

Forward = Callable[[Any], Any]
Backward = Callable[[Any, Any], Any]


class LogRow:
    """``log_softmax`` of a row of any length n, and the mass whose logarithm it takes.

    y        the stretch of results
    folds    the mass; of dual numbers also its slope
    weights  ``softmax`` of the row
    """

    def __init__(self, axis: Axis, logits: Any) -> None:
        self.axis = axis
        (self.y,), self.folds = axis.record(lambda: log_softmax(row(logits)))
        self.mass = self.folds[0]
        self.weights = softmax(row(logits))[0]

    def positive_mass(self) -> tuple[list[Query], Premise]:
        """The mass of one logit or more is positive."""
        return by_induction("the mass of one logit or more is positive", self.axis, self._positive)

    def _positive(self, m: Any) -> z3.BoolRef:
        some = z3.Implies(_whole(m) > 0, self.mass.at(m) > 0)
        return z3.And(self.mass.at(m) >= 0, some)

    def shares(self, positive: Premise) -> tuple[list[Query], Premise]:
        """Partial sums of the weights are shares of the mass."""
        total, n = self.axis.sum_of(self.weights), self.axis.length
        return by_induction(
            "partial sums of the weights are shares of the mass",
            self.axis,
            lambda m: total.at(m) * self.mass.at(n) == self.mass.at(m),
            premises=[positive, _some(self.axis)],
            witness={"j": 1},
        )


def _whole(m: Any) -> z3.ArithRef:
    return z3.IntVal(m) if isinstance(m, int) else m


def _some(axis: Axis) -> Premise:
    return Premise(rf"{axis.length} \ge 1", axis.length >= 1)


def tangent() -> Iterator[Query]:
    """The derivative of y_j along d is d_j - sum w d, whatever is subtracted first."""
    axis = Axis("V", Real)
    logits, d = axis.values("x"), axis.values("d")
    r, duals = LogRow(axis, logits), LogRow(axis, Dual(logits, d))
    slopes, n = duals.folds[1], axis.length
    mean, top = axis.sum_of(r.weights * d), d.row_max([d], [True]).term
    queries, positive = r.positive_mass()
    yield from queries
    queries, sums = by_induction(
        "the slope of the mass",
        axis,
        lambda m: slopes.at(m) == mean.at(m) * r.mass.at(n) - top * r.mass.at(m),
        premises=[positive, _some(axis)],
    )
    yield from queries
    goal = duals.y.slope.at(J).term == (d.at(J) - Real(mean.at(n))).term
    yield general("the slope", goal, [positive, sums, inside(axis)], axis)


def adjoint() -> Iterator[Query]:
    """sum g (d - sum w d) = sum d x', with x' the backward pass of g: it is the gradient."""
    axis = Axis("V", Real)
    logits, d, g = axis.values("x"), axis.values("d"), axis.values("g")
    r, n = LogRow(axis, logits), axis.length
    mean, whole, both = axis.sum_of(r.weights * d), axis.sum_of(g), axis.sum_of(g * d)
    forward = axis.sum_of(g * (d - Real(mean.at(n))))
    back = axis.sum_of(d * log_softmax_backward(row(logits), row(g))[0])
    queries, lemma = by_induction(
        "partial sums of both products",
        axis,
        lambda m: z3.And(
            forward.at(m) == both.at(m) - whole.at(m) * mean.at(n),
            back.at(m) == both.at(m) - mean.at(m) * whole.at(n),
        ),
    )
    yield from queries
    yield general("both products", forward.at(n) == back.at(n), [lemma], axis)


def derivative_of(backward: Backward) -> Iterator[Query]:
    """Both at once for two logits, for a given backward."""
    logits, (d0, d1) = concrete(2)[0], (real("d0"), real("d1"))
    g = row(real("g0"), real("g1"))
    duals = log_softmax(row(Dual(logits[0], d0), Dual(logits[1], d1)))
    slope = g[0] * duals[0].slope + g[1] * duals[1].slope
    gradient = backward(logits, g)
    yield Query("two logits", slope.term == (gradient[0] * d0 + gradient[1] * d1).term)


def shift_invariant() -> Iterator[Query]:
    """Logits x and x + c have the same probabilities, whatever is subtracted from each."""
    axis = Axis("V", Real)
    logits, c = axis.values("x"), real("c")
    first, second = (LogRow(axis, x) for x in (logits, logits + c))
    lemmas = []
    for r in (first, second):
        queries, positive = r.positive_mass()
        yield from queries
        lemmas.append(positive)
    tops = [x.row_max([x], [True]).term for x in (logits, logits + c)]
    queries, ratio = by_induction(
        "the masses differ by the factor of the shifts",
        axis,
        lambda m: second.mass.at(m) * EXP(tops[1]) == first.mass.at(m) * EXP(tops[0]) * EXP(c.term),
    )
    yield from queries
    goal = first.y.at(J).exp().term == second.y.at(J).exp().term
    yield general("the probability", goal, [*lemmas, ratio, inside(axis)], axis)


def shift_of(forward: Forward) -> Iterator[Query]:
    """Two logits, for a given log-softmax."""
    logits, c = concrete(2)[0], real("c")
    first, second = (forward(x)[0].exp().term for x in (logits, logits + c))
    yield Query("two logits", first == second)


def equal_logits() -> Iterator[Query]:
    """n equal logits have log-probability y with exp(-y) = n."""
    axis = Axis("V", Real)
    equal = Stretch(axis, lambda _: real("c"))
    r, top = LogRow(axis, equal), equal.row_max([equal], [True])
    queries, count = by_induction(
        "the mass counts the logits",
        axis,
        lambda m: r.mass.at(m) == z3.ToReal(_whole(m)) * (real("c") - top).exp().term,
    )
    yield from queries
    goal = (-r.y.at(J)).exp().term == z3.ToReal(axis.length)
    yield general("the loss", goal, [count, inside(axis)], axis)


def equal_logits_of(forward: Forward) -> Iterator[Query]:
    """Two logits, for a given log-softmax."""
    logits = concrete(2)[0]
    equal = Premise(r"x_0 = x_1", logits[0].term == logits[1].term)
    yield Query("two logits", (-forward(logits)[0]).exp().term == 2, (equal,))


def sums_to_zero() -> Iterator[Query]:
    """The gradient of log-softmax sums to 0 over a row of any length."""
    axis = Axis("V", Real)
    logits, g = axis.values("x"), axis.values("g")
    r, n = LogRow(axis, logits), axis.length
    total, whole = axis.sum_of(r.weights), axis.sum_of(g)
    gradient = axis.sum_of(log_softmax_backward(row(logits), row(g))[0])
    queries, positive = r.positive_mass()
    yield from queries
    queries, shares = r.shares(positive)
    yield from queries
    queries, parts = by_induction(
        "partial sums of the gradient",
        axis,
        lambda m: gradient.at(m) == whole.at(m) - total.at(m) * whole.at(n),
    )
    yield from queries
    goal = gradient.at(n) == 0
    yield general("the sum", goal, [positive, shares, parts, _some(axis)], axis)


def sums_to_zero_of(backward: Backward) -> Iterator[Query]:
    """Two logits, for a given backward."""
    gradient = backward(concrete(2)[0], row(real("g0"), real("g1")))
    yield Query("two logits", gradient[0].term + gradient[1].term == 0)


UNWEIGHTED = mutant(
    log_softmax_backward, "softmax(x) * total(cotangent)", "total(cotangent) / x.shape[-1]"
)
DOUBLED = mutant(log_softmax_backward, "cotangent - softmax(x)", "cotangent - 2 * softmax(x)")
UNSHIFTED = mutant(log_softmax, "shifted - mass", "x - mass")
ADDED = mutant(log_softmax, "shifted - mass", "shifted + mass")
ANY_ROW = "any number of logits, any real logits, any shift in place of the row maximum"
LOG = "ln of a positive number is what exp takes to it, and exp takes different numbers apart"


def _proved(
    claim: str, variant: str, statement: str, generality: str, body: Any, twin: Twin, *trust: str
) -> Obligation:
    return Obligation(
        f"loss.{claim}/{variant}",
        f"loss.{claim}",
        statement,
        generality,
        "proved",
        "z3",
        body,
        twin,
        (*SUMS, *trust),
    )


OBLIGATIONS: tuple[Obligation, ...] = (
    _proved(
        "vjp_refines",
        "log-softmax-tangent",
        r"\frac{d}{dt} y_j(x + t d) = d_j - \sum_k w_k d_k,\quad w = e^y",
        f"{ANY_ROW}; any direction d, any slope of the shift",
        tangent,
        Twin("the backward subtracts the mean", partial(derivative_of, UNWEIGHTED)),
        "the derivative rules of dual numbers: sums, products, quotients, exp, ln",
    ),
    _proved(
        "vjp_refines",
        "log-softmax-adjoint",
        r"\sum_j g_j (d_j - \sum_k w_k d_k) = \sum_j d_j \bar x_j",
        f"{ANY_ROW}; any direction d and cotangent g",
        adjoint,
        Twin("the weights count twice", partial(derivative_of, DOUBLED)),
    ),
    _proved(
        "shift",
        "reals",
        r"e^{y_j(x + c)} = e^{y_j(x)}",
        f"{ANY_ROW}; any constant c",
        shift_invariant,
        Twin("the shift is not subtracted again", partial(shift_of, UNSHIFTED)),
        LOG,
    ),
    _proved(
        "large_vocabulary",
        "reals",
        r"(\forall j\; x_j = c) \Rightarrow e^{-y_j} = V",
        "any number V of logits, any real c and shift",
        equal_logits,
        Twin("the logarithm is added", partial(equal_logits_of, ADDED)),
        LOG,
    ),
    _proved(
        "grad_sums_zero",
        "log-softmax",
        r"\sum_{j<V} \bar x_j = 0",
        f"{ANY_ROW}; any cotangent",
        sums_to_zero,
        Twin("the weights count twice", partial(sums_to_zero_of, DOUBLED)),
    ),
)
