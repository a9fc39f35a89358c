"""The spec as a backend, in the format of its inputs: sound, on every op that has a recipe, and
easily spoilt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from assay.impl.contract import Contract
from assay.impl.numpy_backend import NumpyBackend
from assay.impl.protocol import Operation, Unsupported
from assay.impl.signatures import signature
from assay.properties.recipes import RECIPES
from assay.properties.recipes.model_sessions import SESSIONS
from assay.properties.recipes.models import MODELS
from assay.properties.recipes.training import TRAINING
from assay.spec.ops import op

Arrays = dict[str, np.ndarray]
Spoil = Callable[["SpecBackend", str, dict[str, Any], Arrays], Arrays]
"""(backend, op, call: inputs, attributes and cotangents by name, what is right) -> what is given"""

WHOLE = tuple(recipe.op for recipe in (*MODELS, *SESSIONS, *TRAINING))


class SpecBackend(NumpyBackend):
    """16-bit inputs are computed in float32 and rounded once.

    spoil      changes the outputs, ``gradients`` the gradients;  memory: theirs to keep
    """

    def __init__(
        self,
        *ops: str,
        spoil: Spoil | None = None,
        gradients: Spoil | None = None,
        **contract: Any,
    ) -> None:
        dtypes = ("float32", "bfloat16", "float16", "float64")
        own: dict[str, Any] = {"name": "spec", "dtypes": dtypes, "exp_ulps": 4.0}
        self.contract = Contract(**own | contract)
        self.ops = ops or tuple(RECIPES)
        self.spoil, self.spoil_gradients = spoil, gradients
        self.memory: dict[Any, Any] = {}

    def operations(self) -> dict[str, Operation]:
        return {name: Operation(partial(self._forward, name), None) for name in self.ops}

    def derivatives(self) -> dict[str, Operation]:
        return {name: Operation(partial(self._backward, name), None) for name in self.ops}

    def _forward(self, name: str, *inputs: np.ndarray, **keywords: Any) -> Any:
        call = {**dict(zip(signature(name).inputs, inputs, strict=True)), **keywords}
        if name in WHOLE and _kind(call) != np.float64:
            raise Unsupported(name, "bounds of whole models say nothing below float64")
        arrays, attributes = _split(call)
        with np.errstate(all="ignore"):
            found = op(name).forward(arrays, attributes)
        kind = _kind(call)
        outputs = {n: np.array(x).astype(kind) for n, x in found.items()}
        if self.spoil is not None:
            right = {n: x.copy() for n, x in outputs.items()}
            outputs = {n: np.asarray(x) for n, x in self.spoil(self, name, call, right).items()}
        values = tuple(outputs[n] for n in signature(name).outputs)
        return values[0] if len(values) == 1 else values

    def _backward(self, name: str, *inputs: np.ndarray, **keywords: Any) -> Arrays:
        call = {**dict(zip(signature(name).inputs, inputs, strict=True)), **keywords}
        keywords_of = signature(name).cotangents
        cotangents = {n: _wide(call[k]) for n, k in keywords_of.items()}
        arrays, attributes = _split(
            {n: x for n, x in call.items() if n not in keywords_of.values()}
        )
        with np.errstate(all="ignore"):
            found = op(name).backward(arrays, cotangents, attributes)
        slopes = {n: np.array(x).astype(_kind(call)) for n, x in found.items()}
        if self.spoil_gradients is None:
            return slopes
        return self.spoil_gradients(self, name, call, {n: x.copy() for n, x in slopes.items()})


def _wide(x: np.ndarray) -> np.ndarray:
    small = np.issubdtype(x.dtype, np.floating) or x.dtype.name == "bfloat16"
    return x.astype(np.float32) if small and x.dtype.itemsize == 2 else x


def _kind(call: Mapping[str, Any]) -> np.dtype[Any]:
    floats = [x.dtype for x in call.values() if isinstance(x, np.ndarray) and x.dtype.kind in "fV"]
    return floats[0]


def _split(call: Mapping[str, Any]) -> tuple[Arrays, dict[str, Any]]:
    arrays = {n: _wide(x) for n, x in call.items() if isinstance(x, np.ndarray)}
    rest = {n: x for n, x in call.items() if n not in arrays and x is not None}
    return arrays, rest


def scaled(factor: float, *names: str) -> Spoil:
    """What is due, times a factor; only the arrays of these names, or all."""

    def spoil(backend: SpecBackend, name: str, call: dict[str, Any], right: Arrays) -> Arrays:
        return {
            n: (x * factor).astype(x.dtype) if not names or n in names else x
            for n, x in right.items()
        }

    return spoil
