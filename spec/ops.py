"""The catalogue of operators: names, symbolic shapes, attributes, spec functions and bounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from assay.spec import attention, attention_bounds, softmax, softmax_bounds
from assay.spec.arithmetic import Arithmetic

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Input:
    """One array: symbolic dims, whether gradients flow into it, whether it may be left out."""

    name: str
    dims: tuple[str, ...]
    differentiable: bool = True
    optional: bool = False


@dataclass(frozen=True)
class Attribute:
    """One keyword that is not an array, and its default."""

    name: str
    default: Any
    meaning: str


@dataclass(frozen=True)
class Op:
    """One operator.

    forward(inputs, attributes) -> outputs by name; backward(inputs, cotangents, attributes) ->
    gradients by input name; bound(inputs, attributes, arithmetic) and backward_bound(inputs,
    cotangents, attributes, arithmetic) -> elementwise absolute error bounds, in the shapes of what
    they bound.
    """

    name: str
    summary: str
    inputs: tuple[Input, ...]
    attributes: tuple[Attribute, ...]
    outputs: Mapping[str, tuple[str, ...]]
    forward: Callable[[Arrays, Mapping[str, Any]], dict[str, np.ndarray]]
    backward: Callable[[Arrays, Arrays, Mapping[str, Any]], dict[str, np.ndarray]]
    bound: Callable[[Arrays, Mapping[str, Any], Arithmetic], dict[str, np.ndarray]]
    backward_bound: Callable[[Arrays, Arrays, Mapping[str, Any], Arithmetic], dict[str, np.ndarray]]

    @property
    def required(self) -> tuple[str, ...]:
        """Names of the inputs that every call has."""
        return tuple(i.name for i in self.inputs if not i.optional)

    @property
    def differentiable(self) -> tuple[str, ...]:
        """Names of the inputs that receive gradients."""
        return tuple(i.name for i in self.inputs if i.differentiable)


def _split(
    inputs: Arrays,
) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], np.ndarray | None]:
    return (inputs["q"], inputs["k"], inputs["v"]), inputs.get("mask")


def _attention_forward(inputs: Arrays, attributes: Mapping[str, Any]) -> dict[str, np.ndarray]:
    qkv, mask = _split(inputs)
    return {"out": attention.attention(*qkv, mask=mask, **attributes)}


def _attention_backward(
    inputs: Arrays, cotangents: Arrays, attributes: Mapping[str, Any]
) -> dict[str, np.ndarray]:
    qkv, mask = _split(inputs)
    return attention.attention_backward(*qkv, cotangents["out"], mask=mask, **attributes)._asdict()


def _attention_bound(
    inputs: Arrays, attributes: Mapping[str, Any], arithmetic: Arithmetic
) -> dict[str, np.ndarray]:
    qkv, mask = _split(inputs)
    return {
        "out": attention_bounds.attention_bound(
            *qkv, mask=mask, arithmetic=arithmetic, **attributes
        )
    }


def _attention_backward_bound(
    inputs: Arrays, cotangents: Arrays, attributes: Mapping[str, Any], arithmetic: Arithmetic
) -> dict[str, np.ndarray]:
    qkv, mask = _split(inputs)
    return attention_bounds.attention_backward_bound(
        *qkv, cotangents["out"], mask=mask, arithmetic=arithmetic, **attributes
    )._asdict()


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

ATTENTION = Op(
    name="attention",
    summary="scaled dot-product attention: grouped heads, masks, causal offset, window, scale",
    inputs=(
        Input("q", ("B", "H", "L", "D")),
        Input("k", ("B", "Hkv", "S", "D")),
        Input("v", ("B", "Hkv", "S", "Dv")),
        Input("mask", ("B", "H", "L", "S"), differentiable=False, optional=True),
    ),
    attributes=(
        Attribute("causal", False, "query i sees keys up to offset + i"),
        Attribute("offset", 0, "position of the first query"),
        Attribute("window", None, "(left, right) positions around the query; None is unlimited"),
        Attribute("scale", None, "factor on the scores; None is 1/sqrt(D)"),
    ),
    outputs={"out": ("B", "H", "L", "Dv")},
    forward=_attention_forward,
    backward=_attention_backward,
    bound=_attention_bound,
    backward_bound=_attention_backward_bound,
)

OPS: tuple[Op, ...] = (MASKED_SOFTMAX, ATTENTION)


def op(name: str) -> Op:
    """The op with this name; KeyError names the valid ones.

    >>> op("attention").required
    ('q', 'k', 'v')
    """
    for entry in OPS:
        if entry.name == name:
            return entry
    raise KeyError(f"op {name!r} does not exist; valid: {', '.join(o.name for o in OPS)}")
