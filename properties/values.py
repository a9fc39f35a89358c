"""Recipes that fill an array from a seed: each stresses one way in which kernels go wrong."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float64

Array = Float64[np.ndarray, "..."]
Recipe = Callable[[np.random.Generator, tuple[int, ...]], Array]


def _normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.standard_normal(shape)


def _ones(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return np.ones(shape)


def _zeros(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return np.zeros(shape)


def _integers(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """-3 .. 3: products and sums are exact in every format."""
    return rng.integers(-3, 4, shape).astype(np.float64)


def _dyadic(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Multiples of 1/8 in [-2, 2]: exact in every format, and so are sums with small integers."""
    return rng.integers(-16, 17, shape) / 8.0


def _positive(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.uniform(0.5, 1.0, shape)


def _wide(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return 8.0 * rng.standard_normal(shape)


def _outlier_channels(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """A few columns a hundred times larger, as trained models have them."""
    x = rng.standard_normal(shape)
    if x.ndim and shape[-1]:
        x[..., rng.integers(shape[-1])] *= 100.0
    return x


def _sink(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """The first row dominates, as attention sinks do."""
    x = rng.standard_normal(shape)
    if x.ndim >= 2 and shape[-2]:
        x[..., 0, :] *= 16.0
    return x


def _near_ties(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return 1.0 + 2.0**-7 * rng.integers(-1, 2, shape)


def _duplicate_rows(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    x = rng.standard_normal(shape)
    if x.ndim >= 2 and shape[-2] > 1:
        x[..., 1::2, :] = x[..., 0 : shape[-2] - 1 : 2, :]
    return x


def _large_mean(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """A large common part: what a missing shift by the maximum cannot survive."""
    return 96.0 + rng.standard_normal(shape)


def _alternating(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    x = np.abs(rng.standard_normal(shape))
    if x.ndim and shape[-1]:
        x[..., 1::2] *= -1.0
    return x


def _one_hot(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    x = np.zeros(shape) if shape else np.ones(shape)
    if x.size and shape:
        index = rng.integers(shape[-1], size=(*shape[:-1], 1))
        np.put_along_axis(x, index, 1.0, axis=-1)
    return x


def _tiny(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return 2.0**-12 * rng.standard_normal(shape)


def _row_index(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Every row holds its own number: shows at once which rows were mixed."""
    rows = np.arange(int(np.prod(shape[:-1]))).reshape(*shape[:-1], 1) if shape else np.zeros(())
    return np.broadcast_to(rows % 61 / 4.0, shape).astype(np.float64)


def _head_index(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Every head (second axis) holds its own number, from 1."""
    heads = np.arange(1, shape[1] + 1, dtype=np.float64).reshape(1, -1, *(1,) * (len(shape) - 2))
    return np.broadcast_to(heads, shape)


def _penalties(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Finite penalties, which block nothing: some entries of a row, or all of it, are moved down by
    the same amount.
    """
    penalty = -rng.choice([16.0, 128.0, 1024.0, 10000.0], (*shape[:-1], 1))
    whole = rng.random((*shape[:-1], 1)) < 0.5
    return np.where(whole | (rng.random(shape) < 0.5), penalty, 0.0)


RECIPES: dict[str, Recipe] = {
    "normal": _normal,
    "integers": _integers,
    "dyadic": _dyadic,
    "wide": _wide,
    "positive": _positive,
    "outlier_channels": _outlier_channels,
    "sink": _sink,
    "near_ties": _near_ties,
    "duplicate_rows": _duplicate_rows,
    "large_mean": _large_mean,
    "alternating": _alternating,
    "one_hot": _one_hot,
    "tiny": _tiny,
    "row_index": _row_index,
    "head_index": _head_index,
    "penalties": _penalties,
    "ones": _ones,
    "zeros": _zeros,
}


def fill(recipe: str, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """An array of this shape by the named recipe, in float64; the caller rounds it to its dtype."""
    return np.asarray(RECIPES[recipe](rng, shape))
