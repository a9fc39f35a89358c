"""Scans and state-space blocks in the catalogue."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from assay.spec.ops.entry import Arrays, Input, Op, running, running_backward
from assay.spec.scans.affine import affine_scan, affine_scan_backward
from assay.spec.scans.block import (
    STABLE,
    BlockParameters,
    BlockState,
    Forms,
    selective_block,
    selective_block_backward,
)
from assay.spec.scans.bounds import ANY_FORM, lost_either
from assay.spec.scans.causal_conv import causal_conv1d, causal_conv1d_backward
from assay.spec.scans.compact import compact_ssm, compact_ssm_backward
from assay.spec.scans.diagonal import diagonal_ssm, diagonal_ssm_backward
from assay.spec.scans.selective import selective_scan, selective_scan_backward

Results = dict[str, np.ndarray]
Attributes = Mapping[str, Any]

_X = Input("x", ("B", "T", "I"))
_STATE = Input("h0", ("B", "E"), optional=True)
_SELECTIVE_STATE = Input("h0", ("B", "E", "Ns"), optional=True)
_HISTORY = Input("history", ("B", "Kt-1", "E"), optional=True)
_CONSTANTS = tuple(Input(name, ("E",)) for name in "abcd")


def _forward(function: Callable[..., Any], *outputs: str) -> Callable[..., Results]:
    def forward(inputs: Arrays, attributes: Attributes) -> Results:
        results = function(**inputs)
        return dict(zip(outputs, results if len(outputs) > 1 else (results,), strict=True))

    return forward


def _backward(
    function: Callable[..., Any], *outputs: str, absent: tuple[str, ...], **form: Any
) -> Callable[..., Results]:
    """``absent`` names the inputs that may be left out."""

    def backward(inputs: Arrays, cotangents: Arrays, attributes: Attributes) -> Results:
        given: dict[str, Any] = {**dict.fromkeys(absent), **inputs}
        names = ("cotangent", f"{outputs[-1]}_cotangent")[: len(outputs)]
        flow = {n: cotangents[o] for n, o in zip(names, outputs, strict=True)}
        grads = function(**given, **flow, **form)._asdict()
        return {n: grads[n] for n in inputs}

    return backward


AFFINE_SCAN = Op(
    name="affine_scan",
    summary="affine scan: all states of h = a h + b x; a and b broadcast to x",
    inputs=(
        Input("a", ("B", "T", "E")),
        Input("b", ("B", "T", "E")),
        Input("x", ("B", "T", "E")),
        _STATE,
    ),
    attributes=(),
    outputs={"states": ("B", "T", "E")},
    forward=_forward(affine_scan, "states"),
    backward=_backward(affine_scan_backward, "states", absent=("h0",)),
)

DIAGONAL_SSM = Op(
    name="diagonal_ssm",
    summary="diagonal state-space block with constant coefficients",
    inputs=(
        _X,
        *_CONSTANTS,
        Input("in_proj", ("I", "E")),
        Input("readout", ("E", "O")),
        _STATE,
    ),
    attributes=(),
    outputs={"out": ("B", "T", "O"), "state": ("B", "E")},
    forward=_forward(diagonal_ssm, "out", "state"),
    backward=_backward(diagonal_ssm_backward, "out", "state", absent=("h0",)),
)

COMPACT_SSM = Op(
    name="compact_ssm",
    summary="gated state-space block with constant coefficients",
    inputs=(
        _X,
        *_CONSTANTS,
        Input("in_proj", ("I", "E")),
        Input("gate_proj", ("I", "E")),
        Input("out_proj", ("E", "O")),
        _STATE,
    ),
    attributes=(),
    outputs={"out": ("B", "T", "O"), "state": ("B", "E")},
    forward=_forward(compact_ssm, "out", "state"),
    backward=_backward(compact_ssm_backward, "out", "state", absent=("h0",)),
)

CAUSAL_CONV1D = Op(
    name="causal_conv1d",
    summary="causal depthwise convolution with the history of a stream; tap 0 is the current input",
    inputs=(
        Input("x", ("B", "T", "E")),
        Input("weight", ("Kt", "E")),
        Input("bias", ("E",), optional=True),
        _HISTORY,
    ),
    attributes=(),
    outputs={"out": ("B", "T", "E"), "history": ("B", "Kt-1", "E")},
    forward=_forward(causal_conv1d, "out", "history"),
    backward=_backward(causal_conv1d_backward, "out", "history", absent=("bias", "history")),
)

SELECTIVE_SCAN = Op(
    name="selective_scan",
    summary="selective scan: decay exp(-delta a), added delta u b, read by c, and a skip",
    inputs=(
        Input("u", ("B", "T", "E")),
        Input("delta", ("B", "T", "E")),
        Input("a", ("E", "Ns")),
        Input("b", ("B", "T", "Ns")),
        Input("c", ("B", "T", "Ns")),
        Input("d", ("E",), optional=True),
        _SELECTIVE_STATE,
    ),
    attributes=(),
    outputs={"out": ("B", "T", "E"), "state": ("B", "E", "Ns")},
    forward=_forward(selective_scan, "out", "state"),
    backward=_backward(selective_scan_backward, "out", "state", absent=("d", "h0")),
    backward_bound=running_backward(
        _backward(selective_scan_backward, "out", "state", absent=("d", "h0"), lose=lost_either)
    ),
)


def _block_state(inputs: Arrays) -> BlockState:
    """What is left out is None, and the block takes zeros."""
    return BlockState(*(inputs.get(n) for n in ("h0", "history")))  # type: ignore[arg-type]


def _block_forward(forms: Forms) -> Callable[..., Results]:
    def forward(inputs: Arrays, attributes: Attributes) -> Results:
        parameters = BlockParameters(*(inputs[n] for n in BlockParameters._fields))
        out, state = selective_block(inputs["x"], parameters, _block_state(inputs), forms=forms)
        return {"out": out, "state": state.h, "history": state.history}

    return forward


def _block_backward(forms: Forms) -> Callable[..., Results]:
    def backward(inputs: Arrays, cotangents: Arrays, attributes: Attributes) -> Results:
        parameters = BlockParameters(*(inputs[n] for n in BlockParameters._fields))
        flow = BlockState(cotangents["state"], cotangents["history"])
        dx, grads, state = selective_block_backward(
            inputs["x"], parameters, _block_state(inputs), cotangents["out"], flow, forms=forms
        )
        every = {"x": dx, **grads._asdict(), "h0": state.h, "history": state.history}
        return {n: every[n] for n in inputs}

    return backward


SELECTIVE_BLOCK = Op(
    name="selective_block",
    summary="selective block: projections, causal convolution, selective scan, gate",
    inputs=(
        _X,
        Input("x_proj", ("I", "E")),
        Input("z_proj", ("I", "E")),
        Input("kernel", ("Kt", "E")),
        Input("conv_bias", ("E",)),
        Input("dt_proj", ("E", "E")),
        Input("dt_bias", ("E",)),
        Input("a", ("E", "Ns")),
        Input("b_proj", ("E", "Ns")),
        Input("c_proj", ("E", "Ns")),
        Input("d_skip", ("E",)),
        Input("out_proj", ("E", "O")),
        _SELECTIVE_STATE,
        _HISTORY,
    ),
    attributes=(),
    outputs={
        "out": ("B", "T", "O"),
        "state": ("B", "E", "Ns"),
        "history": ("B", "Kt-1", "E"),
    },
    forward=_block_forward(STABLE),
    backward=_block_backward(STABLE),
    bound=running(_block_forward(ANY_FORM)),
    backward_bound=running_backward(_block_backward(ANY_FORM)),
)

SCANS: tuple[Op, ...] = (
    AFFINE_SCAN,
    DIAGONAL_SSM,
    COMPACT_SSM,
    CAUSAL_CONV1D,
    SELECTIVE_SCAN,
    SELECTIVE_BLOCK,
)
