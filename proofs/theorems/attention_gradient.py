"""The backward pass of attention is the derivative of its forward pass, by computer algebra."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import sympy

from assay.proofs.derivation import differentiated
from assay.proofs.mutants import mutant
from assay.proofs.obligation import Case, Obligation, Twin
from assay.proofs.scalars.symbols import Symbolic, expression
from assay.proofs.scalars.terms import row
from assay.proofs.theorems.softmax_gradient import residual
from assay.spec.attention import attention, attention_backward

Shapes = tuple[int, int, int, int, int, int]  # H, Hkv, L, S, D, Dv


def symbols(name: str, *shape: int) -> np.ndarray:
    """An array of distinct sympy symbols, with batch axis 1."""
    names = sympy.symbols(f"{name}:{math.prod(shape)}", real=True)
    return row(*map(Symbolic, names)).reshape(1, *shape)


def is_derivative(
    backward: Callable[..., Any], shapes: Shapes, mask: list[list[int]], scale: float | None = None
) -> Iterator[Case]:
    """d/dx of sum(O g) equals the backward's entry, for every entry x of q, k and v."""
    heads, shared, rows, keys, width, columns = shapes
    q = symbols("q", heads, rows, width)
    k, v = symbols("k", shared, keys, width), symbols("v", shared, keys, columns)
    cotangent = symbols("g", heads, rows, columns)
    options: dict[str, Any] = {"mask": np.array(mask, dtype=bool), "scale": scale}
    loss = sum((attention(q, k, v, **options) * cotangent).flat, Symbolic(0)).value
    gradients = backward(q, k, v, cotangent, **options)
    for name, inputs, gradient in zip("qkv", (q, k, v), gradients, strict=True):
        for i, (x, got) in enumerate(zip(inputs.flat, gradient.flat, strict=True)):
            rest = residual(sympy.diff(loss, x.value) - expression(got))
            readable = keys == 3 and i == 0
            shown = differentiated(loss, x.value, expression(got), rest) if readable else ()
            yield Case(f"{shapes}, mask {mask}: d{name}[{i}] off by {rest}", rest == 0, shown)


def derivative(backward: Callable[..., Any]) -> Iterator[Case]:
    """Causal, windowed, empty, multi-column and grouped instances."""
    yield from is_derivative(backward, (1, 1, 2, 2, 1, 1), [[1, 0], [1, 1]], -0.5)
    yield from is_derivative(backward, (1, 1, 2, 2, 1, 1), [[0, 0], [1, 1]])
    yield from is_derivative(backward, (1, 1, 1, 2, 2, 2), [[1, 1]], 2.0)
    yield from is_derivative(backward, (1, 1, 1, 3, 1, 1), [[1, 0, 1]])
    yield from is_derivative(backward, (2, 1, 1, 2, 1, 1), [[1, 1]])


NO_SCALE = mutant(attention_backward, "expand_kv(k, heads)) * factor", "expand_kv(k, heads))")

OBLIGATIONS: tuple[Obligation, ...] = (
    Obligation(
        "attention.vjp_refines/derivative",
        "attention.vjp_refines",
        r"\bar x = \frac{\partial}{\partial x} \sum_{ic} g_{ic} O_{ic}(q, k, v),\quad "
        r"x \in \{q, k, v\}",
        "symbolic q, k, v and cotangents; (H, Hkv, L, S, D, Dv) in (1,1,2,2,1,1) causal and with "
        "an empty row, (1,1,1,2,2,2), (1,1,1,3,1,1) with a blocked key, (2,1,1,2,1,1); "
        "scales -1/2, 1, 2",
        "derived",
        "sympy",
        partial(derivative, attention_backward),
        Twin(
            "dQ lacks the scale",
            partial(is_derivative, NO_SCALE, (1, 1, 1, 2, 1, 1), [[1, 1]], 2.0),
        ),
        ("sympy's derivative of exp and of a quotient",),
        30.0,
    ),
)
