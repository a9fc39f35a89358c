"""Normalisations in the catalogue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from assay.spec.arithmetic import Arithmetic
from assay.spec.layers.norm_bounds import normalize_backward_bound, normalize_bound
from assay.spec.layers.rms_norm import rms_norm, rms_norm_backward
from assay.spec.layers.rms_norm_bounds import rms_norm_backward_bound
from assay.spec.layers.slices import (
    Slices,
    by_channel,
    by_group,
    by_row,
    normalize,
    normalize_backward,
)
from assay.spec.ops.entry import Arrays, Attribute, Attributes, Input, Op

Results = dict[str, np.ndarray]
Cut = Callable[[Any, Attributes], Slices]
EPS = Attribute("eps", 1e-5, "added to the variance inside the root")


def _given(found: dict[str, Any], inputs: Arrays) -> Results:
    return {n: gradient for n, gradient in found.items() if n in inputs}


def _norm(name: str, summary: str, cut: Cut, dims: tuple[str, ...], *attributes: Attribute) -> Op:
    """An op that standardises the slices that ``cut`` says: the part that the three norms share."""

    def arguments(inputs: Arrays, given: Attributes) -> tuple[float, Slices]:
        return given.get("eps", EPS.default), cut(inputs["x"], given)

    def forward(inputs: Arrays, given: Attributes) -> Results:
        x, weight, bias = inputs["x"], inputs.get("weight"), inputs.get("bias")
        return {"out": normalize(x, weight, bias, *arguments(inputs, given))}

    def backward(inputs: Arrays, cotangents: Arrays, given: Attributes) -> Results:
        x, weight, g = inputs["x"], inputs.get("weight"), cotangents["out"]
        found = normalize_backward(x, weight, g, *arguments(inputs, given))
        return _given(found._asdict(), inputs)

    def bound(inputs: Arrays, given: Attributes, arithmetic: Arithmetic) -> Results:
        x, weight, bias = inputs["x"], inputs.get("weight"), inputs.get("bias")
        return {"out": normalize_bound(x, weight, bias, *arguments(inputs, given), arithmetic)}

    def backward_bound(
        inputs: Arrays, cotangents: Arrays, given: Attributes, arithmetic: Arithmetic
    ) -> Results:
        x, weight, g = inputs["x"], inputs.get("weight"), cotangents["out"]
        found = normalize_backward_bound(x, weight, g, *arguments(inputs, given), arithmetic)
        return _given(found._asdict(), inputs)

    return Op(
        name=name,
        summary=summary,
        inputs=(
            Input("x", dims),
            Input("weight", ("C",), optional=True),
            Input("bias", ("C",), optional=True),
        ),
        attributes=(*attributes, EPS),
        outputs={"out": dims},
        forward=forward,
        backward=backward,
        bound=bound,
        backward_bound=backward_bound,
    )


LAYER_NORM = _norm(
    "layer_norm",
    "each row of the last axis to mean 0 and variance 1, then an affine map by feature",
    lambda x, given: by_row(x),
    ("B", "N", "C"),
)
GROUP_NORM = _norm(
    "group_norm",
    "each group of channels of a sample to mean 0 and variance 1, then an affine map by channel",
    lambda x, given: by_group(x, given.get("groups", 1)),
    ("B", "C", "*n"),
    Attribute("groups", 1, "how many groups the channels are divided into"),
)
BATCH_NORM = _norm(
    "batch_norm",
    "each channel of a batch to mean 0 and variance 1, then an affine map by channel",
    lambda x, given: by_channel(x),
    ("B", "C", "*n"),
)


def _rms(inputs: Arrays, attributes: Attributes) -> Results:
    return {"out": rms_norm(inputs["x"], inputs.get("weight"), **attributes)}


def _rms_backward(inputs: Arrays, cotangents: Arrays, attributes: Attributes) -> Results:
    x, weight, g = inputs["x"], inputs.get("weight"), cotangents["out"]
    return _given(rms_norm_backward(x, weight, g, **attributes)._asdict(), inputs)


def _rms_backward_bound(
    inputs: Arrays, cotangents: Arrays, attributes: Attributes, arithmetic: Arithmetic
) -> Results:
    x, weight, g = inputs["x"], inputs.get("weight"), cotangents["out"]
    eps = attributes.get("eps", EPS.default)
    return _given(rms_norm_backward_bound(x, weight, g, eps, arithmetic)._asdict(), inputs)


RMS_NORM = Op(
    name="rms_norm",
    summary="each row of the last axis to mean square 1, then scaled by feature",
    inputs=(Input("x", ("B", "N", "C")), Input("weight", ("C",), optional=True)),
    attributes=(EPS,),
    outputs={"out": ("B", "N", "C")},
    forward=_rms,
    backward=_rms_backward,
    backward_bound=_rms_backward_bound,
)

NORM: tuple[Op, ...] = (LAYER_NORM, RMS_NORM, GROUP_NORM, BATCH_NORM)
