"""Attention over the reals: convexity, linearity, mass, order of keys, prefixes, empty rows,
scale.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import z3

from assay.proofs.induction import K, by_induction, generalised
from assay.proofs.mutants import mutant, rebound
from assay.proofs.obligation import Body, Obligation, Premise, Query, Twin
from assay.proofs.scalars.reals import Real, real
from assay.proofs.scalars.stretches import Axis, Fold, Stretch, StretchMask
from assay.proofs.theorems.rows import SoftmaxRow, general
from assay.proofs.theorems.sequences import as_mask, conditions, stretch, variables
from assay.proofs.theorems.softmax_reals import SUMS
from assay.spec.attention import attention, attention_backward, attention_scores
from assay.spec.softmax import masked_softmax

ANY_KEYS = "any number of keys, any real scores (width D = 1 reaches them all), any mask"
Attention = Callable[..., np.ndarray]


class Row:
    """Attention of one query over any number of keys, with the mass lemma of its softmax."""

    def __init__(self, allowed: Callable[[Axis], StretchMask] | None = None) -> None:
        self.axis = Axis("S", Real)
        self.q, self.k = variables("q", 1, 1), stretch(self.axis, "k")
        self.allowed = allowed(self.axis) if allowed else self.axis.mask("a")
        self.mask = as_mask([self.allowed])
        scores: Stretch = attention_scores(self.q, self.k, None, None).flat[0]
        self.softmax = SoftmaxRow(self.axis, scores, self.allowed)
        self.weights: Fold = self.axis.sum_of(self.softmax.weights)

    def attend(self, v: np.ndarray, **options: Any) -> tuple[Any, Fold]:
        """The output's term and the fold of weighted values."""
        out, taken = self.axis.record(
            lambda: attention(self.q, self.k, v, mask=self.mask, **options).flat[0]
        )
        return out.term, taken[-1]

    def shares(self) -> tuple[list[Query], list[Premise]]:
        """The mass is positive where a key is seen, and the weights sum to 1 there."""
        n = self.axis.length
        queries, positive = self.softmax.positive_mass()
        divisor = z3.If(self.softmax.seen.at(n), self.softmax.mass.at(n), 1)
        more, shares = by_induction(
            "partial sums of the weights are shares of the mass",
            self.axis,
            lambda m: self.weights.at(m) * divisor == self.softmax.mass.at(m),
            premises=[positive],
        )
        return queries + more, [positive, shares]

    def seen(self) -> z3.BoolRef:
        """Some key is allowed."""
        return self.softmax.seen.at(self.axis.length)


def convex() -> Iterator[Query]:
    """Bounds of the visible values bound the output."""
    r = Row()
    v, low, high = stretch(r.axis, "v"), real("low").term, real("high").term
    out, weighted = r.attend(v)
    queries, facts = r.shares()
    yield from queries

    def between(k: Any) -> list[Premise]:
        value = v.flat[0].at(k).term
        inside = z3.Implies(r.allowed.at(k).term, z3.And(low <= value, value <= high))
        return [Premise(r"a_j \Rightarrow \mathit{low} \le v_j \le \mathit{high}", inside)]

    def predicate(m: Any) -> z3.BoolRef:
        share, sum_ = r.weights.at(m), weighted.at(m)
        return z3.And(low * share <= sum_, sum_ <= high * share)

    witness = {"low": -10, "high": 10}
    queries, bounds = by_induction(
        "partial sums lie between the bounds", r.axis, predicate,
        pointwise=between, premises=facts, witness=witness,
    )  # fmt: skip
    yield from queries
    some = Premise(r"\exists j\; a_j", r.seen())
    yield general(
        "the output", z3.And(low <= out, out <= high), [*facts, bounds, some], r.axis, **witness
    )


def convex_of(f: Attention) -> Iterator[Query]:
    """Two visible values, for a given attention."""
    q, k, v = variables("q", 1, 1), variables("k", 2, 1), variables("v", 2, 1)
    out, (a, b) = f(q, k, v).flat[0].term, (x.term for x in v.flat)
    yield Query("two keys", z3.Or(z3.And(a <= out, out <= b), z3.And(b <= out, out <= a)))


def linear_in_v() -> Iterator[Query]:
    """O(alpha v + beta u) = alpha O(v) + beta O(u)."""
    r = Row()
    v, u, alpha, beta = stretch(r.axis, "v"), stretch(r.axis, "u"), real("alpha"), real("beta")
    (out_v, f), (out_u, g) = r.attend(v), r.attend(u)
    out, h = r.attend(alpha * v + beta * u)
    queries, lemma = by_induction(
        "partial sums are linear",
        r.axis,
        lambda m: h.at(m) == alpha.term * f.at(m) + beta.term * g.at(m),
    )
    # True of any weight: the solver need not know how it was made.
    yield from (generalised(query, r.softmax.w(K), "w") for query in queries)
    yield general("the output", out == alpha.term * out_v + beta.term * out_u, [lemma], r.axis)


def linear_of(f: Attention) -> Iterator[Query]:
    """Two keys, for a given attention."""
    q, k, v = variables("q", 1, 1), variables("k", 2, 1), variables("v", 2, 1)
    alpha = real("alpha")
    yield Query("two keys", f(q, k, alpha * v).flat[0].term == (alpha * f(q, k, v).flat[0]).term)


def value_mass() -> Iterator[Query]:
    """The sum over keys of dV is the sum over queries of dO, if both queries see a key."""
    axis = Axis("S", Real)
    q, k, v, g = variables("q", 2, 1), stretch(axis, "k"), stretch(axis, "v"), variables("g", 2, 1)
    allowed = [axis.mask("a"), axis.mask("b")]
    mask = as_mask(*[[a] for a in allowed])
    scores = attention_scores(q, k, None, None)[0, 0, :, 0]
    rows = [SoftmaxRow(axis, s, a) for s, a in zip(scores, allowed, strict=True)]
    dv = attention_backward(q, k, v, g, mask=mask).v.flat[0]
    total, n, facts = axis.sum_of(dv), axis.length, []
    weights = [axis.sum_of(r.weights) for r in rows]
    for r, w in zip(rows, weights, strict=True):
        queries, positive = r.positive_mass()
        yield from queries
        queries, shares = by_induction(
            "partial sums of the weights are shares of the mass",
            axis,
            partial(_shares, r, w),
            premises=[positive],
        )
        yield from queries
        facts += [positive, shares, Premise(r"\exists j\; a_{ij}", r.seen.at(n))]
    cotangents = [x.term for x in g.flat]

    def parts(m: Any) -> z3.BoolRef:
        return total.at(m) == sum(c * w.at(m) for c, w in zip(cotangents, weights, strict=True))

    queries, lemma = by_induction("partial sums of dV", axis, parts, premises=facts)
    yield from queries
    yield general("the mass", total.at(n) == z3.Sum(*cotangents), [*facts, lemma], axis)


def _shares(r: SoftmaxRow, w: Fold, m: Any) -> z3.BoolRef:
    n = r.axis.length
    return w.at(m) * z3.If(r.seen.at(n), r.mass.at(n), 1) == r.mass.at(m)


def value_mass_of(visible: bool) -> Iterator[Query]:
    """One query, two keys; if it need not see any, the statement is false."""
    q, k, v, g = (variables(n, s, 1) for n, s in (("q", 1), ("k", 2), ("v", 2), ("g", 1)))
    mask = conditions("a", 1, 2)
    dv = attention_backward(q, k, v, g, mask=mask).v
    seen = Premise("a key is seen", z3.Or(*[m.term for m in mask.flat]))
    goal = (dv.flat[0] + dv.flat[1]).term == g.flat[0].term
    yield Query("two keys", goal, (seen,) if visible else ())


def scale_zero() -> Iterator[Query]:
    """With scale 0 the output is the plain mean of the visible values."""
    r = Row()
    v, n = stretch(r.axis, "v"), r.axis.length
    out, taken = r.axis.record(lambda: attention(r.q, r.k, v, mask=r.mask, scale=0).flat[0])
    mass, weighted = (f for f in taken if f.function.range() == z3.RealSort())
    count = r.axis.sum_of(r.allowed.select(Real(1), 0))
    visible = r.axis.sum_of(r.allowed.select(v.flat[0], 0))
    zeros = attention_scores(r.q, r.k, None, 0).flat[0]
    each = (-zeros.row_max([zeros], [r.allowed])).exp().term
    some = Premise(r"\exists j\; a_j", r.seen())
    queries, counts = by_induction(
        "every visible key has the same mass",
        r.axis,
        lambda m: z3.And(
            mass.at(m) == each * count.at(m),
            z3.If(r.softmax.seen.at(m), count.at(m) > 0, count.at(m) == 0),
        ),
    )
    yield from queries
    queries, sums = by_induction(
        "weighted sums",
        r.axis,
        lambda m: weighted.at(m) * count.at(n) == visible.at(m),
        premises=[counts, some],
    )
    yield from queries
    goal = out.term * count.at(n) == visible.at(n)
    yield general("the output", goal, [counts, sums, some], r.axis)


def default_scale() -> Iterator[Query]:
    """No scale means 1 / sqrt(D); scaling the queries by c is scale c."""
    for width, scale in ((1, 1.0), (4, 0.5), (16, 0.25)):
        yield from _same_scale(attention, width, scale)
    q, k, v = variables("q", 1, 1), variables("k", 2, 1), variables("v", 2, 1)
    c: Any = real("c")
    scaled = attention(q, k, v, scale=c).flat[0].term
    yield Query("scaled queries", scaled == attention(c * q, k, v, scale=1).flat[0].term)


def _same_scale(f: Attention, width: int, scale: float) -> Iterator[Query]:
    q, k, v = variables("q", 1, width), variables("k", 2, width), variables("v", 2, 1)
    explicit = f(q, k, v, scale=scale).flat[0].term
    yield Query(f"width {width}", f(q, k, v).flat[0].term == explicit)


def scale_zero_of(f: Attention) -> Iterator[Query]:
    """Scale 0 over two visible keys, for a given attention."""
    q, k, v = variables("q", 1, 1), variables("k", 2, 1), variables("v", 2, 1)
    out = f(q, k, v, scale=0).flat[0].term
    yield Query("two keys", 2 * out == (v.flat[0] + v.flat[1]).term)


RESULT = "return contract(weights, allowed, expand_kv(v, q.shape[1]))"
TIMES_MASS = mutant(masked_softmax, "weights / select", "weights * select")
UNNORMALISED = rebound(attention, masked_softmax=TIMES_MASS)
AFFINE = mutant(attention, RESULT, f"{RESULT} + 1")
UNSCALED = rebound(
    attention, attention_scores=rebound(attention_scores, default_scale=lambda _: 1.0)
)
FALSY = rebound(
    attention, attention_scores=mutant(attention_scores, "if scale is None", "if not scale")
)


ROWS = (
    *SUMS,
    "every query row, head, batch entry and value column is computed alike (numpy is elementwise)",
)


def proved(
    claim: str, variant: str, statement: str, generality: str, body: Body, twin: Twin
) -> Obligation:
    """An obligation about every size, over the reals."""
    return Obligation(
        f"{claim}/{variant}", claim, statement, generality, "proved", "z3", body, twin, ROWS
    )


OBLIGATIONS: tuple[Obligation, ...] = (
    proved(
        "attention.convex",
        "reals",
        r"\mathit{low} \le v_j \le \mathit{high} \text{ where } a_{ij} \;\Rightarrow\; "
        r"\mathit{low} \le o_i \le \mathit{high}",
        f"{ANY_KEYS} that allows a key",
        convex,
        Twin("weights are multiplied by the mass", partial(convex_of, UNNORMALISED)),
    ),
    proved(
        "attention.linear_in_v",
        "reals",
        r"O(q, k, \alpha v + \beta v') = \alpha O(q, k, v) + \beta O(q, k, v')",
        ANY_KEYS,
        linear_in_v,
        Twin("1 is added to the output", partial(linear_of, AFFINE)),
    ),
    Obligation(
        "attention.value_mass/reals",
        "attention.value_mass",
        r"\sum_j \bar v_j = \sum_i \bar o_i",
        "two queries, any number of keys, any masks that allow each query a key",
        "bounded",
        "z3",
        value_mass,
        Twin("a query need not see a key", partial(value_mass_of, False)),
        ROWS,
    ),
    proved(
        "attention.scale",
        "zero",
        r"O(\mathrm{scale} = 0) = \operatorname{mean}_{a_{ij}} v_j",
        f"{ANY_KEYS} that allows a key",
        scale_zero,
        Twin("a scale of 0 is taken for no scale", partial(scale_zero_of, FALSY)),
    ),
    Obligation(
        "attention.scale/default",
        "attention.scale",
        r"O(\text{no scale}) = O(1/\sqrt{D}),\quad O(q; c) = O(c\, q; 1)",
        "two keys, widths D = 1, 4 and 16, any real c",
        "bounded",
        "z3",
        default_scale,
        Twin("the default scale is 1", partial(_same_scale, UNSCALED, 4, 0.5)),
    ),
)
