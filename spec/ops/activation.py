"""Activations and dropout in the catalogue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from assay.spec.arithmetic import Arithmetic
from assay.spec.layers import activations
from assay.spec.layers.activation_bounds import (
    flushed_bound,
    gelu_backward_bound,
    gelu_bound,
    softplus_bound,
    tanh_backward_bound,
)
from assay.spec.layers.dropout import dropout, dropout_backward
from assay.spec.ops.entry import Arrays, Attribute, Attributes, Input, Op

Results = dict[str, np.ndarray]
Function = Callable[..., Any]
DIMS = ("B", "N", "C")


def _pointwise(
    name: str,
    summary: str,
    function: Function,
    gradient: Function,
    *attributes: Attribute,
    bound: Any = None,
    backward_bound: Any = None,
) -> Op:
    def forward(inputs: Arrays, given: Attributes) -> Results:
        return {"out": function(inputs["x"], **given)}

    def backward(inputs: Arrays, cotangents: Arrays, given: Attributes) -> Results:
        return {"x": gradient(inputs["x"], cotangents["out"], **given)}

    return Op(
        name=name,
        summary=summary,
        inputs=(Input("x", DIMS),),
        attributes=attributes,
        outputs={"out": DIMS},
        forward=forward,
        backward=backward,
        bound=bound,
        backward_bound=backward_bound,
    )


def _flushed(function: Function) -> Any:
    def bound(inputs: Arrays, attributes: Attributes, arithmetic: Arithmetic) -> Results:
        return {"out": flushed_bound(function, inputs["x"], arithmetic)}

    return bound


def _flushed_backward(gradient: Function) -> Any:
    def bound(
        inputs: Arrays, cotangents: Arrays, attributes: Attributes, arithmetic: Arithmetic
    ) -> Results:
        slope = cotangents["out"]
        return {"x": flushed_bound(lambda x: gradient(x, 1), inputs["x"], arithmetic, slope)}

    return bound


def _softplus_bound(inputs: Arrays, attributes: Attributes, arithmetic: Arithmetic) -> Results:
    return {"out": softplus_bound(inputs["x"], arithmetic)}


def _gelu_bound(inputs: Arrays, attributes: Attributes, arithmetic: Arithmetic) -> Results:
    form = attributes.get("approximate", "none")
    return {"out": gelu_bound(inputs["x"], form, arithmetic)}


def _gelu_backward_bound(
    inputs: Arrays, cotangents: Arrays, attributes: Attributes, arithmetic: Arithmetic
) -> Results:
    form = attributes.get("approximate", "none")
    return {"x": gelu_backward_bound(inputs["x"], cotangents["out"], form, arithmetic)}


RELU = _pointwise("relu", "max(x, 0)", activations.relu, activations.relu_backward)


def _tanh_backward_bound(
    inputs: Arrays, cotangents: Arrays, attributes: Attributes, arithmetic: Arithmetic
) -> dict[str, np.ndarray]:
    return {"x": tanh_backward_bound(inputs["x"], cotangents["out"], arithmetic)}


GELU = _pointwise(
    "gelu",
    "x times the mass of a standard normal below x, or its tanh form",
    activations.gelu,
    activations.gelu_backward,
    Attribute("approximate", "none", "'none' or 'tanh'"),
    bound=_gelu_bound,
    backward_bound=_gelu_backward_bound,
)
SILU = _pointwise(
    "silu",
    "x sigmoid(x)",
    activations.silu,
    activations.silu_backward,
    bound=_flushed(activations.silu),
    backward_bound=_flushed_backward(activations.silu_backward),
)
SIGMOID = _pointwise(
    "sigmoid",
    "1 / (1 + exp(-x))",
    activations.sigmoid,
    activations.sigmoid_backward,
    bound=_flushed(activations.sigmoid),
    backward_bound=_flushed_backward(activations.sigmoid_backward),
)
TANH = _pointwise(
    "tanh",
    "hyperbolic tangent",
    activations.tanh,
    activations.tanh_backward,
    backward_bound=_tanh_backward_bound,
)
SOFTPLUS = _pointwise(
    "softplus",
    "ln(1 + exp(x))",
    activations.softplus,
    activations.softplus_backward,
    bound=_softplus_bound,
    backward_bound=_flushed_backward(activations.softplus_backward),
)


def _dropout(inputs: Arrays, attributes: Attributes) -> Results:
    return {"out": dropout(inputs["x"], inputs["keep"], **{"p": 0.5, **attributes})}


def _dropout_backward(inputs: Arrays, cotangents: Arrays, attributes: Attributes) -> Results:
    given = {"p": 0.5, **attributes}
    return {"x": dropout_backward(inputs["x"], inputs["keep"], cotangents["out"], **given)}


DROPOUT = Op(
    name="dropout",
    summary="entries kept by a given mask, divided by 1 - p",
    inputs=(Input("x", DIMS), Input("keep", DIMS, differentiable=False, holds="bool")),
    attributes=(
        Attribute("p", 0.5, "probability with which masks drop an entry"),
        Attribute("training", True, "False: the identity"),
    ),
    outputs={"out": DIMS},
    forward=_dropout,
    backward=_dropout_backward,
)

ACTIVATION: tuple[Op, ...] = (RELU, GELU, SILU, SIGMOID, TANH, SOFTPLUS, DROPOUT)
