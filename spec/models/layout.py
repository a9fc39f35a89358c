"""The ordered layout of a model's state: names, shapes, first values; counts are sums over it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from operator import mul
from typing import Any

import numpy as np

from assay.spec.models.initialisers import ZEROS, Initialiser

Size = Any
"""A whole number, or a symbol that stands for one: nothing here compares or loops over a size."""


@dataclass(frozen=True)
class Parameter:
    """One array of the state.

    name       dotted path inside its section
    group      what it is counted under: embedding, attention, norm, ...
    trainable  False for what is stored and never changed, such as the rate of a dropout
    """

    name: str
    shape: tuple[Size, ...]
    group: str
    init: Initialiser = ZEROS
    trainable: bool = True

    @property
    def size(self) -> Size:
        """Number of scalars; 1 for a scalar slot."""
        return product(self.shape)


@dataclass(frozen=True)
class Section:
    """Parameters in their order, once or ``repeat`` times.

    A repeated section ``block`` has the paths ``block.0.…``, ``block.1.…``, counted from ``first``.
    A section that stands once has no index, and one without a name adds nothing to the path.
    """

    name: str
    parameters: tuple[Parameter, ...]
    repeat: Size | None = None
    first: int = 0

    @property
    def times(self) -> Size:
        """How often it stands in the state."""
        return 1 if self.repeat is None else self.repeat

    @property
    def paths(self) -> tuple[str, ...]:
        """The path of each parameter with ``*`` for the index.

        >>> Section("block", (Parameter("bias", (2,), "linear"),), repeat=3).paths
        ('block.*.bias',)
        """
        star = (() if self.repeat is None else ("*",)) if self.name else ()
        return tuple(_path(self.name, *star, p.name) for p in self.parameters)


Layout = tuple[Section, ...]


def _path(*parts: str) -> str:
    return ".".join(part for part in parts if part)


def product(sizes: Iterable[Size]) -> Size:
    """The product of sizes; 1 for none.

    >>> product((2, 3)), product(())
    (6, 1)
    """
    return reduce(mul, sizes, 1)


def stored(layout: Layout) -> Size:
    """Number of scalars in the state, slots that are not trained included.

    >>> stored((Section("block", (Parameter("w", (2, 3), "linear"),), repeat=4),))
    24
    """
    return _count(layout, lambda p: True)


def trainable(layout: Layout) -> Size:
    """Number of scalars that training changes.

    >>> rate = Parameter("dropout", (), "dropout", trainable=False)
    >>> trainable((Section("", (rate, Parameter("w", (2, 3), "linear"))),))
    6
    """
    return _count(layout, lambda p: p.trainable)


def _count(layout: Layout, counted: Any) -> Size:
    return sum(s.times * sum(p.size for p in s.parameters if counted(p)) for s in layout)


def tensors(layout: Layout) -> Size:
    """Number of arrays in the state.

    >>> tensors((Section("block", (Parameter("w", (2, 3), "linear"),), repeat=4),))
    4
    """
    return sum(s.times * len(s.parameters) for s in layout)


def by_group(layout: Layout) -> dict[str, Size]:
    """Number of stored scalars under each group, in order of first appearance.

    >>> by_group((Section("", (Parameter("w", (2, 3), "linear"), Parameter("b", (2,), "linear"))),))
    {'linear': 8}
    """
    groups: dict[str, Size] = {}
    for section in layout:
        for p in section.parameters:
            groups[p.group] = groups.get(p.group, 0) + section.times * p.size
    return groups


def expand(layout: Layout) -> Iterator[Parameter]:
    """Every parameter in the order of the state, under its full name.

    >>> weight = Parameter("w", (2, 3), "linear")
    >>> [p.name for p in expand((Section("block", (weight,), repeat=2), Section("", (weight,))))]
    ['block.0.w', 'block.1.w', 'w']
    """
    for section in layout:
        for i in range(section.times):
            index = () if section.repeat is None or not section.name else (str(section.first + i),)
            for p in section.parameters:
                yield replace(p, name=_path(section.name, *index, p.name))


def initialise(
    layout: Layout, rng: np.random.Generator, dtype: Any = np.float64
) -> dict[str, np.ndarray]:
    """First values of every parameter by full name, in the order of the state.

    All draws are made in float64 and then rounded to ``dtype``, so that two formats start from the
    same values.

    >>> w = Parameter("w", (2,), "linear")
    >>> initialise((Section("", (w,)),), np.random.default_rng(0))["w"].tolist()
    [0.0, 0.0]
    """
    return {p.name: p.init.draw(p.shape, rng).astype(dtype) for p in expand(layout)}
