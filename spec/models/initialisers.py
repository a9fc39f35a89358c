"""Initial values as data: a normal, a uniform or a Glorot draw, a constant, and log(n + 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from jaxtyping import Float64

Values = Float64[np.ndarray, "..."]


class Initialiser(Protocol):
    """How a parameter starts; ``str`` of it is shown in tables."""

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Values:
        """The first values of a parameter of this shape."""
        ...


@dataclass(frozen=True)
class Constant:
    """Every entry is ``value``.

    >>> Constant(1.0).draw((2,), np.random.default_rng(0)).tolist()
    [1.0, 1.0]
    """

    value: float = 0.0

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Values:
        """``value`` everywhere."""
        return np.full(shape, self.value)

    def __str__(self) -> str:
        return f"{self.value:g}"


@dataclass(frozen=True)
class Normal:
    """N(0, (std / sqrt(terms))^2).

    ``terms`` is the number of independent summands that meet on a residual stream: with it their
    sum keeps the deviation ``std``. Source: Radford and coauthors, "Language models are
    unsupervised multitask learners" (2019), section 2.3.

    >>> round(Normal(0.02, 8).deviation, 6)
    0.007071
    """

    std: float
    terms: Any = 1

    @property
    def deviation(self) -> float:
        """The standard deviation of one entry."""
        return self.std / math.sqrt(self.terms)

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Values:
        """Independent normal draws."""
        return rng.normal(0.0, self.deviation, shape)

    def __str__(self) -> str:
        return f"normal {self.deviation:.3g}"


@dataclass(frozen=True)
class Uniform:
    """Uniform on [-b, b) with b = bound / sqrt(terms)."""

    bound: float
    terms: Any = 1

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Values:
        """Independent uniform draws."""
        bound = self.bound / math.sqrt(self.terms)
        return rng.uniform(-bound, bound, shape)

    def __str__(self) -> str:
        return f"uniform {self.bound / math.sqrt(self.terms):.3g}"


@dataclass(frozen=True)
class Glorot:
    """Uniform on [-b, b) with b = sqrt(6 / (fan_in + fan_out)), also called Xavier-uniform.

    Source: Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural
    networks" (2010), equation 16.

    >>> Glorot(1, 5).bound
    1.0
    """

    fan_in: Any
    fan_out: Any

    @property
    def bound(self) -> float:
        """The end of the interval."""
        return math.sqrt(6 / (self.fan_in + self.fan_out))

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Values:
        """Independent uniform draws."""
        return rng.uniform(-self.bound, self.bound, shape)

    def __str__(self) -> str:
        return f"glorot {self.bound:.3g}"


@dataclass(frozen=True)
class LogIndex:
    """Entry n of the last axis is log(n + 1): decay rates 1, 2, 3, ... once exponentiated.

    Source: S4D-Real in Gu and coauthors, "On the parameterization and initialization of diagonal
    state space models" (2022).

    >>> np.exp(LogIndex().draw((1, 3), np.random.default_rng(0))).round().tolist()
    [[1.0, 2.0, 3.0]]
    """

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Values:
        """The same row at every leading index."""
        return np.broadcast_to(np.log(np.arange(1.0, shape[-1] + 1)), shape).copy()

    def __str__(self) -> str:
        return "log(n + 1)"


ZEROS, ONES = Constant(0.0), Constant(1.0)
