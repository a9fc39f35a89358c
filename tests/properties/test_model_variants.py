"""Blame hints for whole models name what is wrong."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from assay.impl.contract import Contract
from assay.properties.context import Context
from assay.properties.variants import variants
from assay.spec import ops
from assay.spec.models.flat import configure, stored_in
from assay.spec.models.layout import product

TRANSFORMER = {"vocabulary": 5, "context": 4, "layers": 1, "heads": 2, "width": 6}
CONFIGS: dict[str, tuple[dict[str, Any], tuple[int, ...]]] = {
    "mlp": ({"hidden": [4], "activation": "gelu"}, (2, 3)),
    "vit": ({"spatial": [4], "kernel": [2], "head_width": 3}, (2, 3, 4)),
    "gpt": (TRANSFORMER, (2, 4)),
    "char_gpt": ({**TRANSFORMER, "input_bias": True}, (2, 4)),
    "lstm_lm": ({"vocabulary": 3, "hidden": 2}, (2, 4, 3)),
    "lstm_regression": ({"inputs": 2, "hidden": 2}, (2, 4, 2)),
    "mamba_lm": ({"vocabulary": 3, "hidden": 2, "states": 2}, (2, 4, 3)),
    "fno": ({"spatial": [6], "modes": [2], "width": 2}, (2, 6, 1)),
}
WORDS = {
    "mlp": "the activation is gelu_tanh and not gelu",
    "vit": "heads are cut from the features the other way",
    "gpt": "positions are left out",
    "char_gpt": "norms stand on the other side of the branches",
    "lstm_lm": "the gates are read as input, forget, candidate, output",
    "lstm_regression": "the gates are read as forget, input, output, candidate",
    "mamba_lm": "the taps are read from the oldest",
    "fno": "one frequency too many passes on each side",
}


@pytest.mark.parametrize("name", CONFIGS)
def test_each_variant_of_a_model_differs_from_what_is_due(name: str) -> None:
    fields, shape = CONFIGS[name]
    text, rng = json.dumps(fields), np.random.default_rng(0)
    count = sum(product(p.shape) for p in stored_in(name, configure(name, text)))
    read = "ids" if name in ("gpt", "char_gpt") else "x"
    x = rng.integers(0, 5, shape) if read == "ids" else rng.normal(size=shape)
    inputs = {"state": rng.normal(size=count), read: x}
    ctx = Context(ops.op(name), Contract("x"), "float64", "default", None, True)
    due = ops.op(name).forward(inputs, {"config": text})["out"]
    found = {what: values() for what, values in variants(ctx, inputs, {"config": text})}

    assert WORDS[name] in found
    assert all(y.shape == due.shape for y in found.values())
    same = [what for what, y in found.items() if np.abs(y - due).max() < 1e-9]
    assert not same
