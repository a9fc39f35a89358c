"""Derivations by computer algebra: gradients compared, and their steps written out for a reader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import sympy

from assay.proofs.obligation import Case
from assay.proofs.scalars.polynomials import Polynomial, inner


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


def gradient_case(
    label: str,
    output: np.ndarray,
    cotangent: np.ndarray,
    inputs: Mapping[str, np.ndarray],
    gradients: Any,
    shown: bool = False,
) -> Case:
    """Whether the field ``name`` of ``gradients`` is the derivative of sum(output * cotangent) by
    ``inputs[name]``, entry by entry, where all of them are polynomials in the inputs.

    shown  the first entry that was given is written out
    """
    loss = inner(output, cotangent)
    wrong: list[str] = []
    steps: tuple[str, ...] = ()
    for name, entries in inputs.items():
        x: Any = entries
        got = np.asarray(getattr(gradients, name), dtype=object)
        if got.shape != x.shape:
            wrong.append(f"{name} has shape {got.shape}")
            continue
        for i in np.ndindex(x.shape):
            slope = loss.derivative(x[i]) if isinstance(loss, Polynomial) else x[i] * 0
            rest = slope - got[i]
            if not rest.vanishes:
                wrong.append(f"{name}{list(i)} remains {rest}")
            elif shown and not steps:
                terms = [e.element.as_expr() for e in (loss, x[i], got[i] + slope * 0, rest)]
                steps = differentiated(*terms)
    return Case(f"{label}: {wrong[0] if wrong else 'no entry is wrong'}", not wrong, steps)
