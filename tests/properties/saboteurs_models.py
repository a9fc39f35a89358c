"""A wrong backend for each property of whole models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from assay.properties.model_properties import MODELS, SEQUENCES, TRANSFORMERS
from assay.spec.decoding import Step, steps
from assay.spec.ops.model_decoding import replayed
from tests.properties.spec_backend import Arrays, SpecBackend, Spoil, scaled

Change = Callable[[dict[str, Any], Arrays], Arrays]
"""(call: inputs and attributes, what is right) -> the outputs that are other"""


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


def _decoder(change: Change) -> Callable[[], SpecBackend]:
    """``change`` gives the outputs of a session that are other than what is due."""

    def spoil(backend: SpecBackend, name: str, call: dict[str, Any], right: Arrays) -> Arrays:
        return {**right, **change(call, right)}

    return lambda: SpecBackend("gpt_decode", spoil=spoil)


def _steps(call: dict[str, Any]) -> tuple[Step, ...]:
    return steps(call.get("script", ()), call["ids"].shape[1])


def _by_chunks(call: dict[str, Any], right: Arrays) -> Arrays:
    """A little more with each chunk."""
    out = right["out"].copy()
    for index, step in enumerate(_steps(call)):
        out[:, step.start : step.start + step.tokens] *= 1 + 1e-3 * index
    return {"out": out}


def _accepts(call: dict[str, Any], right: Arrays) -> Arrays:
    """No chunk is refused."""
    return {"refused": 0 * right["refused"]}


def _replayed(call: dict[str, Any], **changed: Any) -> Arrays:
    return {"out": replayed({n: call[n] for n in ("state", "ids")}, {**call, **changed})}


def _rows_stay(call: dict[str, Any], right: Arrays) -> Arrays:
    """Each row goes on with its own past."""
    script = tuple(line for line in call.get("script", ()) if not line.startswith("reorder"))
    return _replayed(call, script=script)


def _padding_seen(call: dict[str, Any], right: Arrays) -> Arrays:
    return _replayed(call, pads=())


WHOLE: dict[str, Callable[[], SpecBackend]] = {
    "model.layout": lambda: SpecBackend(*MODELS, spoil=scaled(1.0001)),
    "model.count": lambda: Lenient(*MODELS),
    "model.config_rejects": lambda: Lenient(*MODELS),
    "model.batch_invariant": lambda: SpecBackend(*MODELS, spoil=_by_size(0)),
    "model.prefix": lambda: SpecBackend(*SEQUENCES, spoil=_by_size(1)),
    "model.tied_gradient": lambda: SpecBackend(*TRANSFORMERS, gradients=_first_use_only),
    "model.sdpa_equals_manual": lambda: SpecBackend(
        *TRANSFORMERS, spoil=_by_mode, modes=("fast", "slow")
    ),
    "cache.decode_equals_full@model": _decoder(_by_chunks),
    "cache.chunk_split@model": _decoder(_by_chunks),
    "cache.capacity@model": _decoder(_accepts),
    "cache.reorder@model": _decoder(_rows_stay),
    "cache.reset@model": _decoder(_by_chunks),
    "cache.left_pad@model": _decoder(_padding_seen),
}
