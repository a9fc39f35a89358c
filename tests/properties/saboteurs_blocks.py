"""A wrong backend for each property of transformer layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from assay.properties.block_properties import OPS
from assay.spec.ops import op
from tests.properties.spec_backend import Arrays, SpecBackend, scaled


def _call(name: str, call: dict[str, Any]) -> tuple[Arrays, dict[str, Any]]:
    arrays = {n: x for n, x in call.items() if isinstance(x, np.ndarray)}
    return arrays, {n: x for n, x in call.items() if n not in arrays and x is not None}


def _sees_the_future(
    backend: SpecBackend, name: str, call: dict[str, Any], right: Arrays
) -> Arrays:
    arrays, attributes = _call(name, call)
    out = op(name).forward(arrays, {**attributes, "causal": False})["out"]
    return {"out": out.astype(right["out"].dtype)}


def _sees_padding(backend: SpecBackend, name: str, call: dict[str, Any], right: Arrays) -> Arrays:
    arrays, attributes = _call(name, call)
    arrays.pop("keys", None)
    return {"out": op(name).forward(arrays, attributes)["out"].astype(right["out"].dtype)}


def _by_batch(backend: SpecBackend, name: str, call: dict[str, Any], right: Arrays) -> Arrays:
    return {"out": right["out"] * (1 + 0.01 * len(right["out"]))}


def _by_mode(backend: SpecBackend, name: str, call: dict[str, Any], right: Arrays) -> Arrays:
    return {"out": right["out"] * (1.01 if backend.mode == "slow" else 1.0)}


BLOCKS: dict[str, Callable[[], SpecBackend]] = {
    "block.refines": lambda: SpecBackend(*OPS, spoil=scaled(1.01)),
    "block.vjp_refines": lambda: SpecBackend(*OPS, gradients=scaled(1.01, "norm2_bias")),
    "block.prefix": lambda: SpecBackend(*OPS, spoil=_sees_the_future),
    "block.padding": lambda: SpecBackend(*OPS, spoil=_sees_padding),
    "block.batch_invariant": lambda: SpecBackend(*OPS, spoil=_by_batch),
    "block.mode_agreement": lambda: SpecBackend(*OPS, spoil=_by_mode, modes=("fast", "slow")),
}
