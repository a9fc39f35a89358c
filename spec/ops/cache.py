"""Decoding with a key/value cache in the catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from assay.spec.arithmetic import Arithmetic
from assay.spec.decoding import decode
from assay.spec.decoding_bounds import decode_bound
from assay.spec.ops.entry import Arrays, Attribute, Input, Op

_OUTPUTS: dict[str, tuple[str, ...]] = {
    "out": ("Nl", "B", "H", "T", "Dv"),
    "positions": ("B", "T"),
    "keys": ("Na", "Nl", "B", "Hkv", "M", "D"),
    "values": ("Na", "Nl", "B", "Hkv", "M", "Dv"),
    "lengths": ("Na",),
    "refused": ("Na",),
}


def _stream(inputs: Arrays) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return inputs["q"], inputs["k"], inputs["v"]


def _forward(inputs: Arrays, attributes: Mapping[str, Any]) -> dict[str, np.ndarray]:
    return dict(zip(_OUTPUTS, decode(*_stream(inputs), **attributes), strict=True))


def _bound(
    inputs: Arrays, attributes: Mapping[str, Any], arithmetic: Arithmetic
) -> dict[str, np.ndarray]:
    found = decode_bound(*_stream(inputs), arithmetic=arithmetic, **attributes)
    return dict(zip(_OUTPUTS, found, strict=True))


def _no_gradients(
    inputs: Arrays, cotangents: Arrays, attributes: Mapping[str, Any]
) -> dict[str, np.ndarray]:
    """A session keeps a state: it is not differentiated."""
    return {}


def _no_gradient_bounds(
    inputs: Arrays, cotangents: Arrays, attributes: Mapping[str, Any], arithmetic: Arithmetic
) -> dict[str, np.ndarray]:
    return {}


KV_CACHE = Op(
    name="kv_cache",
    summary="decoding session: a script of steps on a key/value cache, and its state after each",
    inputs=(
        Input("q", ("Nl", "B", "H", "T", "D"), differentiable=False),
        Input("k", ("Nl", "B", "Hkv", "T", "D"), differentiable=False),
        Input("v", ("Nl", "B", "Hkv", "T", "Dv"), differentiable=False),
    ),
    attributes=(
        Attribute("script", (), "lines: append n, overflow n, reorder r0 r1 ..., reset"),
        Attribute("capacity", None, "slots; None: one for each token"),
        Attribute("pads", (), "padding tokens that each row begins with; (): none"),
        Attribute("rolling", False, "a ring: attention over the last tokens that fit"),
    ),
    outputs=_OUTPUTS,
    forward=_forward,
    backward=_no_gradients,
    bound=_bound,
    backward_bound=_no_gradient_bounds,
)
