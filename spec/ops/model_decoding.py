"""Decoding with the course GPT in the catalogue: the cache of a whole model, step by step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from assay.spec.arithmetic import Arithmetic
from assay.spec.inexact import running_bound
from assay.spec.models.flat import configure, unpack
from assay.spec.models.networks.gpt_session import play, replay
from assay.spec.ops.entry import Arrays, Attribute, Input, Op

_DEFAULT = '{"vocabulary": 7, "context": 6, "layers": 1, "heads": 2, "width": 4}'
_OUTPUTS: dict[str, tuple[str, ...]] = {
    "out": ("B", "T", "V"),
    "lengths": ("Na",),
    "refused": ("Na",),
}


def _given(inputs: Arrays, attributes: Mapping[str, Any]) -> tuple[Any, ...]:
    config = configure("gpt", attributes.get("config", _DEFAULT))
    return config, unpack("gpt", config, inputs["state"]), inputs["ids"]


def _how(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {n: attributes[n] for n in ("script", "pads") if n in attributes}


def _forward(inputs: Arrays, attributes: Mapping[str, Any]) -> dict[str, np.ndarray]:
    return play(*_given(inputs, attributes), **_how(attributes))._asdict()


def replayed(inputs: Arrays, attributes: Mapping[str, Any]) -> np.ndarray:
    """The logits of a session without a cache."""
    return replay(*_given(inputs, attributes), **_how(attributes))


def _bound(
    inputs: Arrays, attributes: Mapping[str, Any], arithmetic: Arithmetic
) -> dict[str, np.ndarray]:
    """That of the same logits without a cache, which moves numbers and never rounds them; lengths
    and refusals are exact.
    """
    exact = {n: np.zeros(x.shape) for n, x in _forward(inputs, attributes).items()}
    return exact | running_bound(lambda x: {"out": replayed(x, attributes)}, inputs, arithmetic)


def _no_gradients(
    inputs: Arrays, cotangents: Arrays, attributes: Mapping[str, Any]
) -> dict[str, np.ndarray]:
    """A session keeps a state: it is not differentiated."""
    return {}


def _no_gradient_bounds(
    inputs: Arrays, cotangents: Arrays, attributes: Mapping[str, Any], arithmetic: Arithmetic
) -> dict[str, np.ndarray]:
    return {}


GPT_DECODE = Op(
    name="gpt_decode",
    summary="decoding session of the course GPT: logits of every token, by a key/value cache",
    inputs=(
        Input("state", ("P",), differentiable=False),
        Input("ids", ("B", "T"), differentiable=False, holds="int"),
    ),
    attributes=(
        Attribute("config", _DEFAULT, "fields that differ from the model's, as JSON"),
        Attribute("script", (), "lines: append n, overflow n, reorder r0 r1 ..., reset"),
        Attribute("pads", (), "padding tokens that each row begins with; (): none"),
    ),
    outputs=_OUTPUTS,
    forward=_forward,
    backward=_no_gradients,
    bound=_bound,
    backward_bound=_no_gradient_bounds,
)
