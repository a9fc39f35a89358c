"""Whole models in the catalogue: the state is one vector, the configuration a text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from assay.spec.models.flat import configure, pack, unpack
from assay.spec.models.networks.catalogue import NETWORKS
from assay.spec.models.networks.passes import INPUT
from assay.spec.ops.entry import Arrays, Attribute, Input, Op
from assay.spec.ops.model_decoding import GPT_DECODE

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


_IMAGES = Input("x", ("B", "Cin", "*n"))
_IDS = Input("ids", ("B", "T"), differentiable=False, holds="int")
_SYMBOLS = Input("x", ("B", "T", "V"))

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
        _IMAGES,
        ("B", "V"),
        '{"channels": 4, "spatial": [5, 6], "hidden": 2, "classes": 7}',
    ),
    _model(
        "vit",
        "vision transformer: logits of images from its state",
        _IMAGES,
        ("B", "V"),
        '{"channels": 4, "spatial": [5, 6], "kernel": [2, 3], "classes": 7}',
    ),
    *(
        _model(
            name,
            f"{words}: logits of the next token at every place, from its state",
            _IDS,
            ("B", "T", "V"),
            '{"vocabulary": 7, "context": 6, "layers": 1, "heads": 2, "width": 4}',
        )
        for name, words in (("gpt", "the course GPT"), ("char_gpt", "causal transformer"))
    ),
    *(
        _model(
            name,
            f"language model of {cells}: logits at every step, from its state and symbols",
            _SYMBOLS,
            ("B", "T", "V"),
            default,
        )
        for name, cells, default in (
            ("rnn_lm", "Elman cells", '{"vocabulary": 7, "hidden": 2}'),
            ("lstm_lm", "LSTM cells", '{"vocabulary": 7, "hidden": 2}'),
            ("mamba_lm", "selective layers", '{"vocabulary": 7, "hidden": 2, "states": 3}'),
        )
    ),
    _model(
        "lstm_regression",
        "LSTM cells and a linear map of every hidden state, from its state and inputs",
        Input("x", ("B", "T", "I")),
        ("B", "T", "O"),
        '{"inputs": 3, "hidden": 2, "outputs": 4}',
    ),
    _model(
        "fno",
        "Fourier neural operator: a field from a field on the same grid, and from its state",
        Input("x", ("B", "*n", "1")),
        ("B", "*n", "1"),
        '{"spatial": [5, 6], "modes": [2, 2], "width": 3}',
    ),
    GPT_DECODE,
)
