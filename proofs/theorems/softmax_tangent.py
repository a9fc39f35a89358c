"""The gradient of masked softmax for rows of any length: tangent by dual numbers, and adjoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import z3

from assay.proofs.induction import by_induction
from assay.proofs.obligation import Obligation, Query, Twin
from assay.proofs.scalars.duals import Dual
from assay.proofs.scalars.reals import Real, real
from assay.proofs.scalars.stretches import Axis
from assay.proofs.scalars.terms import row
from assay.proofs.theorems.rows import J, SoftmaxRow, concrete, general, inside, real_row
from assay.proofs.theorems.softmax_gradient import SIGNED
from assay.proofs.theorems.softmax_reals import ANY_ROW, SUMS
from assay.spec.softmax import masked_softmax, softmax_backward

Backward = Callable[..., Any]


def tangent() -> Iterator[Query]:
    """The derivative of the weights along d is w (d - sum d w), the backward applied to d."""
    axis, scores, allowed = real_row()
    direction, n = axis.values("d"), axis.length
    r = SoftmaxRow(axis, scores, allowed)
    duals, taken = axis.record(
        lambda: masked_softmax(row(Dual(scores, direction)), row(allowed))[0]
    )
    slopes = next(f for f in taken if f is not r.mass and f.function.range() == z3.RealSort())
    backward, (mean,) = axis.record(
        lambda: softmax_backward(row(r.weights), row(direction), row(allowed))[0]
    )
    shift = direction.row_max([direction], [allowed]).term
    divisor = z3.If(r.seen.at(n), r.mass.at(n), 1)
    queries, positive = r.positive_mass()
    yield from queries
    queries, sums = by_induction(
        "the slope of the mass",
        axis,
        lambda m: slopes.at(m) == mean.at(m) * divisor - shift * r.mass.at(m),
        premises=[positive],
    )
    yield from queries
    goal = duals.slope.at(J).term == backward.at(J).term
    yield general("the slope of the weight", goal, [positive, sums, inside(axis)], axis)


def tangent_of(backward: Backward) -> Iterator[Query]:
    """Two keys, for a given backward."""
    scores, allowed = concrete(2)
    direction = row(real("d0"), real("d1"))
    duals = row(*[Dual(s, d) for s, d in zip(scores, direction, strict=True)])
    weights = masked_softmax(duals, allowed)
    plain = row(*[w.value for w in weights])
    goal = weights[0].slope.term == backward(plain, direction, allowed)[0].term
    yield Query("two keys", goal)


def adjoint() -> Iterator[Query]:
    """sum g (J d) = sum d (J g): the backward is its own transpose, so it is the gradient."""
    axis = Axis("S", Real)
    w, g, d, allowed = axis.values("w"), axis.values("g"), axis.values("d"), axis.mask("a")
    n, means, sums = axis.length, [], []
    for one, other in ((g, d), (d, g)):
        apply = partial(softmax_backward, row(w), row(other), row(allowed))
        (image,), (mean,) = axis.record(apply)
        means.append(mean)
        sums.append(axis.sum_of(one * image))
    common = axis.sum_of(allowed.select(g * d * w, 0))

    def parts(m: Any) -> z3.BoolRef:
        (left, right), (of_d, of_g) = sums, means
        return z3.And(
            left.at(m) == common.at(m) - of_d.at(n) * of_g.at(m),
            right.at(m) == common.at(m) - of_g.at(n) * of_d.at(m),
        )

    queries, lemma = by_induction("partial sums of both products", axis, parts)
    yield from queries
    yield general("both products", sums[0].at(n) == sums[1].at(n), [lemma], axis)


def adjoint_of(backward: Backward) -> Iterator[Query]:
    """Two keys, for a given backward."""
    _, allowed = concrete(2)
    w, g, d = (row(*[real(f"{x}{i}") for i in range(2)]) for x in "wgd")
    left = (g * backward(w, d, allowed)).sum().term
    yield Query("two keys", left == (d * backward(w, g, allowed)).sum().term)


def _lopsided(weights: Any, cotangent: Any, allowed: Any) -> Any:
    return softmax_backward(weights, cotangent, allowed) + cotangent[:1] * weights


DERIVATIVES = "the derivative rules of dual numbers: sums, products, quotients, exp"

OBLIGATIONS: tuple[Obligation, ...] = (
    Obligation(
        "softmax.vjp_refines/tangent",
        "softmax.vjp_refines",
        r"\frac{d}{dt} w_j(s + t d) = w_j \left(d_j - \sum_k d_k w_k\right)",
        f"{ANY_ROW}; any direction d, any slope of the shift",
        "proved",
        "z3",
        tangent,
        Twin("the mean is added instead of subtracted", partial(tangent_of, SIGNED)),
        (*SUMS, DERIVATIVES),
    ),
    Obligation(
        "softmax.vjp_refines/adjoint",
        "softmax.vjp_refines",
        r"\sum_j g_j\, (J d)_j = \sum_j d_j\, (J g)_j,\quad "
        r"J x = w \left(x - \sum_k x_k w_k\right)",
        "any row length, real weights, mask, direction d and cotangent g",
        "proved",
        "z3",
        adjoint,
        Twin("a multiple of the weights is added", partial(adjoint_of, _lopsided)),
        SUMS,
    ),
)
