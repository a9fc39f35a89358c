"""How long the spec takes for one case of each op: values, gradients, and the bounds of both."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from assay.spec.arithmetic import Arithmetic
from assay.spec.ops import OPS, Op, op
from benchmarks.figure import Figure, Section

SECONDS = 0.3
"""Each function is called for so long; the median of its calls counts."""

Shapes = Mapping[str, tuple[int, ...]]

_SEQUENCE = (1, 64, 16)
_IMAGE = (1, 4, 16, 16)
_NARROW = dict.fromkeys("abcd", (16,))
_SQUARE = (16, 16)

SHAPES: Mapping[str, Shapes] = {
    "attention": dict.fromkeys("qkv", (1, 2, 64, 16)),
    "selective_scan": {
        "u": (1, 64, 2),
        "delta": (1, 64, 2),
        "a": (2, 16),
        "b": (1, 64, 16),
        "c": (1, 64, 16),
        "d": (2,),
    },
    "masked_softmax": {"scores": (1, 64, 64)},
    "affine_scan": {"a": _SEQUENCE, "b": _SEQUENCE, "x": _SEQUENCE},
    "diagonal_ssm": {"x": _SEQUENCE, **_NARROW, "in_proj": _SQUARE, "readout": _SQUARE},
    "compact_ssm": {
        "x": _SEQUENCE,
        **_NARROW,
        **dict.fromkeys(("in_proj", "gate_proj", "out_proj"), _SQUARE),
    },
    "causal_conv1d": {"x": _SEQUENCE, "weight": (4, 16), "bias": (16,)},
    "selective_block": {
        "x": _SEQUENCE,
        **dict.fromkeys(("x_proj", "z_proj", "dt_proj", "b_proj", "c_proj", "out_proj"), _SQUARE),
        "kernel": (4, 16),
        **dict.fromkeys(("conv_bias", "dt_bias", "d_skip"), (16,)),
        "a": (16, 16),
    },
    "rnn": {"x": _SEQUENCE, "weight": (16, 32), "bias": (16,)},
    "lstm": {"x": _SEQUENCE, "weight": (4, 16, 32), "bias": (4, 16)},
    "gru": {"x": _SEQUENCE, "weight": (3, 16, 32), "bias": (3, 16)},
    "linear": {"x": _SEQUENCE, "weight": _SQUARE, "bias": (16,)},
    "layer_norm": {"x": _SEQUENCE, "weight": (16,), "bias": (16,)},
    "rms_norm": {"x": _SEQUENCE, "weight": (16,)},
    "group_norm": {"x": _IMAGE, "weight": (4,), "bias": (4,)},
    "batch_norm": {"x": _IMAGE, "weight": (4,), "bias": (4,)},
    "log_softmax": {"x": _SEQUENCE},
    "convolution": {"x": _IMAGE, "weight": (8, 4, 3, 3), "bias": (8,)},
    "pooling": {"x": _IMAGE},
    "patch_embedding": {"x": _IMAGE, "weight": (16, 4, 4, 4), "bias": (16,)},
    "spectral_conv": {"x": (1, 32, 8), "re": (32, 8, 8), "im": (32, 8, 8)},
    "spectral_conv_rfft": {"x": (1, 32, 8), "re": (8, 8, 8), "im": (8, 8, 8)},
    "fno_block": {
        "x": (1, 32, 8),
        "re": (32, 8, 8),
        "im": (32, 8, 8),
        "skip": (8, 8),
        "bias": (8,),
    },
    "cross_entropy": {"logits": (64, 16), "targets": (64,)},
    "embedding": {"ids": (1, 64), "table": (32, 16)},
    "dropout": {"x": _SEQUENCE, "keep": _SEQUENCE},
    **{n: {"x": _SEQUENCE} for n in ("relu", "gelu", "silu", "sigmoid", "tanh", "softplus")},
}
ATTRIBUTES: Mapping[str, Mapping[str, Any]] = {
    "group_norm": {"groups": 2},
    "convolution": {"padding": 1},
    "spectral_conv": {"modes": (8,)},
    "fno_block": {"modes": (8,)},
}
AIMS: Mapping[str, str] = {"attention": "values 150 us", "selective_scan": "values 1000 us"}


def measure() -> Section:
    """One row an op, in the order of the list."""
    figures = tuple(
        Figure(f"`{name}` {_sizes(shapes)}", _row(op(name), shapes), AIMS.get(name, ""))
        for name, shapes in SHAPES.items()
    )
    left = sorted({entry.name for entry in OPS} - set(SHAPES))
    method = (
        "Microseconds of one call in float64, one thread, median of the calls of "
        f"{SECONDS} s each: values, gradients, bound of the values, bound of the gradients."
    )
    if left:
        method += f" Not measured: {', '.join(left)}."
    return Section("Speed of the spec", method, figures)


def _sizes(shapes: Shapes) -> str:
    """The shape of the first input."""
    return str(next(iter(shapes.values()))).replace(" ", "")


def _row(entry: Op, shapes: Shapes) -> str:
    rng = np.random.default_rng(0)
    make: Mapping[str, Callable[[tuple[int, ...]], np.ndarray]] = {
        "float": rng.random,
        "int": lambda shape: rng.integers(0, 16, shape),
        "bool": lambda shape: rng.random(shape) < 0.5,
    }
    holds = {i.name: i.holds for i in entry.inputs}
    inputs = {n: make[holds[n]](shape) for n, shape in shapes.items()}
    attributes, arithmetic = ATTRIBUTES.get(entry.name, {}), Arithmetic()
    flow = entry.forward(inputs, attributes)
    calls: tuple[Callable[[], object], ...] = (
        lambda: entry.forward(inputs, attributes),
        lambda: entry.backward(inputs, flow, attributes),
        lambda: entry.bound(inputs, attributes, arithmetic),
        lambda: entry.backward_bound(inputs, flow, attributes, arithmetic),
    )
    return " / ".join(f"{1e6 * _seconds(call):.0f}" for call in calls) + " us"


def _seconds(call: Callable[[], object]) -> float:
    """Median time of a call."""
    call()
    times, end = [], time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return statistics.median(times)
