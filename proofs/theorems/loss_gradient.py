"""Cross-entropy: gradient, ignored rows, smoothing and reduction, on rows of few classes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import sympy

from assay.proofs.derivation import differentiated
from assay.proofs.mutants import mutant, rebound
from assay.proofs.obligation import Body, Case, Obligation, Twin
from assay.proofs.scalars.balls import Ball, precision
from assay.proofs.scalars.rationals import array
from assay.proofs.scalars.symbols import Symbolic, expression
from assay.proofs.scalars.terms import row
from assay.proofs.theorems.softmax_gradient import residual
from assay.spec.functions import log
from assay.spec.layers.cross_entropy import (
    cross_entropy,
    cross_entropy_backward,
    losses,
    share,
)
from assay.spec.layers.log_softmax import log_softmax
from assay.spec.softmax import softmax

Map = Callable[..., Any]
IGNORED = -100
REDUCTIONS = ("none", "mean", "sum")
Instance = tuple[int, int, tuple[str, ...]]
"""Rows, classes and reductions."""
INSTANCES: tuple[Instance, ...] = (
    (1, 1, REDUCTIONS),
    (1, 2, REDUCTIONS),
    (1, 3, ("none",)),
    (2, 2, ("mean",)),
)
# Every smoothing in (0, 1), beside none and all of it.
SMOOTHING = (0, Symbolic(1 / (1 + sympy.Symbol("t", positive=True))), Fraction(1))


def logits(rows: int, classes: int, name: str = "x") -> np.ndarray:
    """[rows, classes] distinct symbols."""
    names = sympy.symbols(f"{name}:{rows * classes}", real=True)
    return row(*map(Symbolic, names)).reshape(rows, classes)


def targets(rows: int, classes: int) -> Iterator[np.ndarray]:
    """Every row of targets, ignored ones among them."""
    for chosen in itertools.product((*range(classes), IGNORED), repeat=rows):
        yield np.array(chosen, dtype=int)


def _cotangent(rows: int, reduction: str) -> np.ndarray:
    if reduction == "none":
        return row(*map(Symbolic, sympy.symbols(f"g:{rows}", real=True)))
    return np.array(Symbolic(sympy.Symbol("g", real=True)), dtype=object)


def _entries(x: Any) -> list[sympy.Expr]:
    return [expression(e) for e in np.ravel(np.asarray(x, dtype=object))]


def derivative(backward: Map, sizes: tuple[Instance, ...]) -> Iterator[Case]:
    """d/dx of sum(g l) equals the backward's entry, for every target, reduction and smoothing."""
    for rows, classes, kinds in sizes:
        x = logits(rows, classes)
        shares = SMOOTHING if rows == 1 else SMOOTHING[1:2]
        for t, reduction, s in itertools.product(targets(rows, classes), kinds, shares):
            g = _cotangent(rows, reduction)
            options = {"reduction": reduction, "label_smoothing": s, "all_ignored": "zero"}
            y = cross_entropy(x, t, **options)
            loss = sympy.Add(*(a * b for a, b in zip(_entries(y), _entries(g), strict=True)))
            got = _entries(backward(x, t, g, **options))
            pairs = list(zip(_entries(x), got, strict=True))
            rests = [residual(sympy.diff(loss, a) - b) for a, b in pairs]
            shown: tuple[str, ...] = ()
            if t.tolist() == [0] and classes == 2 and reduction == "sum" and s == 0:
                shown = differentiated(loss, *pairs[0], rests[0])
            label = f"targets {t.tolist()} of {classes}, {reduction}, smoothing {s}: remains"
            yield Case(f"{label} {rests}", not any(rests), shown)


def ignored_rows(forward: Map, backward: Map) -> Iterator[Case]:
    """NaN and infinity in ignored rows: loss and gradient there are 0, elsewhere what they were."""
    draw = np.random.default_rng(3)
    x = draw.integers(-3, 4, (3, 2)).astype(np.float64)
    for t, reduction, s in itertools.product(targets(3, 2), REDUCTIONS, (0.0, 0.25)):
        options: dict[str, Any] = {"reduction": reduction, "label_smoothing": s}
        ignored = t == IGNORED
        spoilt = x.copy()
        spoilt[ignored] = (np.nan, np.inf)
        g = np.arange(1.0, 4.0) if reduction == "none" else np.array(2.0)
        with np.errstate(invalid="ignore"):
            y, dx = forward(spoilt, t, **options), backward(spoilt, t, g, **options)
        want, slope = cross_entropy(x, t, **options), cross_entropy_backward(x, t, g, **options)
        same = np.array_equal(y, want, equal_nan=True) and np.array_equal(dx, slope)
        zero = (dx[ignored] == 0).all() and (reduction != "none" or (y[ignored] == 0).all())
        name = f"targets {t.tolist()}, {reduction}, smoothing {s}"
        yield Case(name, bool(same and zero))


def nothing_counts(forward: Map) -> Iterator[Case]:
    """No row that counts: a mean is NaN or 0, as declared; all else, and the gradient, is 0."""
    for rows, reduction, policy in itertools.product(range(4), REDUCTIONS, ("nan", "zero")):
        x, t = np.ones((rows, 2)), np.full(rows, IGNORED)
        options: dict[str, Any] = {"reduction": reduction, "all_ignored": policy}
        with np.errstate(invalid="ignore"):
            y = forward(x, t, **options)
        g = np.ones(rows) if reduction == "none" else np.array(1.0)
        dx = cross_entropy_backward(x, t, g, **options)
        wanted = np.nan if reduction == "mean" and policy == "nan" else 0.0
        right = all(np.array_equal(e, wanted, equal_nan=True) for e in np.ravel(y))
        yield Case(f"{rows} rows, {reduction}, {policy}: {y}", right and bool((dx == 0).all()))


def smoothing_mixes(forward: Map) -> Iterator[Case]:
    """l(s) = (1 - s) l(0) + s / V times the sum of the losses of all classes, for each row."""
    for classes, s in itertools.product((1, 2, 3), SMOOTHING):
        x = logits(1, classes)
        every = [
            _entries(cross_entropy(x, np.array([v]), reduction="none"))[0] for v in range(classes)
        ]
        share_of = expression(s)
        for v in range(classes):
            got = forward(x, np.array([v]), reduction="none", label_smoothing=s)
            mixed = (1 - share_of) * every[v] + share_of / classes * sympy.Add(*every)
            rest = sympy.simplify(sympy.expand(_entries(got)[0] - mixed))
            yield Case(f"class {v} of {classes}, smoothing {s}: remains {rest}", rest == 0)


def sums_to_zero(backward: Map) -> Iterator[Case]:
    """The gradient sums to 0 along each row, for every target, reduction and smoothing."""
    for classes in (1, 2, 3, 4):
        x = logits(1, classes)
        for t, reduction, s in itertools.product(targets(1, classes), REDUCTIONS, SMOOTHING):
            options = {"reduction": reduction, "label_smoothing": s}
            got = _entries(backward(x, t, _cotangent(1, reduction), **options))
            rest = residual(sympy.Add(*got))
            label = f"target {t.tolist()} of {classes}, {reduction}, smoothing {s}"
            yield Case(f"{label}: remains {rest}", rest == 0)


def reductions(forward: Map) -> Iterator[Case]:
    """The sum is that of the single losses; the mean divides it by the rows that count."""
    x = logits(3, 2)
    for t in targets(3, 2):
        number = int((t != IGNORED).sum())
        each = _entries(cross_entropy(x, t, reduction="none"))
        (whole,), (mean,) = (
            _entries(forward(x, t, reduction=r, all_ignored="zero")) for r in ("sum", "mean")
        )
        rests = (
            sympy.expand(whole - sympy.Add(*each)),
            sympy.expand(mean * max(number, 1) - whole),
        )
        yield Case(f"targets {t.tolist()}: remain {rests}", rests == (0, 0))


def far_apart(forward: Map) -> Iterator[Case]:
    """The true values are the logits' differences up to e^-799, and float64 gives them exactly."""
    x = (-800.0, -1600.0, 0.0)
    with precision(2400):
        for exact, rounded, want in zip(
            forward(array(x, Ball)), forward(np.array(x)), x, strict=True
        ):
            distance = exact.distance(want)
            yield Case(
                f"{want}: off by {distance:.3g}, float64 gives {rounded}",
                distance < 1e-300 and rounded == want,
            )


SMOOTH_TARGET = mutant(
    cross_entropy_backward, "away - (1 - label_smoothing), away)", "away - 1, away)"
)
ALL_ROWS = mutant(
    cross_entropy_backward,
    "return select(counts[..., None], ",
    "return select(counts[..., None] | True, ",
)
COUNT_ALL = rebound(
    cross_entropy,
    share=mutant(share, "int(np.count_nonzero(counts))", "counts.size"),
)
NO_POLICY = rebound(cross_entropy, share=mutant(share, '"nan": float("nan")', '"nan": 1'))
ONLY_ADDED = rebound(
    cross_entropy,
    losses=mutant(losses, "(1 - smoothing) * loss + smoothing", "loss + smoothing"),
)


def _logarithm_of_softmax(x: Any) -> Any:
    """The weights of -800 and -1600 underflow before their logarithm is taken."""
    with np.errstate(divide="ignore"):
        return log(softmax(x))


GRID = "targets of every class or ignored, reductions none, mean and sum, smoothing 0, any s, and 1"


def _made(
    claim: str, variant: str, statement: str, generality: str, body: Body, twin: Twin
) -> Obligation:
    return Obligation(
        f"loss.{claim}/{variant}",
        f"loss.{claim}",
        statement,
        generality,
        "derived",
        "sympy",
        body,
        twin,
        ("sympy's derivatives of exp, ln and quotients",),
        60.0,
    )


def _listed(
    claim: str, variant: str, statement: str, generality: str, body: Body, twin: Twin
) -> Obligation:
    return Obligation(
        f"loss.{claim}/{variant}",
        f"loss.{claim}",
        statement,
        generality,
        "exhaustive",
        "enumeration",
        body,
        twin,
    )


OBLIGATIONS: tuple[Obligation, ...] = (
    _made(
        "vjp_refines",
        "cross-entropy",
        r"\bar x_{iv} = \frac{\partial}{\partial x_{iv}} \sum_i g_i l_i"
        r" = g_i \left(p_{iv} - (1 - s) [v = t_i] - s / V\right)",
        "symbolic logits and g; (rows, classes) in (1,1) and (1,2) with every reduction, (1,3) "
        "with none; smoothing 0, any s, and 1; (2,2) with the mean and any s; targets of every "
        "class or ignored",
        partial(derivative, cross_entropy_backward, INSTANCES),
        Twin(
            "smoothing does not lower the target's share",
            partial(derivative, SMOOTH_TARGET, INSTANCES[1:2]),
        ),
    ),
    _listed(
        "ignore_index",
        "small",
        r"t_i = \mathrm{ignored} \Rightarrow l_i = 0,\; \bar x_i = 0",
        "3 rows of 2 classes, every target, every reduction, smoothing 0 and 1/4, NaN and inf in "
        "ignored rows; bit for bit",
        partial(ignored_rows, cross_entropy, cross_entropy_backward),
        Twin("every row gets a gradient", partial(ignored_rows, cross_entropy, ALL_ROWS)),
    ),
    _listed(
        "all_ignored",
        "small",
        r"(\forall i\; t_i = \mathrm{ignored}) \Rightarrow l \in \{\mathrm{NaN}, 0\},\; \bar x = 0",
        "0 to 3 rows, every reduction, both policies",
        partial(nothing_counts, cross_entropy),
        Twin("the policy is not asked", partial(nothing_counts, NO_POLICY)),
    ),
    _made(
        "label_smoothing",
        "identity",
        r"l(s) = (1 - s)\, l_t + \tfrac{s}{V} \sum_v l_v",
        "symbolic logits, 1 to 3 classes, every target; smoothing 0, any s, and 1",
        partial(smoothing_mixes, cross_entropy),
        Twin("the target keeps its full share", partial(smoothing_mixes, ONLY_ADDED)),
    ),
    _made(
        "grad_sums_zero",
        "cross-entropy",
        r"\sum_v \bar x_v = 0",
        f"symbolic logits and g, 1 to 4 classes; {GRID}",
        partial(sums_to_zero, cross_entropy_backward),
        Twin("smoothing does not lower the target's share", partial(sums_to_zero, SMOOTH_TARGET)),
    ),
    _made(
        "reduction",
        "identity",
        r"l_{\mathrm{mean}} = \frac{\sum_i l_i}{|\{i : t_i \ne \mathrm{ignored}\}|}",
        "symbolic logits, 3 rows of 2 classes, every target",
        partial(reductions, cross_entropy),
        Twin("ignored rows count in the mean", partial(reductions, COUNT_ALL)),
    ),
    Obligation(
        "loss.stable_logits/enclosed",
        "loss.stable_logits",
        r"\log p(-800, -1600, 0) = (-800, -1600, 0)",
        "these logits: the true values to 1e-300, and float64 exactly",
        "enclosed",
        "arb",
        partial(far_apart, log_softmax),
        Twin("the logarithm is taken of softmax", partial(far_apart, _logarithm_of_softmax)),
        ("Arb's ball arithmetic",),
    ),
)
