"""Attention in the catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from assay.spec import attention, attention_bounds
from assay.spec.arithmetic import Arithmetic
from assay.spec.ops.entry import Arrays, Attribute, Input, Op


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
