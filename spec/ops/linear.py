"""The linear map and embedding in the catalogue."""

from __future__ import annotations

import numpy as np

from assay.spec.arithmetic import Arithmetic
from assay.spec.layers.embedding import embedding, embedding_backward
from assay.spec.layers.embedding_bounds import embedding_backward_bound
from assay.spec.layers.linear import linear, linear_backward
from assay.spec.ops.entry import Arrays, Attribute, Attributes, Input, Op

Results = dict[str, np.ndarray]


def _linear(inputs: Arrays, attributes: Attributes) -> Results:
    return {"out": linear(inputs["x"], inputs["weight"], inputs.get("bias"))}


def _linear_backward(inputs: Arrays, cotangents: Arrays, attributes: Attributes) -> Results:
    found = linear_backward(inputs["x"], inputs["weight"], cotangents["out"])._asdict()
    return {n: found[n] for n in found if n in inputs}


LINEAR_MAP = Op(
    name="linear",
    summary="x W^T + b on the last axis",
    inputs=(
        Input("x", ("B", "N", "I")),
        Input("weight", ("O", "I")),
        Input("bias", ("O",), optional=True),
    ),
    attributes=(),
    outputs={"out": ("B", "N", "O")},
    forward=_linear,
    backward=_linear_backward,
)


def _embedding(inputs: Arrays, attributes: Attributes) -> Results:
    return {"out": embedding(inputs["ids"], inputs["table"], **attributes)}


def _embedding_backward(inputs: Arrays, cotangents: Arrays, attributes: Attributes) -> Results:
    g = cotangents["out"]
    return {"table": embedding_backward(inputs["ids"], inputs["table"], g, **attributes)}


def _embedding_backward_bound(
    inputs: Arrays, cotangents: Arrays, attributes: Attributes, arithmetic: Arithmetic
) -> Results:
    padding = attributes.get("padding_idx")
    g = cotangents["out"]
    bound = embedding_backward_bound(inputs["ids"], inputs["table"], g, padding, arithmetic)
    return {"table": bound}


EMBEDDING = Op(
    name="embedding",
    summary="rows of a table by identifier",
    inputs=(
        Input("ids", ("B", "N"), differentiable=False, holds="int"),
        Input("table", ("V", "D")),
    ),
    attributes=(Attribute("padding_idx", None, "row that takes no gradient"),),
    outputs={"out": ("B", "N", "D")},
    forward=_embedding,
    backward=_embedding_backward,
    backward_bound=_embedding_backward_bound,
)

LINEAR: tuple[Op, ...] = (LINEAR_MAP, EMBEDDING)
