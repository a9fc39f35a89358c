"""Every model's forward and backward pass, by the model's name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from assay.spec.models.networks import (
    char_gpt,
    fno,
    gpt,
    lstm_lm,
    lstm_regression,
    mamba_lm,
    mlp,
    resnet,
    rnn_lm,
    vit,
)
from assay.spec.models.networks.passes import Backward, Forward


class Network(NamedTuple):
    """forward(config, params, inputs) and backward(config, params, inputs, cotangent)."""

    forward: Forward[Any]
    backward: Backward[Any]


NETWORKS: Mapping[str, Network] = {
    "mlp": Network(mlp.forward, mlp.backward),
    "resnet": Network(resnet.forward, resnet.backward),
    "vit": Network(vit.forward, vit.backward),
    "char_gpt": Network(char_gpt.forward, char_gpt.backward),
    "gpt": Network(gpt.forward, gpt.backward),
    "rnn_lm": Network(rnn_lm.forward, rnn_lm.backward),
    "lstm_lm": Network(lstm_lm.forward, lstm_lm.backward),
    "lstm_regression": Network(lstm_regression.forward, lstm_regression.backward),
    "mamba_lm": Network(mamba_lm.forward, mamba_lm.backward),
    "fno": Network(fno.forward, fno.backward),
}
"""Inputs: integers [B, T] for char_gpt and gpt; one-hot or any vectors [B, T, V] for the recurrent
ones; images [B, C, *n] for resnet and vit; fields [B, *n, 1] for fno; rows [..., I] for mlp.
"""
