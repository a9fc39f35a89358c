"""Windows over spatial axes: output i sees input s i + d j - p through tap j of the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int, Shaped

from assay.spec.scalars import Array, at_most, select

PerAxis = int | Sequence[int]


def extent(n: Any, k: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1) -> Any:
    """Number of windows that fit: floor((n + 2 p - d (k - 1) - 1) / s) + 1, and 0 if none does.

    n >= 0 inputs, k >= 1 taps, stride s >= 1, padding p >= 0 on each side, dilation d >= 1. Inputs
    beyond the last window are not read. Also runs on integer terms. Source: V. Dumoulin, F. Visin,
    "A guide to convolution arithmetic for deep learning" (2016), relationship 15.

    >>> int(extent(5, 2, stride=2)), int(extent(2, 4)), int(extent(0, 1))
    (2, 0, 0)
    """
    room, span = n + 2 * padding, dilation * (k - 1) + 1
    return select(at_most(np.asarray(span), np.asarray(room)), (room - span) // stride + 1, 0)[()]


class SamePadding(NamedTuple):
    """Kernel and padding which, with stride 1, keep an extent."""

    kernel: Any
    padding: Any


def same_padding(radius: Any) -> SamePadding:
    """Kernel 2 r + 1 with padding r: ``extent(n, *same_padding(r)) = n`` for stride 1, any n and r.

    >>> same_padding(2)
    SamePadding(kernel=5, padding=2)
    """
    return SamePadding(2 * radius + 1, radius)


def row_major(index: Sequence[Any], sizes: Sequence[Any]) -> Any:
    """Where an index stands when a grid is read row by row: the last axis moves fastest.

    0 <= i_a < n_a; also on integer terms.

    >>> row_major((1, 2), (2, 3)), row_major((), ())
    (5, 0)
    """
    place: Any = 0
    for i, n in zip(index, sizes, strict=True):
        place = place * n + i
    return place


def per_axis(name: str, value: PerAxis, axes: int, least: int) -> tuple[int, ...]:
    """One integer for each spatial axis, from one for all or one for each.

    >>> per_axis("stride", 2, axes=3, least=1)
    (2, 2, 2)
    """
    values = tuple(value) if isinstance(value, Sequence) else (value,) * axes
    if len(values) != axes or any(int(v) != v or v < least for v in values):
        raise ValueError(
            f"{name}={value!r} must be an integer of at least {least}, or {axes} of them: "
            "one for each spatial axis"
        )
    return tuple(int(v) for v in values)


@dataclass(frozen=True)
class Windows:
    """How windows lie over the spatial axes; one entry for each axis.

    >>> w = Windows.over((4,), (2,), stride=2)
    >>> w.extents, [seen.tolist() for seen in w.seen()], [by.tolist() for by in w.seers()]
    ((2,), [[[0, 1], [2, 3]]], [[[0, 2], [2, 0], [1, 2], [2, 1]]])
    """

    sizes: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]

    @classmethod
    def over(
        cls,
        sizes: Sequence[int],
        kernel: PerAxis,
        stride: PerAxis = 1,
        padding: PerAxis = 0,
        dilation: PerAxis = 1,
    ) -> Windows:
        """Windows over axes of these sizes; ValueError where a number is out of its range."""
        axes = len(sizes)
        return cls(
            tuple(sizes),
            per_axis("kernel", kernel, axes, 1),
            per_axis("stride", stride, axes, 1),
            per_axis("padding", padding, axes, 0),
            per_axis("dilation", dilation, axes, 1),
        )

    @property
    def _axes(self) -> list[tuple[int, int, int, int, int]]:
        return list(
            zip(self.sizes, self.kernel, self.stride, self.padding, self.dilation, strict=True)
        )

    @property
    def extents(self) -> tuple[int, ...]:
        """Number of windows along each axis."""
        return tuple(int(extent(*axis)) for axis in self._axes)

    @property
    def taps(self) -> int:
        """Number of positions in one window."""
        return prod(self.kernel)

    def seen(self) -> list[Int[np.ndarray, "m k"]]:
        """For each axis: the input that output i sees through tap j; n where that is padding."""
        found = []
        for (n, k, s, p, d), m in zip(self._axes, self.extents, strict=True):
            at = s * np.arange(m)[:, None] + d * np.arange(k) - p
            found.append(np.where((at >= 0) & (at < n), at, n))
        return found

    def seers(self) -> list[Int[np.ndarray, "n k"]]:
        """For each axis: the output that sees input i through tap j; m where there is none."""
        found = []
        for (n, k, s, p, d), m in zip(self._axes, self.extents, strict=True):
            ahead = np.arange(n)[:, None] - d * np.arange(k) + p
            met = (ahead % s == 0) & (ahead >= 0) & (ahead < s * m)
            found.append(np.where(met, ahead // s, m))
        return found


def gather(x: Shaped[np.ndarray, "*n"], positions: Sequence[Int[np.ndarray, "m k"]]) -> Array:
    """Entries of the last axes at ``positions`` [m, k], one table for each axis; 0 past the end.

    [*b, *n] becomes [*b, *m, *k]: outputs first, then taps.

    >>> gather(np.array([5, 7]), [np.array([[0, 1], [1, 2]])]).tolist()
    [[5, 7], [7, 0]]
    """
    lead, axes = x.ndim - len(positions), len(positions)
    for a in reversed(range(axes)):
        rim = np.zeros((*x.shape[: lead + a], 1, *x.shape[lead + a + 1 :]), dtype=x.dtype)
        x = np.take(np.concatenate([x, rim], axis=lead + a), positions[a], axis=lead + a)
    outputs, taps = range(lead, lead + 2 * axes, 2), range(lead + 1, lead + 2 * axes, 2)
    return np.transpose(x, (*range(lead), *outputs, *taps))


def flat_windows(
    x: Shaped[np.ndarray, "B C *n"], positions: Sequence[Int[np.ndarray, "m k"]]
) -> Shaped[np.ndarray, "B C M K"]:
    """``gather`` with all outputs on one axis and all taps on another, both row-major."""
    outputs, taps = (prod(p.shape[side] for p in positions) for side in (0, 1))
    return gather(x, positions).reshape(*x.shape[:2], outputs, taps)


def check_grid(x: Array) -> None:
    """ValueError unless x has a batch, channels and at least one spatial axis."""
    if x.ndim < 3:
        raise ValueError(
            f"x has shape {x.shape}; it must be [batch, channels, n1, ...] with at least one "
            "spatial axis"
        )
