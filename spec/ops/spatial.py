"""Convolution, pooling and patch embedding in the catalogue.

Their bounds hold for direct sums of the products, in any order. Winograd's and Fourier forms
transform inputs and kernel first, and their error follows the size of what is transformed, not of
the products: for a convolution that declares it ``spec.spatial.normwise`` adds what this takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from assay.spec.arithmetic import Arithmetic
from assay.spec.ops.entry import (
    Arrays,
    Attribute,
    Attributes,
    Input,
    Op,
    running,
    running_backward,
)
from assay.spec.spatial import convolution, normwise, patches, pooling


def _convolution_forward(inputs: Arrays, attributes: Attributes) -> dict[str, np.ndarray]:
    out = convolution.convolution(inputs["x"], inputs["weight"], inputs.get("bias"), **attributes)
    return {"out": out}


def _convolution_backward(
    inputs: Arrays, cotangents: Arrays, attributes: Attributes
) -> dict[str, np.ndarray]:
    gradients = convolution.convolution_backward(
        inputs["x"], inputs["weight"], cotangents["out"], **attributes
    )
    return {n: g for n, g in gradients._asdict().items() if n in inputs}


def _convolution_bound(
    inputs: Arrays, attributes: Attributes, arithmetic: Arithmetic
) -> dict[str, np.ndarray]:
    direct = running(_convolution_forward)(inputs, attributes, arithmetic)
    if not arithmetic.normwise:
        return direct
    return {"out": direct["out"] + normwise.convolution_slack(inputs, attributes, arithmetic)}


def _convolution_backward_bound(
    inputs: Arrays, cotangents: Arrays, attributes: Attributes, arithmetic: Arithmetic
) -> dict[str, np.ndarray]:
    direct = running_backward(_convolution_backward)(inputs, cotangents, attributes, arithmetic)
    if not arithmetic.normwise:
        return direct
    more = normwise.convolution_backward_slack(inputs, cotangents, attributes, arithmetic)
    return {n: bound + more.get(n, 0.0) for n, bound in direct.items()}


def _patch_forward(inputs: Arrays, attributes: Attributes) -> dict[str, np.ndarray]:
    tokens = patches.patch_embedding(
        inputs["x"],
        inputs["weight"],
        inputs.get("bias"),
        inputs.get("class_token"),
        **attributes,
    )
    return {"tokens": tokens}


def _patch_backward(
    inputs: Arrays, cotangents: Arrays, attributes: Attributes
) -> dict[str, np.ndarray]:
    gradients = patches.patch_embedding_backward(
        inputs["x"],
        inputs["weight"],
        cotangents["tokens"],
        inputs.get("class_token"),
        **attributes,
    )
    return {n: g for n, g in gradients._asdict().items() if n in inputs}


_POOLS: Mapping[str, tuple[Any, Any]] = {
    "mean": (pooling.mean_pool, pooling.mean_pool_backward),
    "max": (pooling.max_pool, pooling.max_pool_backward),
}


def _pool(attributes: Attributes) -> tuple[Any, Any, dict[str, Any]]:
    rest = dict(attributes)
    kind = rest.pop("kind", "mean")
    if kind not in _POOLS:
        raise ValueError(f"kind={kind!r} is not a pooling; valid: {', '.join(sorted(_POOLS))}")
    return *_POOLS[kind], rest


def _pooling_forward(inputs: Arrays, attributes: Attributes) -> dict[str, np.ndarray]:
    forward, _, rest = _pool(attributes)
    return {"out": forward(inputs["x"], **rest)}


def _pooling_backward(
    inputs: Arrays, cotangents: Arrays, attributes: Attributes
) -> dict[str, np.ndarray]:
    _, backward, rest = _pool(attributes)
    return {"x": backward(inputs["x"], cotangents["out"], **rest)}


CONVOLUTION = Op(
    name="convolution",
    summary="convolution over any number of axes: stride, padding, dilation, groups",
    inputs=(
        Input("x", ("B", "Cin", "*n")),
        Input("weight", ("Cout", "Cin/G", "*k")),
        Input("bias", ("Cout",), optional=True),
    ),
    attributes=(
        Attribute("stride", 1, "inputs from one window to the next: one, or one for each axis"),
        Attribute("padding", 0, "zeros on both sides: one, or one for each axis"),
        Attribute("dilation", 1, "inputs from one tap to the next: one, or one for each axis"),
        Attribute("groups", 1, "parts of the channels that do not see each other"),
    ),
    outputs={"out": ("B", "Cout", "*m")},
    forward=_convolution_forward,
    backward=_convolution_backward,
    bound=_convolution_bound,
    backward_bound=_convolution_backward_bound,
)

PATCH_EMBEDDING = Op(
    name="patch_embedding",
    summary="patches of a grid as tokens, row by row, behind a class token",
    inputs=(
        Input("x", ("B", "Cin", "*n")),
        Input("weight", ("D", "Cin", "*k")),
        Input("bias", ("D",), optional=True),
        Input("class_token", ("1", "D"), optional=True),
    ),
    attributes=(
        Attribute("stride", None, "inputs from one patch to the next; None is the kernel"),
        Attribute("padding", 0, "zeros on both sides: one, or one for each axis"),
    ),
    outputs={"tokens": ("B", "M", "D")},
    forward=_patch_forward,
    backward=_patch_backward,
)

POOLING = Op(
    name="pooling",
    summary="mean or maximum over windows of a grid",
    inputs=(Input("x", ("B", "C", "*n")),),
    attributes=(
        Attribute("kind", "mean", "mean (padding counts as zeros) or max (padding is not chosen)"),
        Attribute("window", None, "taps: one number, or one for each axis; None is the extent"),
        Attribute("stride", None, "inputs from one window to the next; None is the window"),
        Attribute("padding", 0, "positions on both sides, at most half a window"),
    ),
    outputs={"out": ("B", "C", "*m")},
    forward=_pooling_forward,
    backward=_pooling_backward,
)

SPATIAL: tuple[Op, ...] = (CONVOLUTION, PATCH_EMBEDDING, POOLING)
