"""Images of coloured shapes: which shape in which colour, at any place and size, under noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product

import numpy as np
from jaxtyping import Bool, Float64

from assay.impl.training.data import DataError, Problem, split

Grid = Float64[np.ndarray, "2 h w"]

SHAPES: Mapping[str, Callable[[Grid], Bool[np.ndarray, "h w"]]] = {
    "disc": lambda x: (x**2).sum(axis=0) < 0.5,
    "row": lambda x: np.abs(x[0]) < 0.45,
    "column": lambda x: np.abs(x[1]) < 0.45,
    "frame": lambda x: np.abs(x).max(axis=0) > 0.6,
    "diagonal": lambda x: np.abs(x[0] - x[1]) < 0.45,
}
"""Which points of the square [-1, 1]² belong to a shape."""

COUNT = 1000
NOISE = 0.1
LEAST = 4


def colours(channels: int) -> list[tuple[int, ...]]:
    """Every way in which channels are on or off, but for all off.

    >>> colours(2)
    [(1, 0), (0, 1), (1, 1)]
    """
    return [c[::-1] for c in product((0, 1), repeat=min(channels, 10)) if any(c)]


def draw(shape: str, extents: tuple[int, int], rng: np.random.Generator) -> Bool[np.ndarray, "h w"]:
    """A shape at a place and of a size by chance."""
    axes = [(np.arange(n) + 0.5) * 2 / n - 1 for n in extents]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"))
    place = rng.uniform(-0.15, 0.15, (2, 1, 1))
    return SHAPES[shape]((grid - place) / rng.uniform(0.9, 1.1))


def _refuse(channels: int, spatial: tuple[int, ...], classes: int) -> None:
    if len(spatial) != 2 or min(spatial) < LEAST:
        raise DataError(
            f"spatial={spatial!r} has no shapes; valid: two extents of {LEAST} or more, or images "
            "of your own (--data-file)"
        )
    most = len(SHAPES) * len(colours(channels))
    if not 2 <= classes <= most:
        raise DataError(
            f"classes={classes} cannot be told apart by shape and colour with channels={channels}; "
            f"valid: 2 to {most}, or images of your own (--data-file)"
        )


def generated(seed: int, channels: int, spatial: tuple[int, ...], classes: int) -> Problem:
    """Images [N, C, h, w] and 1 at their classes [N, V]: class k has shape k mod 5, colour k div 5.

    DataError for images that no shape fits in, and for more classes than there are.
    """
    _refuse(channels, spatial, classes)
    rng = np.random.default_rng(seed)
    extents, names = (spatial[0], spatial[1]), list(SHAPES)
    labels = rng.integers(classes, size=COUNT)
    tints = np.zeros((COUNT, channels))
    palette = np.array(colours(channels))
    tints[:, : palette.shape[1]] = palette[labels // len(names)]
    masks = np.stack([draw(names[label % len(names)], extents, rng) for label in labels])
    light = rng.uniform(0.7, 1.0, (COUNT, 1, 1, 1))
    images = light * tints[:, :, None, None] * masks[:, None]
    noisy = images + rng.normal(0.0, NOISE, images.shape)
    return split(f"{COUNT} images of coloured shapes", noisy, np.eye(classes)[labels])
