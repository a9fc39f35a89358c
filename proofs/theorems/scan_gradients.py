"""Gradients of scans are derivatives: into inputs, parameters and the state that came before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

from assay.proofs.derivation import FLINT, pullback_case
from assay.proofs.mutants import mutant, rebound
from assay.proofs.obligation import Case, Obligation, Twin
from assay.spec.scans.block import (
    BlockParameters,
    BlockState,
    MambaParameters,
    mamba_layer,
    mamba_layer_backward,
    selective_block,
    selective_block_backward,
)
from assay.spec.scans.causal_conv import causal_conv1d, causal_conv1d_backward
from assay.spec.scans.compact import compact_ssm, compact_ssm_backward
from assay.spec.scans.diagonal import diagonal_ssm, diagonal_ssm_backward
from assay.spec.scans.selective import selective_scan, selective_scan_backward

Layer = Callable[..., Any]
Shapes = Mapping[str, tuple[int, ...]]


class Scan(NamedTuple):
    """A layer, the sizes at which it is derived, the keywords of its cotangents, and the input
    whose gradient is shown.
    """

    forward: Layer
    backward: Layer
    sizes: tuple[Shapes, ...]
    cotangents: Mapping[str, str]
    shown: str


def derivative(scan: Scan) -> Iterator[Case]:
    """The gradient of sum(outputs g) + sum(state H), at each of the sizes."""
    for i, shapes in enumerate(scan.sizes):
        label = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        shown = scan.shown if i == 0 else ""
        yield pullback_case(label, scan.forward, scan.backward, shapes, scan.cotangents, shown)


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


def compact(steps: int, channels: int) -> Shapes:
    """As ``diagonal``, and gated."""
    shapes = dict(diagonal(steps, channels))
    out_proj = shapes.pop("readout")
    return {**shapes, "gate_proj": (1, channels), "out_proj": out_proj}


def taps(steps: int, count: int) -> Shapes:
    """One channel."""
    return {"x": (1, steps, 1), "weight": (count, 1), "bias": (1,), "history": (1, count - 1, 1)}


def block(steps: int, channels: int, states: int, rate: str = "a") -> Shapes:
    """One feature in and out, two taps; ``rate`` is what the parameter of decay is called."""
    e, square = (channels,), (channels, channels)
    mixed = (channels, states)
    return {
        "x": (1, steps, 1), "x_proj": (1, channels), "z_proj": (1, channels),
        "kernel": (2, channels), "conv_bias": e, "dt_proj": square, "dt_bias": e, rate: mixed,
        "b_proj": mixed, "c_proj": mixed, "d_skip": e, "out_proj": (channels, 1),
        "h": (1, *mixed), "history": (1, 1, channels),
    }  # fmt: skip


def block_forward(layer: Layer, kind: Any) -> Layer:
    """A block of named tensors instead of tuples: the outputs and both parts of the state."""

    def forward(*, x: Any, h: Any, history: Any, **parameters: Any) -> tuple[Any, ...]:
        outputs, state = layer(x, kind(**parameters), BlockState(h, history))
        return outputs, *state

    return forward


def block_backward(layer: Layer, kind: Any) -> Layer:
    """The same of its gradients."""

    def backward(*, x: Any, h: Any, history: Any, g: Any, **given: Any) -> SimpleNamespace:
        after = BlockState(given.pop("h_cotangent"), given.pop("history_cotangent"))
        found = layer(x, kind(**given), BlockState(h, history), g, after)
        parts = {**found.parameters._asdict(), **found.state._asdict()}
        return SimpleNamespace(x=found.x, **parts)

    return backward


def conv_without_history(*, history_cotangent: Any, **given: Any) -> Any:
    """The cotangent of the history that is handed on is ignored."""
    return causal_conv1d_backward(**given)


def diagonal_without_last(*, state_cotangent: Any, **given: Any) -> Any:
    """The cotangent of the last state is ignored."""
    return diagonal_ssm_backward(**given)


STATE = {"cotangent": "g", "state_cotangent": "H"}
BLOCK = {"g": "g", "h_cotangent": "H", "history_cotangent": "P"}
LOST = rebound(selective_scan_backward, _slopes=lambda scan, read: read)
GATE_OPEN = mutant(compact_ssm_backward, "sigmoid_backward(z, dgated * y)", "dgated * y")
DETACHED = mutant(selective_block_backward, "du = scan.u + through", "du = scan.u")
INTO_RATE = mutant(mamba_layer_backward, 'block.a * named.pop("a")', 'named.pop("a")')
SELECTIVE = Scan(selective_scan, selective_scan_backward, (selective(2, 2),), STATE, "h0")
DIAGONAL = Scan(diagonal_ssm, diagonal_ssm_backward, (diagonal(2, 2),), STATE, "h0")
TAPS = Scan(
    causal_conv1d,
    causal_conv1d_backward,
    (taps(2, 3),),
    {"cotangent": "g", "history_cotangent": "P"},
    "history",
)
COMPACT = Scan(
    compact_ssm, compact_ssm_backward, (compact(1, 1), compact(2, 2)), STATE, "gate_proj"
)
SIZES = ((1, 1, 1), (2, 1, 1), (1, 1, 2))
SELECTIVE_BLOCK = Scan(
    block_forward(selective_block, BlockParameters),
    block_backward(selective_block_backward, BlockParameters),
    tuple(block(*sizes) for sizes in SIZES),
    BLOCK,
    "dt_bias",
)
MAMBA = Scan(
    block_forward(mamba_layer, MambaParameters),
    block_backward(mamba_layer_backward, MambaParameters),
    tuple(block(*sizes, "log_a") for sizes in SIZES),
    BLOCK,
    "log_a",
)


def _derived(variant: str, generality: str, scan: Scan, text: str, wrong: Layer) -> Obligation:
    name = "scan.vjp_refines"
    return Obligation(
        f"{name}/{variant}",
        name,
        r"\frac{\partial}{\partial \theta} \left(\sum_t g_t y_t(\theta) + H\, h_T(\theta)\right)"
        r" = \bar\theta",
        f"{generality}; into every input and the state before the first step",
        "derived",
        "sympy",
        partial(derivative, scan),
        Twin(text, partial(derivative, scan._replace(backward=wrong))),
        ("the derivatives of exp and log, and the chain rule", FLINT),
    )


OBLIGATIONS: tuple[Obligation, ...] = (
    _derived(
        "selective",
        "selective_scan_backward, two steps, one channel of two states",
        SELECTIVE,
        "cotangents are not moved back",
        LOST,
    ),
    _derived(
        "diagonal",
        "diagonal_ssm_backward, two steps, two channels",
        DIAGONAL,
        "the cotangent of the last state is ignored",
        diagonal_without_last,
    ),
    _derived(
        "taps",
        "causal_conv1d_backward, two steps, three taps",
        TAPS,
        "the cotangent of the history that is handed on is ignored",
        conv_without_history,
    ),
    _derived(
        "compact",
        "compact_ssm_backward, one step of one channel and two of two",
        COMPACT,
        "the gate's slope s (1 - s) is left out",
        GATE_OPEN,
    ),
    _derived(
        "block",
        "selective_block_backward, two taps; one and two steps of one channel and state, one step "
        "of two states",
        SELECTIVE_BLOCK,
        "delta, b and c are taken for constants",
        block_backward(DETACHED, BlockParameters),
    ),
    _derived(
        "mamba",
        "mamba_layer_backward, two taps; one and two steps of one channel and state, one step of "
        "two states",
        MAMBA,
        "the gradient into a is given for the one into its logarithm",
        block_backward(INTO_RATE, MambaParameters),
    ),
)
