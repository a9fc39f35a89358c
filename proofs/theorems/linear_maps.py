"""Linear maps, embedding and dropout: gradients by computer algebra, and what stays exactly 0."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import sympy
import z3

from assay.proofs.derivation import gradient_case
from assay.proofs.mutants import mutant
from assay.proofs.obligation import Body, Case, Obligation, Premise, Query, Twin
from assay.proofs.scalars.opaque import Opaque, opaque
from assay.proofs.scalars.polynomials import Names, vanish
from assay.proofs.scalars.symbols import Symbolic, expression
from assay.proofs.scalars.terms import row
from assay.proofs.theorems.rows import condition
from assay.spec.layers.dropout import dropout, dropout_backward
from assay.spec.layers.embedding import embedding, embedding_backward
from assay.spec.layers.linear import linear, linear_backward

Map = Callable[..., Any]
ROWS = ((), (3,), (2, 2), (0,))
WIDTHS = ((0, 2), (1, 1), (2, 3), (3, 2))


def linear_gradient(backward: Map) -> Iterator[Case]:
    """Input, weight and bias; rows on none, one and two axes, and none at all."""
    for rows, (wide, out) in itertools.product(ROWS, WIDTHS):
        names = Names(x=(*rows, wide), weight=(out, wide), bias=(out,), g=(*rows, out))
        inputs = {name: names[name] for name in ("x", "weight", "bias")}
        gradients = backward(names["x"], names["weight"], names["g"])
        yield gradient_case(
            f"rows {rows}, {wide} to {out}",
            linear(**inputs),
            names["g"],
            inputs,
            gradients,
            shown=rows == () and wide == 2,
        )


def linear_is_linear(apply: Map) -> Iterator[Case]:
    """f(a x + b y) = a f(x) + b f(y), in the input and in the weight."""
    for rows, (wide, out) in itertools.product(ROWS, WIDTHS):
        each = (*rows, wide)
        names = Names(x=each, y=each, weight=(out, wide), v=(out, wide), a=(), b=())
        a, b = names["a"].reshape(1), names["b"].reshape(1)
        x, y, w, v = (names[n] for n in ("x", "y", "weight", "v"))
        inputs = apply(a * x + b * y, w) - (a * apply(x, w) + b * apply(y, w))
        weights = apply(x, a * w + b * v) - (a * apply(x, w) + b * apply(x, v))
        yield Case(f"rows {rows}, {wide} to {out}", vanish(inputs) and vanish(weights))


def _ids() -> Iterator[tuple[np.ndarray, int | None]]:
    for length, padding in itertools.product(range(4), (None, 0, 2)):
        for ids in itertools.product(range(3), repeat=length):
            yield np.array(ids, dtype=int), padding


def embedding_gradient(backward: Map) -> Iterator[Case]:
    """Three rows, every sequence of at most three of them, with and without a padding row.

    The padding row counts as a constant: what is looked up there has no gradient.
    """
    for ids, padding in _ids():
        names = Names(table=(3, 2), g=(ids.size, 2))
        table = names["table"]
        fixed = table * 1
        if padding is not None:
            fixed[padding] = 0 * fixed[padding]
        output = embedding(ids, fixed, padding_idx=padding)
        gradient = backward(ids, table, names["g"], padding_idx=padding)
        yield gradient_case(
            f"ids {ids.tolist()}, padding {padding}",
            output,
            names["g"],
            {"table": table},
            SimpleNamespace(table=gradient),
            shown=ids.tolist() == [1, 0, 1] and padding is None,
        )


def rows_without_gradient(backward: Map) -> Iterator[Case]:
    """A row that is not looked up, and the padding row, get the number 0 from NaN and infinity."""
    for ids, padding in _ids():
        g = np.full((ids.size, 2), np.nan)
        g[::2] = np.inf
        got = backward(ids, np.zeros((3, 2)), g, padding_idx=padding)
        spared = [v for v in range(3) if v == padding or v not in ids]
        right = all((got[v] == 0).all() == (v in spared) for v in range(3))
        yield Case(f"ids {ids.tolist()}, padding {padding}: 0 at {spared}", bool(right))


def dropout_cases() -> Iterator[tuple[np.ndarray, np.ndarray, Any]]:
    """Two entries, every mask, p = 0, p = 1 and any p between: p = 1 / (1 + t) with t > 0."""
    between = Symbolic(1 / (1 + sympy.Symbol("t", positive=True)))
    x = row(*map(Symbolic, sympy.symbols("x:2", real=True)))
    for keep in itertools.product((False, True), repeat=2):
        for p in (0, between, 1):
            yield x, row(*keep).astype(bool), p


def dropout_gradient(backward: Map) -> Iterator[Case]:
    """The derivative of sum(y g) is the map of g."""
    for x, keep, p in dropout_cases():
        g = row(*map(Symbolic, sympy.symbols("g:2", real=True)))
        for training in (True, False):
            options = {"p": p, "training": training}
            loss = expression(sum((dropout(x, keep, **options) * g).flat, Symbolic(0)))
            got = backward(x, keep, g, **options)
            rests = [
                sympy.simplify(sympy.diff(loss, a.value) - expression(b))
                for a, b in zip(x, got, strict=True)
            ]
            name = f"mask {keep.tolist()}, p={p}, training {training}: remains {rests}"
            yield Case(name, rests == [0, 0])


def expectation(apply: Map) -> Iterator[Case]:
    """sum over masks of P(mask) y(mask) = x, with P a product of p where dropped, 1 - p elsewhere.

    p = 1 drops everything: there is no mean to keep.
    """
    mean: dict[Any, list[sympy.Expr]] = {}
    for x, keep, p in dropout_cases():
        odds = [1 - expression(p) if k else expression(p) for k in keep]
        y = apply(x, keep, p=p)
        sums = mean.setdefault(expression(p), [-expression(e) for e in x])
        for i, e in enumerate(y):
            sums[i] += sympy.Mul(*odds) * expression(e)
    for p, sums in mean.items():
        if p != 1:
            rests = [sympy.simplify(e) for e in sums]
            yield Case(f"p={p}: remains {rests}", rests == [0, 0])


def _plain(x: Any) -> z3.ExprRef:
    """The term of a result that may be a plain number."""
    return Opaque(x).term


def dropped_zero(apply: Map, backward: Map) -> Iterator[Query]:
    """Output and gradient of a dropped entry are the number 0, in any arithmetic."""
    keep, x, g = row(condition("k")), row(opaque("x")), row(opaque("g"))
    zero = _plain(0)
    for p in (0.0, 0.25, 0.5, 1.0):
        dropped = Premise(r"\neg k", z3.Not(keep[0].term))
        for what, y in (("output", apply(x, keep, p=p)), ("gradient", backward(x, keep, g, p=p))):
            yield Query(f"{what}, p={p}", _plain(y[0]) == zero, (dropped,), {"k": False})


def evaluation(apply: Map, backward: Map) -> Iterator[Query]:
    """Outside training nothing happens, in any arithmetic."""
    keep, x, g = row(condition("k")), row(opaque("x")), row(opaque("g"))
    for p in (0.0, 0.25, 1.0):
        y = apply(x, keep, p=p, training=False)[0]
        slope = backward(x, keep, g, p=p, training=False)[0]
        yield Query(f"p={p}", z3.And(_plain(y) == x[0].term, _plain(slope) == g[0].term))


MEAN_BIAS = mutant(linear_backward, "g.sum(axis=0)", "g.sum(axis=0) / max(rows, 1)")
WITH_PADDING = mutant(
    embedding_backward, "[] if padding_idx is None else [padding_idx]", "np.array([], dtype=int)"
)
ONCE = mutant(embedding_backward, "return sums[row]", "return sums[row] / max(flat.size, 1)")
UNSCALED = mutant(dropout, "x / (1 - p)", "x")
INVERTED = mutant(dropout, "select(keep, x / (1 - p), 0)", "select(~keep, x / (1 - p), 0)")
ALWAYS = mutant(dropout, "if not training:", "if not training and p < 1:")


def _unscaled_backward(x: Any, keep: Any, cotangent: Any, **options: Any) -> Any:
    return UNSCALED(cotangent, keep, **options)


def _always_backward(x: Any, keep: Any, cotangent: Any, **options: Any) -> Any:
    return ALWAYS(cotangent, keep, **options)


def _derived(
    claim: str, variant: str, statement: str, generality: str, body: Body, twin: Twin
) -> Obligation:
    return Obligation(
        f"{claim}/{variant}", claim, statement, generality, "derived", "sympy", body, twin, (), 60.0
    )


OBLIGATIONS: tuple[Obligation, ...] = (
    _derived(
        "linear.vjp_refines",
        "derivative",
        r"\bar v = \frac{\partial}{\partial v} \sum g\, (x W^{\top} + b),\quad v \in \{x, W, b\}",
        f"symbolic x, W, b and g; rows {ROWS}, widths (in, out) {WIDTHS}",
        partial(linear_gradient, linear_backward),
        Twin("the bias gets the mean over the rows", partial(linear_gradient, MEAN_BIAS)),
    ),
    _derived(
        "linear.linear",
        "polynomials",
        r"f(\alpha x + \beta y) = \alpha f(x) + \beta f(y)",
        f"symbolic x, y, W, V and factors; rows {ROWS}, widths (in, out) {WIDTHS}",
        partial(linear_is_linear, linear),
        Twin(
            "a constant is added",
            partial(linear_is_linear, mutant(linear, "return np", "return 1 + np")),
        ),
    ),
    _derived(
        "embedding.vjp_refines",
        "derivative",
        r"\bar E_v = \frac{\partial}{\partial E_v} \sum_i g_i E_{t_i}",
        "symbolic table of 3 rows of 2 and g; every sequence of at most 3 ids, padding row none, "
        "0 or 2",
        partial(embedding_gradient, embedding_backward),
        Twin("the mean over the ids", partial(embedding_gradient, ONCE)),
    ),
    Obligation(
        "embedding.padding_row_zero_grad/small",
        "embedding.padding_row_zero_grad",
        r"v = \mathrm{pad} \lor (\forall i\; t_i \ne v) \Rightarrow \bar E_v = 0",
        "3 rows, every sequence of at most 3 ids, padding row none, 0 or 2, cotangents NaN and inf",
        "exhaustive",
        "enumeration",
        partial(rows_without_gradient, embedding_backward),
        Twin("the padding row is like any other", partial(rows_without_gradient, WITH_PADDING)),
    ),
    _derived(
        "dropout.vjp_refines",
        "derivative",
        r"\bar x = \frac{\partial}{\partial x} \sum_i g_i\, k_i\, x_i / (1 - p)",
        "symbolic x, g and p in (0, 1), p = 0 and p = 1; 2 entries, every mask, with and without "
        "training",
        partial(dropout_gradient, dropout_backward),
        Twin("the gradient is not scaled", partial(dropout_gradient, _unscaled_backward)),
    ),
    _derived(
        "dropout.expectation",
        "masks",
        r"\sum_k p^{|\neg k|} (1 - p)^{|k|}\, y(k) = x",
        "symbolic x and p in (0, 1), and p = 0; 2 entries",
        partial(expectation, dropout),
        Twin("what is kept is not scaled", partial(expectation, UNSCALED)),
    ),
    Obligation(
        "dropout.dropped_zero/any-arithmetic",
        "dropout.dropped_zero",
        r"\neg k \Rightarrow y = \bar x = 0",
        "any entry, bit for bit in any arithmetic; p in 0, 1/4, 1/2, 1",
        "bounded",
        "z3",
        partial(dropped_zero, dropout, dropout_backward),
        Twin(
            "the mask is read the other way round",
            partial(dropped_zero, INVERTED, dropout_backward),
        ),
    ),
    Obligation(
        "dropout.evaluation/any-arithmetic",
        "dropout.evaluation",
        r"y = x,\quad \bar x = g",
        "any entry, bit for bit in any arithmetic; p in 0, 1/4, 1",
        "bounded",
        "z3",
        partial(evaluation, dropout, dropout_backward),
        Twin(
            "p = 1 drops outside training as well",
            partial(evaluation, ALWAYS, _always_backward),
        ),
    ),
)
