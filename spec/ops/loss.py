"""Log-softmax and cross-entropy in the catalogue."""

from __future__ import annotations

import numpy as np

from assay.spec.arithmetic import Arithmetic
from assay.spec.layers.cross_entropy import cross_entropy, cross_entropy_backward
from assay.spec.layers.log_softmax import log_softmax, log_softmax_backward
from assay.spec.layers.loss_bounds import (
    cross_entropy_backward_bound,
    cross_entropy_bound,
    log_softmax_backward_bound,
    log_softmax_bound,
)
from assay.spec.ops.entry import Arrays, Attribute, Attributes, Input, Op

Results = dict[str, np.ndarray]


def _log_softmax(inputs: Arrays, attributes: Attributes) -> Results:
    return {"out": log_softmax(inputs["x"])}


def _log_softmax_backward(inputs: Arrays, cotangents: Arrays, attributes: Attributes) -> Results:
    return {"x": log_softmax_backward(inputs["x"], cotangents["out"])}


def _log_softmax_bound(inputs: Arrays, attributes: Attributes, arithmetic: Arithmetic) -> Results:
    return {"out": log_softmax_bound(inputs["x"], arithmetic)}


def _log_softmax_backward_bound(
    inputs: Arrays, cotangents: Arrays, attributes: Attributes, arithmetic: Arithmetic
) -> Results:
    return {"x": log_softmax_backward_bound(inputs["x"], cotangents["out"], arithmetic)}


LOG_SOFTMAX = Op(
    name="log_softmax",
    summary="logarithm of softmax over the last axis",
    inputs=(Input("x", ("B", "N", "V")),),
    attributes=(),
    outputs={"out": ("B", "N", "V")},
    forward=_log_softmax,
    backward=_log_softmax_backward,
    bound=_log_softmax_bound,
    backward_bound=_log_softmax_backward_bound,
)


def _cross_entropy(inputs: Arrays, attributes: Attributes) -> Results:
    return {"loss": cross_entropy(inputs["logits"], inputs["targets"], **attributes)}


def _cross_entropy_backward(inputs: Arrays, cotangents: Arrays, attributes: Attributes) -> Results:
    g = cotangents["loss"]
    return {"logits": cross_entropy_backward(inputs["logits"], inputs["targets"], g, **attributes)}


def _cross_entropy_bound(inputs: Arrays, attributes: Attributes, arithmetic: Arithmetic) -> Results:
    bound = cross_entropy_bound(inputs["logits"], inputs["targets"], arithmetic, **attributes)
    return {"loss": bound}


def _cross_entropy_backward_bound(
    inputs: Arrays, cotangents: Arrays, attributes: Attributes, arithmetic: Arithmetic
) -> Results:
    logits, targets, g = inputs["logits"], inputs["targets"], cotangents["loss"]
    bound = cross_entropy_backward_bound(logits, targets, g, arithmetic, **attributes)
    return {"logits": bound}


CROSS_ENTROPY = Op(
    name="cross_entropy",
    summary="negative log-probability of targets, with ignored rows and label smoothing",
    inputs=(
        Input("logits", ("N", "V")),
        Input("targets", ("N",), differentiable=False, holds="int"),
    ),
    attributes=(
        Attribute("ignore_index", -100, "target of a row that does not count"),
        Attribute("label_smoothing", 0.0, "share of the target spread evenly over the classes"),
        Attribute("reduction", "mean", "'mean' over the rows that count, 'sum', or 'none'"),
        Attribute("all_ignored", "nan", "mean where no row counts: 'nan' or 'zero'"),
    ),
    outputs={"loss": ()},
    forward=_cross_entropy,
    backward=_cross_entropy_backward,
    bound=_cross_entropy_bound,
    backward_bound=_cross_entropy_backward_bound,
)

LOSS: tuple[Op, ...] = (LOG_SOFTMAX, CROSS_ENTROPY)
