"""Whole models in the catalogue: the state is one vector, the configuration a text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from assay.spec.models.flat import configure, pack, unpack
from assay.spec.models.networks.catalogue import NETWORKS
from assay.spec.models.networks.passes import INPUT
from assay.spec.ops.entry import Arrays, Attribute, Input, Op

Results = dict[str, np.ndarray]


def _forward(name: str, read: str, default: str) -> Callable[..., Results]:
    def forward(inputs: Arrays, attributes: Mapping[str, Any]) -> Results:
        config = configure(name, attributes.get("config", default))
        params = unpack(name, config, inputs["state"])
        return {"out": NETWORKS[name].forward(config, params, inputs[read])}

    return forward


def _backward(name: str, read: str, default: str) -> Callable[..., Results]:
    def backward(inputs: Arrays, cotangents: Arrays, attributes: Mapping[str, Any]) -> Results:
        config = configure(name, attributes.get("config", default))
        params = unpack(name, config, inputs["state"])
        found = NETWORKS[name].backward(config, params, inputs[read], cotangents["out"])
        slopes = {"state": pack(name, config, found)}
        return {**slopes, read: found[INPUT]} if INPUT in found else slopes

    return backward


def _model(name: str, summary: str, read: Input, out: tuple[str, ...], default: str) -> Op:
    return Op(
        name=name,
        summary=summary,
        inputs=(Input("state", ("P",)), read),
        attributes=(Attribute("config", default, "fields that differ from the model's, as JSON"),),
        outputs={"out": out},
        forward=_forward(name, read.name, default),
        backward=_backward(name, read.name, default),
    )


MODEL: tuple[Op, ...] = (
    _model(
        "mlp",
        "multilayer perceptron: its output from its state and inputs",
        Input("x", ("B", "I")),
        ("B", "O"),
        '{"inputs": 3, "hidden": [5], "outputs": 4}',
    ),
    _model(
        "resnet",
        "residual network: logits of images from its state",
        Input("x", ("B", "Cin", "*n")),
        ("B", "V"),
        '{"channels": 4, "spatial": [5, 6], "hidden": 2, "classes": 7}',
    ),
    _model(
        "gpt",
        "the course GPT: logits of the next token at every place, from its state",
        Input("ids", ("B", "T"), differentiable=False, holds="int"),
        ("B", "T", "V"),
        '{"vocabulary": 7, "context": 6, "layers": 1, "heads": 2, "width": 4}',
    ),
    *(
        _model(
            name,
            f"language model of {cells}: logits at every step, from its state and symbols",
            Input("x", ("B", "T", "V")),
            ("B", "T", "V"),
            '{"vocabulary": 7, "hidden": 2}',
        )
        for name, cells in (("rnn_lm", "Elman cells"), ("lstm_lm", "LSTM cells"))
    ),
)
