"""A wrong backend for each property of whole models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from assay.properties.model_properties import MODELS, SEQUENCES
from tests.properties.spec_backend import Arrays, SpecBackend, Spoil, scaled


class Lenient(SpecBackend):
    """Takes a state of any length and a configuration of any kind."""

    def _forward(self, name: str, *inputs: np.ndarray, **keywords: Any) -> Any:
        try:
            return super()._forward(name, *inputs, **keywords)
        except ValueError:
            return np.zeros((1,))


def _by_size(axis: int) -> Spoil:
    """A little more for each row of a batch, or for each token of the sequence."""

    def spoil(backend: SpecBackend, name: str, call: dict[str, Any], right: Arrays) -> Arrays:
        return {n: x * (1 + 1e-3 * x.shape[axis]) for n, x in right.items()}

    return spoil


def _by_mode(backend: SpecBackend, name: str, call: dict[str, Any], right: Arrays) -> Arrays:
    return {n: x * (1.001 if backend.mode == "slow" else 1.0) for n, x in right.items()}


def _first_use_only(backend: SpecBackend, name: str, call: dict[str, Any], right: Arrays) -> Arrays:
    """The gradient of the head does not reach the table."""
    state = right["state"].copy()
    state[:1] = state[:1] + 1.0
    return {**right, "state": state}


WHOLE: dict[str, Callable[[], SpecBackend]] = {
    "model.layout": lambda: SpecBackend(*MODELS, spoil=scaled(1.0001)),
    "model.count": lambda: Lenient(*MODELS),
    "model.config_rejects": lambda: Lenient(*MODELS),
    "model.batch_invariant": lambda: SpecBackend(*MODELS, spoil=_by_size(0)),
    "model.prefix": lambda: SpecBackend(*SEQUENCES, spoil=_by_size(1)),
    "model.tied_gradient": lambda: SpecBackend("gpt", gradients=_first_use_only),
    "model.sdpa_equals_manual": lambda: SpecBackend("gpt", spoil=_by_mode, modes=("fast", "slow")),
}
