"""Activations: their stable forms are the textbook ones, and their gradients the derivatives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import sympy

from assay.proofs.derivation import differentiated
from assay.proofs.mutants import mutant
from assay.proofs.obligation import Case, Obligation, Twin
from assay.proofs.scalars.balls import Ball, precision
from assay.proofs.scalars.symbols import Symbolic, expression
from assay.proofs.scalars.terms import row
from assay.spec.layers.activations import (
    ACTIVATIONS,
    gelu,
    gelu_backward,
    relu_backward,
    sigmoid,
    sigmoid_backward,
    silu_backward,
    softplus,
    softplus_backward,
    tanh_backward,
)

Map = Callable[..., Any]
X, G = sympy.Symbol("x", real=True), sympy.Symbol("g", real=True)
SIDES = (sympy.Symbol("x", nonpositive=True), sympy.Symbol("x", positive=True))
# The double that is nearest to 0.044715, as kernels have it.
CUBIC = sympy.Rational(0.044715)
LOGISTIC = 1 / (1 + sympy.exp(-X))
INNER = sympy.sqrt(2 / sympy.pi) * (X + CUBIC * X**3)
TEXTBOOK: dict[str, sympy.Expr] = {
    "gelu": X * (1 + sympy.erf(X / sympy.sqrt(2))) / 2,
    "gelu_tanh": X * (1 + sympy.tanh(INNER)) / 2,
    "silu": X * LOGISTIC,
    "sigmoid": LOGISTIC,
    "tanh": sympy.tanh(X),
    "softplus": sympy.log(1 + sympy.exp(X)),
    "identity": X,
}
"""Smooth everywhere: where two forms meet at 0, both are this function on all of their side."""


def _sides(name: str) -> tuple[sympy.Symbol, ...]:
    """One formula for every x where nothing is compared, else one on each side of 0."""
    return SIDES if name in ("relu", "silu", "sigmoid", "softplus") else (X,)


def _where(x: sympy.Symbol) -> str:
    return {SIDES[0]: "x <= 0", SIDES[1]: "x > 0"}.get(x, "all x")


def _textbook(name: str, x: sympy.Symbol) -> sympy.Expr:
    if name == "relu":
        return x if x.is_positive else sympy.Integer(0)
    return TEXTBOOK[name].subs(X, x)


def _at(f: Map, *arguments: sympy.Expr) -> sympy.Expr:
    """A function of the spec at one symbolic point."""
    return expression(f(*(row(Symbolic(a)) for a in arguments))[0])


def _remains(a: sympy.Expr, b: sympy.Expr) -> sympy.Expr:
    """0 iff a = b: where logarithms occur, iff exp(a - b) = 1."""
    if (a - b).has(sympy.log):
        return sympy.simplify(sympy.expand(sympy.exp(a - b)) - 1)
    return sympy.expand(sympy.numer(sympy.together(a - b)))


def is_textbook(name: str, forward: Map) -> Iterator[Case]:
    """The spec's form is the textbook's, on both sides of 0."""
    for x in _sides(name):
        rest = _remains(_at(forward, x), _textbook(name, x))
        yield Case(f"{name}, {_where(x)}: remains {rest}", rest == 0)


def is_derivative(name: str, forward: Map, backward: Map) -> Iterator[Case]:
    """The spec's gradient is g times the derivative of the textbook's form, which the spec's is."""
    yield from is_textbook(name, forward)
    for x in _sides(name):
        loss = G * _textbook(name, x)
        got = _at(backward, x, G)
        rest = _remains(sympy.diff(loss, x), got)
        shown = differentiated(loss, x, got, rest) if x is not SIDES[1] else ()
        yield Case(f"gradient of {name}, {_where(x)}: remains {rest}", rest == 0, shown)


def variants_differ(first: Map, second: Map) -> Iterator[Case]:
    """At x = 1/2, 1, 2 and -1 the two forms lie apart; at 0 and far out nothing tells them."""
    with precision(120):
        for point in (0.5, 1.0, 2.0, -1.0):
            values = [f(row(Ball(point)))[0] for f in (first, second)]
            gap = float(abs(values[0].value - values[1].value).lower())
            yield Case(f"x={point}: apart by {gap:.3g} at least", values[0].apart(values[1]))


TANH = partial(gelu, approximate="tanh")
PLANTED: dict[str, tuple[str, Map]] = {
    "relu": (
        "the slope at positive x is 2",
        mutant(relu_backward, "0, cotangent)", "0, 2 * cotangent)"),
    ),
    "gelu": (
        "the density is not halved",
        mutant(gelu_backward, "_slope(x) / 2)", "_slope(x))"),
    ),
    "gelu_tanh": (
        "the cubic's slope lacks the 3",
        partial(
            mutant(gelu_backward, "3 * (CUBIC * (x * x))", "(CUBIC * (x * x))"), approximate="tanh"
        ),
    ),
    "silu": ("the factor x is taken for a constant", mutant(silu_backward, "(s * (1", "(s * (0")),
    "sigmoid": ("s (1 + s)", mutant(sigmoid_backward, "s * (1 - s)", "s * (1 + s)")),
    "tanh": ("1 - t", mutant(tanh_backward, "y * y", "y")),
    "softplus": (
        "sigmoid of -x",
        mutant(softplus_backward, "cotangent * sigmoid(x)", "cotangent * (1 - sigmoid(x))"),
    ),
}
NOT_REFLECTED = mutant(sigmoid, "select(at_most(x, 0), small, 1)", "small")


def _vjp(name: str, forward: Map, backward: Map) -> Obligation:
    label, wrong = PLANTED[name]
    sides = "x <= 0 and x > 0" if len(_sides(name)) == 2 else "one formula for all x"
    sides += "; at 0 the gradient is the subgradient 0" if name == "relu" else ""
    return Obligation(
        f"activation.vjp_refines/{name}",
        "activation.vjp_refines",
        rf"\bar x = g\, f'(x),\quad f(x) = {_formula(name)}",
        f"symbolic real x and g; {sides}",
        "derived",
        "sympy",
        partial(is_derivative, name, forward, backward),
        Twin(label, partial(is_derivative, name, forward, wrong)),
        ("sympy's derivatives of exp, log, tanh and erf",),
    )


def _formula(name: str) -> str:
    if name == "relu":
        return r"\max(x, 0)"
    # The coefficient is a double: its exact digits would hide the formula.
    return sympy.latex(TEXTBOOK[name].subs(CUBIC, sympy.Symbol("0.044715")))


OBLIGATIONS: tuple[Obligation, ...] = (
    *(_vjp(name, ACTIVATIONS[name].forward, ACTIVATIONS[name].backward) for name in PLANTED),
    Obligation(
        "activation.refines/stable-sigmoid",
        "activation.refines",
        r"\frac{e^{-|x|}}{1 + e^{-|x|}} = \frac{1}{1 + e^{-x}} \text{ for } x \le 0",
        "symbolic real x, x <= 0 and x > 0",
        "derived",
        "sympy",
        partial(is_textbook, "sigmoid", sigmoid),
        Twin("exp(-|x|) above on both sides", partial(is_textbook, "sigmoid", NOT_REFLECTED)),
    ),
    Obligation(
        "activation.refines/stable-softplus",
        "activation.refines",
        r"\max(x, 0) + \ln(1 + e^{-|x|}) = \ln(1 + e^x)",
        "symbolic real x, x <= 0 and x > 0",
        "derived",
        "sympy",
        partial(is_textbook, "softplus", softplus),
        Twin(
            "the linear part is left out",
            partial(is_textbook, "softplus", mutant(softplus, "relu(x) + ", "")),
        ),
    ),
    Obligation(
        "activation.gelu_variant/apart",
        "activation.gelu_variant",
        r"x\,\Phi(x) \ne \tfrac{x}{2} \left(1 + \tanh(\ldots)\right)",
        "x = 1/2, 1, 2, -1: balls that do not meet",
        "enclosed",
        "arb",
        partial(variants_differ, gelu, TANH),
        Twin("both are the form by tanh", partial(variants_differ, TANH, TANH)),
        ("Arb's ball arithmetic",),
    ),
)
