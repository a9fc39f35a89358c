"""Arrays of distinct names: one scalar for each entry of each array."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from typing import Any

import numpy as np

Shapes = Mapping[str, tuple[int, ...]]


def entries(shapes: Shapes) -> list[str]:
    """The name of every entry.

    >>> entries({"x": (2,), "w": ()})
    ['x0', 'x1', 'w0']
    """
    return [f"{name}{i}" for name, shape in shapes.items() for i in range(prod(shape))]


def arranged(shapes: Shapes, scalars: Iterable[Any]) -> dict[str, np.ndarray]:
    """The scalars, one for each entry and in their order, as arrays.

    >>> arranged({"x": (2, 1), "w": ()}, "abc")["x"].tolist()
    [['a'], ['b']]
    """
    following, found = iter(scalars), {}
    for name, shape in shapes.items():
        found[name] = np.empty(shape, dtype=object)
        for i in np.ndindex(*shape):
            found[name][i] = next(following)
    return found
