"""Training: steps of an optimizer on one batch, theta' = step(theta, d loss / d theta), from rest.

Parameters are one vector, in the order of the layout (``spec.models.flat``). What is stored and not
trained stays as it is, whatever the decay.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Bool, Shaped

from assay.spec.models.flat import State, pack, stored_in, unpack
from assay.spec.models.layout import product
from assay.spec.models.networks.catalogue import NETWORKS
from assay.spec.models.networks.loss import token_loss, token_loss_backward
from assay.spec.models.networks.stream import one_hot
from assay.spec.optimizers.update import Moments, Training, Update, update
from assay.spec.scalars import Array, select

TOKEN_MODELS = ("char_gpt", "gpt", "rnn_lm", "lstm_lm", "mamba_lm")
"""Models of a language: their loss is the mean cross-entropy of the next tokens."""

SYMBOL_MODELS = ("rnn_lm", "lstm_lm", "mamba_lm")
"""Those among them that read a token as a vector with one 1."""

NUMBER_MODELS = ("mlp", "resnet", "vit", "lstm_regression", "fno")
"""Models whose loss is the mean squared error: of classifiers too. Source: L. Hui and M. Belkin,
"Evaluation of neural architectures trained with square loss vs cross-entropy" (2021).
"""


def trained(name: str, config: Any) -> Bool[np.ndarray, " P"]:
    """Which numbers of the state training changes.

    >>> from assay.spec.models.char_gpt import CharGPTConfig
    >>> int((~trained("char_gpt", CharGPTConfig(dropout=0.5))).sum())
    4
    """
    parts = [np.full(product(p.shape), p.trainable) for p in stored_in(name, config)]
    return np.concatenate(parts)


def square_loss(outputs: Array, targets: Array) -> Array:
    """Mean of (y - t)² over every number; NaN of none.

    >>> square_loss(np.array([[1.0, 3.0]]), np.array([[0.0, 1.0]])).tolist()
    2.5
    """
    away = outputs - targets
    return ((away * away).reshape(-1).sum() / np.float64(outputs.size)).reshape(())


def square_loss_backward(outputs: Array, targets: Array) -> Array:
    """Gradient 2 (y - t) / n of the loss into the outputs."""
    return (outputs - targets) * (2.0 / max(1, outputs.size))


def train(
    name: str,
    config: Any,
    state: State,
    inputs: Array,
    targets: Array,
    how: Training,
    *,
    update: Update = update,
) -> tuple[Shaped[np.ndarray, " N"], State]:
    """The loss before each of the steps, and the state after them.

    Inputs of every token model are identifiers [B, T], targets the next ones. Other models get what
    ``spec.models.networks`` says, and targets in the shape of the outputs. Dropouts are off.
    """
    token = name in TOKEN_MODELS
    loss, slope = (
        (token_loss, token_loss_backward) if token else (square_loss, square_loss_backward)
    )
    read = one_hot(inputs, config.vocabulary, state.dtype) if name in SYMBOL_MODELS else inputs
    network, keep = NETWORKS[name], trained(name, config)
    moments, losses = Moments(state * 0, state * 0), []
    for taken in range(how.steps):
        params = unpack(name, config, state)
        outputs = network.forward(config, params, read)
        found = network.backward(config, params, read, slope(outputs, targets))
        moved, moments = update(how, taken, state, pack(name, config, found), moments)
        state = select(keep, moved, state)
        losses.append(loss(outputs, targets).reshape(1))
    return np.concatenate(losses), state
