"""Masked softmax in the catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from assay.spec import softmax, softmax_bounds
from assay.spec.arithmetic import Arithmetic
from assay.spec.ops.entry import Arrays, Input, Op


def _softmax_forward(inputs: Arrays, attributes: Mapping[str, Any]) -> dict[str, np.ndarray]:
    return {"weights": softmax.masked_softmax(inputs["scores"], inputs.get("mask"))}


def _softmax_backward(
    inputs: Arrays, cotangents: Arrays, attributes: Mapping[str, Any]
) -> dict[str, np.ndarray]:
    weights = softmax.masked_softmax(inputs["scores"], inputs.get("mask"))
    return {"scores": softmax.softmax_backward(weights, cotangents["weights"], inputs.get("mask"))}


def _softmax_bound(
    inputs: Arrays, attributes: Mapping[str, Any], arithmetic: Arithmetic
) -> dict[str, np.ndarray]:
    return {
        "weights": softmax_bounds.softmax_bound(inputs["scores"], inputs.get("mask"), arithmetic)
    }


def _softmax_backward_bound(
    inputs: Arrays, cotangents: Arrays, attributes: Mapping[str, Any], arithmetic: Arithmetic
) -> dict[str, np.ndarray]:
    return {
        "scores": softmax_bounds.softmax_backward_bound(
            inputs["scores"], cotangents["weights"], inputs.get("mask"), arithmetic
        )
    }


MASKED_SOFTMAX = Op(
    name="masked_softmax",
    summary="softmax over the last axis that gives blocked entries weight 0",
    inputs=(
        Input("scores", ("B", "N", "S")),
        Input("mask", ("B", "N", "S"), differentiable=False, optional=True),
    ),
    attributes=(),
    outputs={"weights": ("B", "N", "S")},
    forward=_softmax_forward,
    backward=_softmax_backward,
    bound=_softmax_bound,
    backward_bound=_softmax_backward_bound,
)
