"""Derivations by computer algebra: gradients compared, and their steps written out for a reader."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import sympy

from assay.proofs.obligation import Case
from assay.proofs.scalars.elementary import Functions
from assay.proofs.scalars.polynomials import inner

READABLE = 20
"""Terms of a formula that is shown; of a longer loss only the statement speaks."""

FLINT = "FLINT's arithmetic of polynomials"
"""What ``pullback_case`` rests on beside rules of derivatives."""


def differentiated(
    loss: sympy.Expr | None,
    x: sympy.Symbol,
    got: sympy.Expr,
    rest: sympy.Expr,
    slope: sympy.Expr | None = None,
) -> tuple[str, ...]:
    r"""The loss, its derivative by ``x``, the spec's gradient, and what remains of their difference
    once it is brought to one numerator.

    loss   None: too long to be read
    slope  the derivative; None: as sympy takes it, where the loss says all

    >>> s = sympy.Symbol("s")
    >>> differentiated(s**2, s, 2 * s, sympy.Integer(0))[1]
    '\\frac{\\partial L}{\\partial s} = 2 s'
    """
    name = sympy.latex(x)
    partial = rf"\frac{{\partial L}}{{\partial {name}}}"
    first = () if loss is None else (f"L = {sympy.latex(loss)}",)
    return (
        *first,
        f"{partial} = {sympy.latex(sympy.diff(loss, x) if slope is None else slope)}",
        rf"\bar {{{name}}} = {sympy.latex(got)}",
        rf"{partial} - \bar {{{name}}} = {sympy.latex(rest)}",
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
    ``inputs[name]``, entry by entry, where all of them are functions of the inputs (polynomials, or
    ``Elementary``).

    shown  the first entry that was given is written out, where none is wrong
    """
    loss = inner(output, cotangent)
    wrong: list[str] = []
    first: tuple[Any, ...] = ()
    for name, entries in inputs.items():
        x: Any = entries
        got = np.asarray(getattr(gradients, name), dtype=object)
        if got.shape != x.shape:
            wrong.append(f"{name} has shape {got.shape}")
            continue
        for i in np.ndindex(x.shape):
            slope = loss.derivative(x[i]) if hasattr(loss, "derivative") else x[i] * 0
            rest = slope - got[i]
            if not rest.vanishes:
                wrong.append(f"{name}{list(i)} remains {rest}")
            first = first or (x[i], got[i] + slope * 0, rest, slope)
    steps = _written(loss, *first) if shown and first and not wrong else ()
    return Case(f"{label}: {wrong[0] if wrong else 'no entry is wrong'}", not wrong, steps)


def _written(loss: Any, *parts: Any) -> tuple[str, ...]:
    whole = loss.formula if loss.terms <= READABLE else None
    return (*loss.definitions, *differentiated(whole, *(part.formula for part in parts)))


def pullback_case(
    label: str,
    forward: Callable[..., Any],
    backward: Callable[..., Any],
    shapes: Mapping[str, tuple[int, ...]],
    cotangents: Mapping[str, str],
    shown: str = "",
) -> Case:
    """``gradient_case`` of a function with several outputs, all of whose inputs are symbols.

    shapes      of the inputs, by their names, which are those of the gradients too
    cotangents  what ``backward`` calls the cotangent of each output, and its symbol
    shown       the input whose first entry is written out
    """
    outputs = forward(**{name: np.zeros(shape) for name, shape in shapes.items()})
    symbols = {s: np.shape(y) for s, y in zip(cotangents.values(), outputs, strict=True)}
    functions = Functions(**shapes, **symbols)
    given = {name: functions[name] for name in sorted(shapes, key=lambda name: name != shown)}
    arriving = {name: functions[symbol] for name, symbol in cotangents.items()}
    gradients = backward(**given, **arriving)
    return gradient_case(
        label, _flat(forward(**given)), _flat(arriving.values()), given, gradients, bool(shown)
    )


def _flat(arrays: Iterable[Any]) -> np.ndarray:
    return np.concatenate([np.ravel(a) for a in arrays])
