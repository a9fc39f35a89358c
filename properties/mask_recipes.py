"""Recipes for boolean masks (True: may attend), each a structure that kernels treat specially."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool

Mask = Bool[np.ndarray, "..."]
Shape = tuple[int, ...]
Recipe = Callable[[np.random.Generator, Shape], Mask]


def _places(rng: np.random.Generator, positions: int, shape: Shape) -> np.ndarray:
    """Positions in 0 .. positions - 1: any, or one of the last two or the first, where loops over
    tiles end and begin.
    """
    ends = rng.choice([positions - 1, max(positions - 2, 0), 0], shape)
    return np.where(rng.random(shape) < 0.5, ends, rng.integers(positions, size=shape))


def _random(rng: np.random.Generator, shape: Shape) -> Mask:
    return rng.random(shape) < rng.choice([0.1, 0.5, 0.9])


def _all(rng: np.random.Generator, shape: Shape) -> Mask:
    return np.ones(shape, dtype=bool)


def _prefix(rng: np.random.Generator, shape: Shape) -> Mask:
    """Key padding: the same number of leading keys for all queries of a sequence."""
    mask = np.zeros(shape, dtype=bool)
    if mask.size:
        lengths = 1 + _places(rng, shape[-1], (*shape[:-2], 1, 1))
        mask[...] = np.arange(shape[-1]) < lengths
    return mask


def _leading_empty(rng: np.random.Generator, shape: Shape) -> Mask:
    """Left padding: the leading keys, often whole tiles of them, are blocked."""
    return ~_prefix(rng, shape) | (np.arange(shape[-1]) == shape[-1] - 1)


def _single(rng: np.random.Generator, shape: Shape) -> Mask:
    """One visible key a row."""
    mask = np.zeros(shape, dtype=bool)
    if mask.size:
        np.put_along_axis(mask, _places(rng, shape[-1], (*shape[:-1], 1)), True, axis=-1)
    return mask


def _first_or_last(rng: np.random.Generator, shape: Shape) -> Mask:
    mask = np.zeros(shape, dtype=bool)
    if mask.size:
        mask[..., 0 if rng.integers(2) else -1] = True
    return mask


def _band(rng: np.random.Generator, shape: Shape) -> Mask:
    width = int(rng.integers(0, 4))
    i, j = np.arange(shape[-2])[:, None], np.arange(shape[-1])
    return np.broadcast_to(np.abs(i - j) <= width, shape).copy()


def _blocks(rng: np.random.Generator, shape: Shape) -> Mask:
    """Block-diagonal: packed sequences."""
    size = int(rng.integers(1, 9))
    i, j = np.arange(shape[-2])[:, None] // size, np.arange(shape[-1]) // size
    return np.broadcast_to(i == j, shape).copy()


_PLAIN: dict[str, Recipe] = {
    "random": _random,
    "prefix": _prefix,
    "leading_empty": _leading_empty,
    "single": _single,
    "first_or_last": _first_or_last,
    "band": _band,
    "blocks": _blocks,
    "all": _all,
}


def _mixed(rng: np.random.Generator, shape: Shape) -> Mask:
    """Each sequence and head by a recipe of its own, half of them with the last key turned: it may
    stand alone in its tile.
    """
    mask = np.zeros(shape, dtype=bool)
    recipes = list(_PLAIN.values())
    for place in np.ndindex(shape[:-2]):
        mask[place] = recipes[rng.integers(len(recipes))](rng, shape[-2:])
    mask[..., -1:] ^= rng.random((*shape[:-2], 1, 1)) < 0.5
    return mask


RECIPES: dict[str, Recipe] = {**_PLAIN, "mixed": _mixed}


def see_something(mask: Mask, rng: np.random.Generator, also: Mask | bool = True) -> Mask:
    """The mask with one more key in every row that would see none, chosen among ``also`` where that
    allows any.

    >>> see_something(np.zeros((1, 1), dtype=bool), np.random.default_rng(0)).tolist()
    [[True]]
    """
    shape = np.broadcast_shapes(mask.shape, np.shape(also))
    allowed = np.broadcast_to(also, shape)
    empty = ~np.any(np.broadcast_to(mask, shape) & allowed, axis=-1, keepdims=True)
    if not empty.any() or not shape[-1]:
        return mask
    pick = np.argmax(np.where(allowed, rng.random(shape), -1.0), axis=-1, keepdims=True)
    extra = np.zeros(shape, dtype=bool)
    np.put_along_axis(extra, pick, True, axis=-1)
    return np.asarray(mask | (extra & empty))
