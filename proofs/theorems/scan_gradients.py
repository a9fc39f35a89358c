"""Gradients of scans are derivatives: into inputs, parameters and the state that came before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import sympy

from assay.proofs.derivation import differentiated
from assay.proofs.mutants import rebound
from assay.proofs.obligation import Case, Obligation, Twin
from assay.proofs.scalars.symbols import Symbolic, expression
from assay.proofs.theorems.softmax_gradient import residual
from assay.spec.scans.causal_conv import causal_conv1d, causal_conv1d_backward
from assay.spec.scans.diagonal import diagonal_ssm, diagonal_ssm_backward
from assay.spec.scans.selective import selective_scan, selective_scan_backward

Layer = Callable[..., Any]
Shapes = Mapping[str, tuple[int, ...]]


def symbols(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """An array of distinct symbols."""
    result = np.empty(shape, dtype=object)
    for i in np.ndindex(*shape):
        result[i] = Symbolic(sympy.Symbol(f"{name}_{''.join(map(str, i))}"))
    return result


def derivative(layer: Layer, backward: Layer, shapes: Shapes, shown: str) -> Iterator[Case]:
    """The gradient of sum(outputs g) + sum(state G), entry by entry of every input."""
    given = {name: symbols(name, shape) for name, shape in shapes.items()}
    outputs, state = layer(**given)
    g, last = symbols("g", outputs.shape), symbols("G", state.shape)
    loss = (sum((outputs * g).flat, Symbolic(0)) + sum((state * last).flat, Symbolic(0))).value
    gradients = backward(*given.values(), g, last)
    for (name, values), found in zip(given.items(), gradients, strict=True):
        for i, (symbol, slope) in enumerate(zip(values.flat, found.flat, strict=True)):
            got = expression(slope)
            rest = residual(sympy.diff(loss, symbol.value) - got)
            readable = name == shown and i == 0
            steps = differentiated(loss, symbol.value, got, rest) if readable else ()
            yield Case(f"{symbol.value}: remains {rest}", rest == 0, steps)


def selective(steps: int, states: int) -> Shapes:
    """One channel."""
    step = (1, steps, states)
    return {
        "u": (1, steps, 1), "delta": (1, steps, 1), "a": (1, states), "b": step, "c": step,
        "d": (1,), "h0": (1, 1, states),
    }  # fmt: skip


def diagonal(steps: int, channels: int) -> Shapes:
    """One feature in and out."""
    e = (channels,)
    return {
        "x": (1, steps, 1), "a": e, "b": e, "c": e, "d": e, "in_proj": (1, channels),
        "readout": (channels, 1), "h0": (1, channels),
    }  # fmt: skip


def taps(steps: int, count: int) -> Shapes:
    """One channel."""
    return {"x": (1, steps, 1), "weight": (count, 1), "bias": (1,), "history": (1, count - 1, 1)}


LOST = rebound(selective_scan_backward, _slopes=lambda scan, read: read)


def conv_without_history(*given: Any) -> Any:
    """The cotangent of the history that is handed on is ignored."""
    return causal_conv1d_backward(*given[:-1])


def diagonal_without_last(*given: Any) -> Any:
    """The cotangent of the last state is ignored."""
    return diagonal_ssm_backward(*given[:-1])


def _derived(
    variant: str, generality: str, case: tuple[Layer, Layer, Shapes, str], text: str, wrong: Layer
) -> Obligation:
    layer, backward, shapes, shown = case
    name = "scan.vjp_refines"
    return Obligation(
        f"{name}/{variant}",
        name,
        r"\frac{\partial}{\partial \theta} \left(\sum_t g_t y_t(\theta) + G\, h_T(\theta)\right)"
        r" = \bar\theta",
        f"{generality}; into every input and the state before the first step",
        "derived",
        "sympy",
        partial(derivative, layer, backward, shapes, shown),
        Twin(text, partial(derivative, layer, wrong, shapes, shown)),
        ("sympy's derivative of exp, of a sum and of a product",),
    )


OBLIGATIONS: tuple[Obligation, ...] = (
    _derived(
        "selective",
        "selective_scan_backward, two steps, one channel of two states",
        (selective_scan, selective_scan_backward, selective(2, 2), "h0"),
        "cotangents are not moved back",
        LOST,
    ),
    _derived(
        "diagonal",
        "diagonal_ssm_backward, two steps, two channels",
        (diagonal_ssm, diagonal_ssm_backward, diagonal(2, 2), "h0"),
        "the cotangent of the last state is ignored",
        diagonal_without_last,
    ),
    _derived(
        "taps",
        "causal_conv1d_backward, two steps, three taps",
        (causal_conv1d, causal_conv1d_backward, taps(2, 3), "history"),
        "the cotangent of the history that is handed on is ignored",
        conv_without_history,
    ),
)
