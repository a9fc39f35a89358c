"""The gradient of normalised rows of any length: tangent by dual numbers, adjoint, sum of 0."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import z3

from assay.proofs.induction import by_induction
from assay.proofs.mutants import mutant
from assay.proofs.obligation import Obligation, Premise, Query, Twin
from assay.proofs.scalars.duals import Dual
from assay.proofs.scalars.reals import Real
from assay.proofs.scalars.stretches import Axis, Fold, Stretch
from assay.proofs.scalars.terms import row
from assay.proofs.theorems.norm_rows import (
    ANY_ROW,
    ENTRIES,
    EPS,
    POSITIVE,
    NormRow,
    proved,
    two,
)
from assay.proofs.theorems.rows import J, general, inside
from assay.spec.layers.rms_norm import rms_norm, rms_norm_backward
from assay.spec.layers.standardize import mean, standardize, standardize_backward

Step = Iterator[Query]
Backward = Callable[[Any, Any], Any]


def tangent(centred: bool = True) -> Step:
    """The derivative of z along d is the backward pass applied to d."""
    axis = Axis("C", Real)
    x, d = axis.values("x"), axis.values("d")
    r = NormRow(axis, x, centred=centred)
    queries, known = r.facts()
    yield from queries
    if centred:
        dual, folds = axis.record(lambda: standardize(row(Dual(x, d)), EPS).z[0])
        got = standardize_backward(r.rows, row(d))[0]
    else:
        dual, folds = axis.record(lambda: rms_norm(row(Dual(x, d)), eps=EPS)[0])
        got = rms_norm_backward(row(x), None, row(d), eps=EPS).x[0]
    slopes = folds[folds.index(r.squares) + 1]
    products = axis.sum_of(d * r.z)
    plain, middle = axis.sum_of(r.away), mean(row(d))[0].term if centred else z3.RealVal(0)
    queries, slopes_are = by_induction(
        "the slope of the squares",
        axis,
        lambda m: slopes.at(m) == 2 * (r.deviation * products.at(m) - middle * plain.at(m)),
        premises=known,
    )
    yield from queries
    lemmas = [slopes_are]
    if centred:
        queries, lemma = deviations_cancel(r, x, known)
        yield from queries
        lemmas.append(lemma)
    goal = dual.slope.at(J).term == got.at(J).term
    yield general("the slope", goal, [*known, *lemmas, inside(axis)], axis)


def deviations_cancel(r: NormRow, x: Any, known: list[Premise]) -> tuple[list[Query], Premise]:
    """The deviations from the mean sum to 0."""
    plain, whole, n = r.axis.sum_of(r.away), r.axis.sum_of(x), r.axis.length
    middle = mean(row(x))[0].term
    queries, parts = by_induction(
        "partial sums of the deviations",
        r.axis,
        lambda m: plain.at(m) == whole.at(m) - r.ones.at(m) * middle,
    )
    zero = plain.at(n) == 0
    queries.append(general("they cancel", zero, [*known, parts], r.axis))
    return queries, Premise("deviations cancel", zero, "lemma")


def adjoint(centred: bool = True) -> Step:
    """sum g (J d) = sum d (J g): the backward pass is its own transpose, so it is the gradient."""
    axis = Axis("C", Real)
    x, d, g = axis.values("x"), axis.values("d"), axis.values("g")
    r = NormRow(axis, x, centred=centred)
    queries, known = r.facts()
    yield from queries
    both = axis.sum_of(g * d)
    folds, lemmas = [], []
    for one, other in ((g, d), (d, g)):
        product = axis.sum_of(one * _backward(r, x, other, centred))
        queries, lemma = _product(r, product, both, one, other, centred)
        yield from queries
        folds.append(product)
        lemmas.append(lemma)
    same = folds[0].at(axis.length) == folds[1].at(axis.length)
    yield general("both products", same, [*known, *lemmas], axis)


def _product(
    r: NormRow, product: Fold, both: Fold, one: Stretch, other: Stretch, centred: bool
) -> tuple[list[Query], Premise]:
    """Partial sums of one (J other), from those of one other, one, and one z."""
    axis, n = r.axis, r.axis.length
    plain, own, along, whole = (axis.sum_of(v) for v in (one, one * r.z, other * r.z, other))
    middle = whole.at(n) / r.ones.at(n) if centred else z3.RealVal(0)
    spread = along.at(n) / r.ones.at(n)
    return by_induction(
        "partial sums of a product",
        axis,
        lambda m: (
            product.at(m)
            == r.rows.rate[0].term * (both.at(m) - middle * plain.at(m) - spread * own.at(m))
        ),
    )


def _backward(r: NormRow, x: Any, cotangent: Any, centred: bool) -> Any:
    if centred:
        return standardize_backward(r.rows, row(cotangent))[0]
    return rms_norm_backward(row(x), None, row(cotangent), eps=EPS).x[0]


def sums_to_zero() -> Step:
    """The gradient into x sums to 0 over a row of any length."""
    axis = Axis("C", Real)
    x, g = axis.values("x"), axis.values("g")
    r = NormRow(axis, x)
    queries, known = r.facts()
    yield from queries
    gradient = axis.sum_of(standardize_backward(r.rows, row(g))[0])
    total, plain, n = axis.sum_of(r.z), axis.sum_of(g), axis.length
    along, count = axis.sum_of(g * r.z).at(n), r.ones.at(n)
    queries, zs = r.z_sums(known, x)
    yield from queries
    cancelled = total.at(n) == 0
    yield general("z sums to 0", cancelled, [*known, zs], axis)
    queries, parts = by_induction(
        "partial sums of the gradient",
        axis,
        lambda m: (
            gradient.at(m)
            == r.rows.rate[0].term
            * (plain.at(m) - plain.at(n) / count * r.ones.at(m) - along / count * total.at(m))
        ),
    )
    yield from queries
    lemma = Premise("z sums to 0", cancelled, "lemma")
    yield general("the sum", gradient.at(n) == 0, [*known, lemma, parts], axis)


def derivative_of(forward: Any, backward: Any) -> Step:
    """Two entries: the derivative of sum g y along d is the backward pass of g, times d."""
    x, d, g = (two(name) for name in "xdg")
    duals = row(*[Dual(a, b) for a, b in zip(x, d, strict=True)])
    slope = sum((a * b.slope for a, b in zip(g, forward(duals), strict=True)), Real(0))
    got = backward(x, g)
    yield Query("two entries", slope.term == (got[0] * d[0] + got[1] * d[1]).term, (POSITIVE,))


def sum_of(backward: Any) -> Step:
    """The gradient of two entries."""
    got = backward(two("x"), two("g"))
    yield Query("two entries", got[0].term + got[1].term == 0, (POSITIVE,))


def adjoint_of(backward: Backward) -> Step:
    """Two entries, for a given backward of x and a cotangent."""
    x, d, g = (two(name) for name in "xdg")
    left, right = ((a * backward(x, b)).sum().term for a, b in ((g, d), (d, g)))
    yield Query("two entries", left == right, (POSITIVE,))


def _standardized(x: Any) -> Any:
    return standardize(x, EPS).z


def _through(backward: Any) -> Backward:
    return lambda x, g: backward(standardize(x, EPS), g)


def _rms_through(backward: Any) -> Backward:
    return lambda x, g: backward(x, None, g, eps=EPS).x


NO_SPREAD = mutant(standardize_backward, " - z * mean(cotangent * z)", "")
NO_MEAN = mutant(standardize_backward, " - mean(cotangent)", "")
RMS_NO_SPREAD = mutant(rms_norm_backward, "(h - z * mean(h * z))", "h")
LOPSIDED = mutant(standardize_backward, "z * mean(cotangent * z)", "z * cotangent[0]")
RMS_LOPSIDED = mutant(rms_norm_backward, "mean(h * z)", "h[0]")
DUAL = "the derivative rules of dual numbers: sums, products, quotients, square roots"

OBLIGATIONS: tuple[Obligation, ...] = (
    proved(
        "vjp_refines",
        "tangent",
        r"\frac{d}{dt} z(x + t d) = s \left(d - \operatorname{mean} d"
        r" - z \operatorname{mean}(d z)\right),\quad s = \frac{1}{\sqrt{\sigma^2 + \varepsilon}}",
        f"{ANY_ROW}; any direction d",
        tangent,
        Twin(
            "the spread is taken for a constant",
            partial(derivative_of, _standardized, _through(NO_SPREAD)),
        ),
        DUAL,
        ENTRIES,
    ),
    proved(
        "vjp_refines",
        "adjoint",
        r"\sum g\, (J d) = \sum d\, (J g),\quad J v = s \left(v - \operatorname{mean} v"
        r" - z \operatorname{mean}(v z)\right)",
        f"{ANY_ROW}; any direction d and cotangent g",
        adjoint,
        Twin(
            "the first cotangent in place of a mean",
            partial(adjoint_of, _through(LOPSIDED)),
        ),
        ENTRIES,
    ),
    proved(
        "vjp_refines",
        "rms-tangent",
        r"\frac{d}{dt} z(x + t d) = s \left(d - z \operatorname{mean}(d z)\right),\quad"
        r" z = s x,\; s = \frac{1}{\sqrt{\operatorname{mean} x^2 + \varepsilon}}",
        f"rms_norm, {ANY_ROW}; any direction d",
        partial(tangent, False),
        Twin(
            "the spread is taken for a constant",
            partial(derivative_of, partial(rms_norm, eps=EPS), _rms_through(RMS_NO_SPREAD)),
        ),
        DUAL,
    ),
    proved(
        "vjp_refines",
        "rms-adjoint",
        r"\sum g\, (J d) = \sum d\, (J g),\quad"
        r" J v = s \left(v - z \operatorname{mean}(v z)\right)",
        f"rms_norm, {ANY_ROW}; any direction d and cotangent g",
        partial(adjoint, False),
        Twin(
            "the first cotangent in place of a mean",
            partial(adjoint_of, _rms_through(RMS_LOPSIDED)),
        ),
    ),
    proved(
        "grad_sums_zero",
        "reals",
        r"\sum_{i<n} \bar x_i = 0",
        f"{ANY_ROW}; any cotangent",
        sums_to_zero,
        Twin("the mean of g is not subtracted", partial(sum_of, _through(NO_MEAN))),
        ENTRIES,
    ),
)
