"""Inputs of one call in memory: every array in its layout, guard zones around each, and what was
written where.

All arrays of a call lie in one block: [guard | array | guard | array | ... | guard]. The bytes
between the arrays, and between the elements of a strided array, hold a pattern that reads as NaN in
every float format, so that a read out of bounds shows in the result and a write shows in the
pattern.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from assay.impl.call import Layout

GUARD = 64
_ALIGN = 64
_PATTERN = 0x7FFD
_CONTIGUOUS = Layout()


@dataclass(frozen=True)
class Place:
    """Where one array lies in the block: ``start`` and ``size`` in bytes of everything from its
    first to its last element.
    """

    start: int
    size: int


class Block:
    """The inputs of one call, placed in memory that nothing else refers to.

    views  by name, with the values and dtypes of ``arrays`` and the strides of their layouts
    """

    def __init__(self, arrays: Mapping[str, np.ndarray], layouts: Mapping[str, Layout]) -> None:
        stored = {
            name: _stored_shape(a, layouts.get(name, _CONTIGUOUS)) for name, a in arrays.items()
        }
        self.places: dict[str, Place] = {}
        size = GUARD
        for name, (shape, skip) in stored.items():
            array = arrays[name]
            length = _size(shape) * array.itemsize
            start = size + skip * array.itemsize
            self.places[name] = Place(start, length)
            size = _round_up(start + length) + GUARD
        self.memory = _aligned(size)
        self.memory.view(np.uint16)[:] = _PATTERN
        self.views = {
            name: self._fill(
                array, stored[name][0], self.places[name], layouts.get(name, _CONTIGUOUS)
            )
            for name, array in arrays.items()
        }
        self._before = self.memory.tobytes()

    def _fill(
        self, array: np.ndarray, shape: tuple[int, ...], place: Place, layout: Layout
    ) -> np.ndarray:
        base: np.ndarray = np.ndarray(shape, array.dtype, self.memory.data, place.start)
        view = _as_laid_out(base, array, layout)
        if view.size:
            # Rows along a stride of 0 are the same memory: one of them is written.
            (view[:1] if layout.kind == "expanded" and array.ndim else view)[...] = (
                array[:1] if layout.kind == "expanded" and array.ndim else array
            )
        return view

    def inspect(self, after: np.ndarray | None = None) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of the arrays whose bits changed, and of those around which something was written.

        ``after`` is the block's content where the call worked on a copy on another device.
        """
        now = self.memory if after is None else after
        if now.tobytes() == self._before:
            return (), ()
        changed = now != np.frombuffer(self._before, np.uint8)
        inside = np.zeros(changed.shape, dtype=bool)
        inputs = []
        for name, view in self.views.items():
            owned = _owned_bytes(view, self.memory)
            if changed[owned].any():
                inputs.append(name)
            inside[owned] = True
        outside = np.flatnonzero(changed & ~inside)
        return tuple(inputs), self._nearest(outside)

    def overlapping(self, low: int, high: int) -> tuple[str, ...]:
        """Names of the arrays that share bytes ``low..high`` of the block."""
        return tuple(n for n, p in self.places.items() if low < p.start + p.size and p.start < high)

    def _nearest(self, positions: np.ndarray) -> tuple[str, ...]:
        """The arrays beside which ``positions`` lie."""
        names = list(self.places)
        middles = np.array([p.start + p.size / 2 for p in self.places.values()])
        return tuple(
            names[i] for i in sorted({int(np.abs(middles - p).argmin()) for p in positions[:64]})
        )


def _owned_bytes(view: np.ndarray, memory: np.ndarray) -> np.ndarray:
    """Indices into ``memory`` of the bytes of the elements of ``view``."""
    if view.size == 0:
        return np.empty(0, np.intp)
    first = view.__array_interface__["data"][0] - memory.__array_interface__["data"][0]
    index = np.array(first)
    for length, stride in zip(view.shape, view.strides, strict=True):
        index = index[..., None] + np.arange(length) * stride
    return np.unique(index[..., None] + np.arange(view.itemsize))


def _stored_shape(array: np.ndarray, layout: Layout) -> tuple[tuple[int, ...], int]:
    """Shape in which the elements are stored, and how many elements are skipped before the
    first.
    """
    shape = array.shape
    if layout.kind == "offset":
        return shape, layout.offset
    if layout.kind == "transposed" and len(shape) >= 2:
        return (*shape[:-2], shape[-1], shape[-2]), 0
    if layout.kind == "strided" and shape:
        return (*shape[:-1], 2 * shape[-1]), 0
    if layout.kind == "expanded" and shape and shape[0] > 1:
        return (1, *shape[1:]), 0
    return shape, 0


def _as_laid_out(base: np.ndarray, array: np.ndarray, layout: Layout) -> np.ndarray:
    if layout.kind == "transposed" and array.ndim >= 2:
        return base.swapaxes(-1, -2)
    if layout.kind == "strided" and array.ndim:
        return base[..., ::2]
    if base.shape != array.shape:
        return np.lib.stride_tricks.as_strided(base, array.shape, (0, *base.strides[1:]))
    return base


class _Lease:
    """Memory lent to the arrays that lie in it. When the last of them is gone it is lent again, if
    the next block is as large: what a kernel remembers by address then shows in the next call with
    the same shapes, where an allocator would leave that to luck.
    """

    # A deque: threads may lend and return at the same time.
    _returned: ClassVar[deque[np.ndarray]] = deque(maxlen=1)

    def __init__(self, size: int) -> None:
        try:
            raw = self._returned.pop()
        except IndexError:
            raw = np.empty(0, np.uint8)
        self._raw = raw if raw.size == size else np.empty(size, np.uint8)
        self.__array_interface__ = self._raw.__array_interface__

    def __del__(self) -> None:
        self._returned.append(self._raw)


def _aligned(size: int) -> np.ndarray:
    """Bytes to be written, whose address is a multiple of 64, so that results do not hang on
    luck.
    """
    raw = np.asarray(_Lease(size + _ALIGN))
    skip = -raw.__array_interface__["data"][0] % _ALIGN
    return raw[skip : skip + size]


def _round_up(size: int) -> int:
    return -(-size // _ALIGN) * _ALIGN


def _size(shape: Iterable[int]) -> int:
    size = 1
    for length in shape:
        size *= length
    return size
