"""Normalised rows of any length over the reals: equal entries, one entry, shift and scale."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import z3

from assay.proofs.induction import by_induction
from assay.proofs.mutants import mutant, rebound
from assay.proofs.obligation import Obligation, Premise, Query, Twin
from assay.proofs.scalars.reals import Real, real
from assay.proofs.scalars.stretches import Axis, Stretch
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
from assay.proofs.theorems.rows import J, general
from assay.spec.layers.layer_norm import layer_norm, layer_norm_backward
from assay.spec.layers.rms_norm import rms_norm
from assay.spec.layers.slices import normalize
from assay.spec.layers.standardize import mean, standardize

Step = Iterator[Query]
C: Any = real("c")


def constant_slice() -> Step:
    """Entries that are all c give the bias."""
    axis = Axis("C", Real)
    x = Stretch(axis, lambda _: C)
    r, w, b = NormRow(axis, x), axis.values("w"), axis.values("b")
    queries, known = r.facts()
    yield from queries
    whole = axis.sum_of(x)
    queries, sums = by_induction(
        "partial sums of c", axis, lambda m: whole.at(m) == r.ones.at(m) * C.term
    )
    yield from queries
    zero = r.away.at(J).term == 0
    yield general("no entry is away from the mean", zero, [*known, sums], axis)
    y = layer_norm(row(x), row(w), row(b), eps=EPS)[0]
    lemma = Premise("no entry is away from the mean", zero, "lemma")
    yield general("the output", y.at(J).term == b.at(J).term, [*known, lemma], axis)


def shift() -> Step:
    """x and x + c are standardised alike."""
    axis = Axis("C", Real)
    x = axis.values("x")
    first, second = NormRow(axis, x), NormRow(axis, x + C)
    queries, known = first.facts()
    yield from queries
    sums = [axis.sum_of(v) for v in (x, x + C)]
    queries, moved = by_induction(
        "partial sums move by c each",
        axis,
        lambda m: sums[1].at(m) == sums[0].at(m) + first.ones.at(m) * C.term,
    )
    yield from queries
    means = [mean(row(v))[0].term for v in (x, x + C)]
    centre = means[1] == means[0] + C.term
    yield general("the mean moves by c", centre, [*known, moved], axis)
    lemma = Premise("the mean moves by c", centre, "lemma")
    queries, same = by_induction(
        "the squares are the same",
        axis,
        lambda m: first.squares.at(m) == second.squares.at(m),
        premises=[lemma],
    )
    yield from queries
    goal = first.z.at(J).term == second.z.at(J).term
    yield general("the result", goal, [*known, lemma, same], axis)


def scale(centred: bool = True) -> Step:
    """x and c x are normalised alike, if eps is scaled by c^2, for c > 0."""
    axis = Axis("C", Real)
    x = axis.values("x")
    first = NormRow(axis, x, EPS, centred)
    second = NormRow(axis, x * C, EPS * (C * C), centred)
    held = {"c": 2}
    known = [Premise(r"c > 0", C.term > 0)]
    for r in (first, second):
        queries, facts = r.facts(known[0])
        yield from queries
        known += facts[1:]
    sums = [axis.sum_of(v) for v in (x, x * C)]
    queries, scaled = by_induction(
        "partial sums scale", axis, lambda m: sums[1].at(m) == sums[0].at(m) * C.term
    )
    yield from queries
    stretched = second.away.at(J).term == first.away.at(J).term * C.term
    yield general("what is squared scales", stretched, [*known, scaled], axis, **held)
    queries, squares = by_induction(
        "the squares scale by c^2",
        axis,
        lambda m: second.squares.at(m) == first.squares.at(m) * C.term * C.term,
        pointwise=lambda k: [_at("what is squared scales", stretched, k)],
        witness=held,
    )
    yield from queries
    one, two = first.deviation, second.deviation
    for text, goal in (
        ("the square of the deviation scales", two * two == one * one * C.term * C.term),
        ("the deviation scales", two == one * C.term),
    ):
        yield general(text, goal, [*known, squares], axis, **held)
        known.append(Premise(text, goal, "lemma"))
    known.append(Premise("what is squared scales", stretched, "lemma"))
    goal = first.z.at(J).term == second.z.at(J).term
    yield general("the result", goal, known, axis, **held)


def _at(text: str, term: z3.BoolRef, k: Any) -> Premise:
    """What was shown of the generic index j, at k."""
    return Premise(text, z3.substitute(term, (J, k)), "lemma")


def one_feature(forward: Any, backward: Any) -> Step:
    """A row of one entry gives the bias, and no gradient reaches it or the weight."""
    x, w, b, g = (row(real(name)) for name in "xwbg")
    y, got = forward(x, w, b, eps=EPS), backward(x, w, g, eps=EPS)
    yield Query("the output", y[0].term == b[0].term, (POSITIVE,), {"eps": 1})
    yield Query("the gradient", got.x[0].term == 0, (POSITIVE,), {"eps": 1})
    yield Query("the weight's", got.weight[0].term == 0, (POSITIVE,), {"eps": 1})
    yield Query("the bias's", got.bias[0].term == g[0].term, (POSITIVE,), {"eps": 1})


def constant_of(forward: Any) -> Step:
    """Two entries c, for a given norm."""
    y = forward(row(C, C), two("w"), two("b"), eps=EPS)
    yield Query("two entries", y[0].term == real("b0").term, (POSITIVE,))


def shift_of(forward: Any) -> Step:
    """Two entries, for a given norm."""
    x = two("x")
    same = forward(x, eps=EPS)[0].term == forward(x + C, eps=EPS)[0].term
    yield Query("two entries", same, (POSITIVE,))


def scale_of(forward: Any) -> Step:
    """Two entries, with eps as it was."""
    x = two("x")
    positive = Premise(r"c > 0", C.term > 0)
    same = forward(x, eps=EPS)[0].term == forward(x * C, eps=EPS)[0].term
    yield Query("two entries", same, (POSITIVE, positive))


UNCENTRED = rebound(
    layer_norm,
    normalize=rebound(normalize, standardize=mutant(standardize, "x - mean(x)", "x")),
)

OBLIGATIONS: tuple[Obligation, ...] = (
    proved(
        "constant_slice",
        "reals",
        r"(\forall i\; x_i = c) \Rightarrow y_i = b_i",
        "layer_norm, any number n >= 1 of entries, any real c, weight, bias and eps > 0",
        constant_slice,
        Twin("the mean is not subtracted", partial(constant_of, UNCENTRED)),
    ),
    proved(
        "shift",
        "reals",
        r"z(x + c) = z(x)",
        f"{ANY_ROW}; any c",
        shift,
        Twin("the mean is not subtracted", partial(shift_of, UNCENTRED)),
        ENTRIES,
    ),
    proved(
        "scale",
        "reals",
        r"z(c\, x;\; c^2 \varepsilon) = z(x; \varepsilon)",
        f"{ANY_ROW} and c > 0",
        scale,
        Twin("eps stays as it was", partial(scale_of, layer_norm)),
        ENTRIES,
    ),
    proved(
        "scale",
        "rms",
        r"z(c\, x;\; c^2 \varepsilon) = z(x; \varepsilon)",
        f"rms_norm, {ANY_ROW} and c > 0",
        partial(scale, False),
        Twin("eps stays as it was", partial(scale_of, rms_norm)),
    ),
    proved(
        "one_feature",
        "reals",
        r"C = 1 \Rightarrow y = b,\; \bar x = 0,\; \bar w = 0,\; \bar b = g",
        "any real x, weight, bias, cotangent and eps > 0",
        partial(one_feature, layer_norm, layer_norm_backward),
        Twin("the mean is not subtracted", partial(one_feature, UNCENTRED, layer_norm_backward)),
    ),
)
