"""The steps of a derivation by computer algebra, written out for a reader."""

from __future__ import annotations

import sympy


def differentiated(
    loss: sympy.Expr, x: sympy.Symbol, got: sympy.Expr, rest: sympy.Expr
) -> tuple[str, ...]:
    r"""The loss, its derivative by ``x``, the spec's gradient, and what remains of their difference
    once it is brought to one numerator.

    >>> s = sympy.Symbol("s")
    >>> differentiated(s**2, s, 2 * s, sympy.Integer(0))[1]
    '\\frac{\\partial L}{\\partial s} = 2 s'
    """
    name = sympy.latex(x)
    slope = rf"\frac{{\partial L}}{{\partial {name}}}"
    return (
        f"L = {sympy.latex(loss)}",
        f"{slope} = {sympy.latex(sympy.diff(loss, x))}",
        rf"\bar {{{name}}} = {sympy.latex(got)}",
        rf"{slope} - \bar {{{name}}} = {sympy.latex(rest)}",
    )
