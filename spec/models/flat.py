"""A model's state as one vector: every stored array in the order of the layout, row by row; and a
configuration as text: a JSON object of the fields that differ from the defaults.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Shaped

from assay.spec.models.catalogue import model
from assay.spec.models.config import Config
from assay.spec.models.layout import Parameter, expand, product
from assay.spec.scalars import Array

State = Shaped[np.ndarray, " P"]


def configure(name: str, text: str) -> Any:
    """The configuration of a model that a text says; ValueError says what is wrong with it.

    >>> configure("mlp", '{"hidden": [2, 4]}').hidden
    (2, 4)
    """
    kind = model(name).config
    given = json.loads(text or "{}")
    known = kind.__dataclass_fields__
    unknown = [field for field in given if field not in known]
    if unknown:
        raise ValueError(f"config has no field {', '.join(unknown)}; valid: {', '.join(known)}")
    return kind(**{n: tuple(x) if isinstance(x, list) else x for n, x in given.items()})


def stored_in(name: str, config: Config) -> tuple[Parameter, ...]:
    """Every stored array, in order."""
    return tuple(expand(model(name).layout(config)))


def unpack(name: str, config: Config, state: State) -> dict[str, Array]:
    """The arrays that stand in a vector, by name. ValueError when it has another length.

    >>> from assay.spec.models.mlp import MLPConfig
    >>> config = MLPConfig(inputs=1, hidden=(), outputs=1)
    >>> unpack("mlp", config, np.array([2.0, 3.0]))
    {'layer.0.weight': array([[2.]]), 'layer.0.bias': array([3.])}
    """
    found, start, parameters = {}, 0, stored_in(name, config)
    wanted = sum(product(p.shape) for p in parameters)
    if state.shape != (wanted,):
        raise ValueError(f"state has shape {state.shape}; valid: {(wanted,)}")
    for p in parameters:
        end = start + product(p.shape)
        found[p.name] = state[start:end].reshape(p.shape)
        start = end
    return found


def pack(name: str, config: Config, arrays: Mapping[str, Array]) -> State:
    """The inverse of ``unpack``; an array that is left out is 0."""
    parts = [
        arrays[p.name].reshape(-1) if p.name in arrays else np.zeros(product(p.shape))
        for p in stored_in(name, config)
    ]
    return np.concatenate(parts)
