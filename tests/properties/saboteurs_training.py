"""A wrong backend for each property of whole models in training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from assay.properties.training_properties import STEPS
from tests.properties.spec_backend import Arrays, SpecBackend, Spoil


def _too_far(backend: SpecBackend, name: str, call: dict[str, Any], right: Arrays) -> Arrays:
    """The step of a learning rate that is a little too long."""
    before = call["state"]
    return {**right, "state": before + 1.001 * (right["state"] - before)}


def _positive_zeros(backend: SpecBackend, name: str, call: dict[str, Any], right: Arrays) -> Arrays:
    """Signs of zero and NaN do not survive."""
    number = np.nan_to_num(call["state"], nan=0.0) + 0.0
    return {**right, "octets": number.view(np.uint8).reshape(-1, 8).astype(float)}


def _one_more(key: str) -> Spoil:
    def spoil(backend: SpecBackend, name: str, call: dict[str, Any], right: Arrays) -> Arrays:
        return {**right, key: right[key] + 1.0}

    return spoil


def _wide_table(backend: SpecBackend, name: str, call: dict[str, Any], right: Arrays) -> Arrays:
    """The loss of a table that starts at N(0, 1), as torch's embeddings do by themselves."""
    size = call["ids"].shape[0]
    logits = np.random.default_rng(0).normal(0.0, 3.0, size)
    return {"loss": np.log(np.exp(logits).sum()) - logits.mean()}


TRAINING: dict[str, Callable[[], SpecBackend]] = {
    "model.one_step": lambda: SpecBackend(*STEPS, spoil=_too_far),
    "model.state_round_trip": lambda: SpecBackend("model_state", spoil=_positive_zeros),
    "model.trainable_count": lambda: SpecBackend("model_state", spoil=_one_more("trained")),
    "model.initial_loss": lambda: SpecBackend("initial_loss", spoil=_wide_table),
    "model.flops": lambda: SpecBackend("model_trace", spoil=_one_more("flops")),
    "model.cache_bytes": lambda: SpecBackend("model_trace", spoil=_one_more("cache")),
    "model.residual_shapes": lambda: SpecBackend("model_trace", spoil=_one_more("branches")),
}
