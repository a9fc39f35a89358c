"""The gradient of masked softmax: it is the derivative, sums to 0, and is 0 at blocked entries."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import sympy
import z3

from assay.proofs.derivation import differentiated
from assay.proofs.induction import by_induction
from assay.proofs.mutants import mutant
from assay.proofs.obligation import Case, Obligation, Premise, Query, Twin
from assay.proofs.scalars.reals import Real, real
from assay.proofs.scalars.stretches import Axis
from assay.proofs.scalars.symbols import Symbolic, expression
from assay.proofs.scalars.terms import row
from assay.proofs.theorems.rows import J, SoftmaxRow, concrete, general, inside, real_row
from assay.proofs.theorems.softmax_reals import ANY_ROW, SUMS
from assay.spec.softmax import masked_softmax, softmax_backward

Backward = Callable[..., Any]


def is_derivative(backward: Backward, sizes: tuple[int, ...]) -> Iterator[Case]:
    """d/ds_i of sum_j g_j w_j(s) equals the backward's i-th entry, for every mask of every size."""
    for n in sizes:
        s, g = sympy.symbols(f"s:{n}", real=True), sympy.symbols(f"g:{n}", real=True)
        scores, cotangent = row(*map(Symbolic, s)), row(*map(Symbolic, g))
        for mask in itertools.product((False, True), repeat=n):
            allowed = row(*mask)
            weights = masked_softmax(scores, allowed)
            loss = sum((weights * cotangent).flat, Symbolic(0)).value
            gradient = backward(weights, cotangent, allowed)
            for i in range(n):
                got = expression(gradient[i])
                rest = residual(sympy.diff(loss, s[i]) - got)
                readable = n == 2 and all(mask) and i == 0
                shown = differentiated(loss, s[i], got, rest) if readable else ()
                yield Case(f"n={n}, mask={mask}, entry {i}: remains {rest}", rest == 0, shown)


def residual(difference: sympy.Expr) -> sympy.Expr:
    """0 iff the difference is 0: it is a rational function of the exponentials of its monomials."""
    names: dict[sympy.Expr, sympy.Symbol] = {}

    def named(exponent: sympy.Expr) -> sympy.Expr:
        parts = sympy.expand(exponent).as_coefficients_dict().items()
        powers = [names.setdefault(t, sympy.Symbol(f"e{len(names)}")) ** c for t, c in parts]
        return sympy.Mul(*powers)

    rational = difference.replace(sympy.exp, named)
    return sympy.expand(sympy.numer(sympy.together(rational)))


def sums_to_zero() -> Iterator[Query]:
    """The gradient sums to 0 over a row of any length."""
    axis, scores, allowed = real_row()
    r = SoftmaxRow(axis, scores, allowed)
    cotangent, n = axis.values("g"), axis.length
    gradient, taken = axis.record(
        lambda: softmax_backward(row(r.weights), row(cotangent), row(allowed))[0]
    )
    mean, total, whole = taken[0], axis.sum_of(r.weights), axis.sum_of(gradient)
    queries, positive = r.positive_mass()
    yield from queries
    divisor = z3.If(r.seen.at(n), r.mass.at(n), 1)
    queries, shares = by_induction(
        "partial sums of the weights are shares of the mass; the mean is 0 while nothing is seen",
        axis,
        lambda m: z3.And(
            total.at(m) * divisor == r.mass.at(m), z3.Or(r.seen.at(m), mean.at(m) == 0)
        ),
        premises=[positive],
    )
    yield from queries
    queries, parts = by_induction(
        "partial sums of the gradient",
        axis,
        lambda m: whole.at(m) == mean.at(m) - mean.at(n) * total.at(m),
        premises=[positive],
    )
    yield from queries
    yield general("the sum", whole.at(n) == 0, [positive, shares, parts], axis)


def sums_to_zero_of(backward: Backward) -> Iterator[Query]:
    """Two keys, for a given backward."""
    scores, allowed = concrete(2)
    weights = masked_softmax(scores, allowed)
    gradient = backward(weights, row(real("g0"), real("g1")), allowed)
    yield Query("two keys", gradient[0].term + gradient[1].term == 0)


def from_weights() -> Iterator[Query]:
    """A zero weight alone gives a zero gradient: no mask is needed over the reals."""
    axis = Axis("S", Real)
    weights = axis.values("w")
    gradient = softmax_backward(row(weights), row(axis.values("g")))[0]
    zero = Premise(r"w_j = 0", weights.at(J).term == 0)
    goal = gradient.at(J).term == 0
    yield general("the gradient", goal, [zero, inside(axis)], axis, w=lambda j: 0)


def from_weights_of(backward: Backward) -> Iterator[Query]:
    """Two keys, the first of weight 0, for a given backward."""
    weights, cotangent = row(real("w0"), real("w1")), row(real("g0"), real("g1"))
    zero = Premise(r"w_0 = 0", weights[0].term == 0)
    yield Query("two keys", backward(weights, cotangent)[0].term == 0, (zero,))


SIGNED = mutant(
    softmax_backward,
    "select(allowed, weights * (seen - total(seen * weights)), 0)",
    "select(allowed, weights * (seen + total(seen * weights)), 0)",
)
SIGNED_FROM_WEIGHTS = mutant(
    softmax_backward, "weights * (cotangent - total(cotangent * weights))",
    "cotangent - total(cotangent * weights)",
)  # fmt: skip

OBLIGATIONS: tuple[Obligation, ...] = (
    Obligation(
        "softmax.vjp_refines/derivative",
        "softmax.vjp_refines",
        r"\frac{\partial}{\partial s_i} \sum_j g_j w_j(s) = w_i \left(g_i - \sum_k g_k w_k\right)",
        "rows of n <= 4 entries, every mask, symbolic scores and cotangents",
        "derived",
        "sympy",
        partial(is_derivative, softmax_backward, (1, 2, 3, 4)),
        Twin("the mean is added instead of subtracted", partial(is_derivative, SIGNED, (2,))),
        ("sympy's derivative of exp and of a quotient",),
        30.0,
    ),
    Obligation(
        "softmax.grad_sums_zero/reals",
        "softmax.grad_sums_zero",
        r"\sum_{j<n} \bar s_j = 0",
        f"{ANY_ROW}; any real cotangents",
        "proved",
        "z3",
        sums_to_zero,
        Twin("the mean is added instead of subtracted", partial(sums_to_zero_of, SIGNED)),
        SUMS,
    ),
    Obligation(
        "softmax.grad_blocked_zero/reals",
        "softmax.grad_blocked_zero",
        r"w_j = 0 \Rightarrow \bar s_j = 0",
        "any row length, real weights and cotangents, no mask at hand",
        "proved",
        "z3",
        from_weights,
        Twin("the factor w is left out", partial(from_weights_of, SIGNED_FROM_WEIGHTS)),
        SUMS,
    ),
)
