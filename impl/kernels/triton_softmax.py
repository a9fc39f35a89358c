"""Masked softmax in Triton, rows of any length, and its gradient.

Several short rows share a program. A row longer than a tile is passed over twice: for its maximum
and mass, then for its weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable
from triton.language import tensor

from assay.impl.kernels.triton_kernel import (
    Kernel,
    blocks,
    kernel,
    output,
    power_of_two,
    readable,
    row_most,
    row_total,
    stored,
)

TILE = 1024
"""Columns of a tile at most."""
AREA = 2048
"""Entries of a tile at most: 16 for each thread of 4 warps."""


@kernel
def _seen(
    mask: tensor, row: tensor, column: tensor, inside: tensor, middle: tensor,
    outer_stride: tensor, row_stride: tensor, column_stride: tensor,
    MASKED: tl.constexpr,
) -> tensor:  # fmt: skip
    """Which entries of a tile are ``inside`` the array and allowed."""
    if MASKED:
        at = (row // middle) * outer_stride + (row % middle) * row_stride
        inside = inside & (tl.load(mask + at + column * column_stride, inside, other=0) != 0)
    return inside


@kernel
def _exponentials(s: tensor, seen: tensor, top: tensor) -> tensor:
    """exp(s - top) where seen, else 0. ``top`` is -inf where a row has seen nothing."""
    shift = tl.where(top == float("-inf"), 0.0, top)[:, None]
    # What is not seen is replaced before the exponential, so that it can do no harm.
    return tl.where(seen, tl.exp(tl.where(seen, s, shift) - shift), 0.0)


@kernel
def _top(s: tensor, seen: tensor) -> tensor:
    """The maximum of each row; NaN is left out here, and reaches the mass."""
    return row_most(tl.where(seen & (s == s), s, float("-inf")), 1)


@kernel
def softmax_forward(
    scores: tensor, mask: tensor, weights: tensor, rows: tensor, length: tensor, middle: tensor,
    outer_stride: tensor, row_stride: tensor, column_stride: tensor,
    MASKED: tl.constexpr, ONCE: tl.constexpr, ROWS: tl.constexpr, TILE: tl.constexpr,
) -> None:  # fmt: skip
    """Weights of ROWS rows [rows, length]; ONCE: one tile holds a row."""
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    lane = tl.arange(0, TILE)[None, :]
    strides = (outer_stride, row_stride, column_stride)
    if ONCE:
        inside = (row < rows) & (lane < length)
        seen = _seen(mask, row, lane, inside, middle, *strides, MASKED)
        s = tl.load(scores + row * length + lane, seen, other=0.0).to(tl.float32)
        e = _exponentials(s, seen, _top(s, seen))
        w = tl.where(seen, e / row_total(e, 1)[:, None], 0.0)
        tl.store(weights + row * length + lane, w.to(weights.dtype.element_ty), inside)
    else:
        top = tl.full((ROWS,), float("-inf"), tl.float32)
        mass = tl.full((ROWS,), 0.0, tl.float32)
        for start in range(0, length, TILE):
            column = start + lane
            inside = (row < rows) & (column < length)
            seen = _seen(mask, row, column, inside, middle, *strides, MASKED)
            s = tl.load(scores + row * length + column, seen, other=0.0).to(tl.float32)
            higher = tl.maximum(top, _top(s, seen))
            kept = tl.exp(top - tl.where(higher == float("-inf"), 0.0, higher))
            mass = mass * kept + row_total(_exponentials(s, seen, higher), 1)
            top = higher
        for start in range(0, length, TILE):
            column = start + lane
            inside = (row < rows) & (column < length)
            seen = _seen(mask, row, column, inside, middle, *strides, MASKED)
            s = tl.load(scores + row * length + column, seen, other=0.0).to(tl.float32)
            w = tl.where(seen, _exponentials(s, seen, top) / mass[:, None], 0.0)
            tl.store(weights + row * length + column, w.to(weights.dtype.element_ty), inside)


@kernel
def softmax_backward(
    weights: tensor, cotangent: tensor, mask: tensor, gradient: tensor, rows: tensor,
    length: tensor, middle: tensor, outer_stride: tensor, row_stride: tensor,
    column_stride: tensor,
    MASKED: tl.constexpr, ONCE: tl.constexpr, ROWS: tl.constexpr, TILE: tl.constexpr,
) -> None:  # fmt: skip
    """w (g - sum g w) in ROWS rows; 0 where nothing is allowed, whatever the cotangent holds."""
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    lane = tl.arange(0, TILE)[None, :]
    strides = (outer_stride, row_stride, column_stride)
    if ONCE:
        inside = (row < rows) & (lane < length)
        seen = _seen(mask, row, lane, inside, middle, *strides, MASKED)
        w = tl.load(weights + row * length + lane, seen, other=0.0).to(tl.float32)
        g = tl.load(cotangent + row * length + lane, seen, other=0.0).to(tl.float32)
        ds = w * (g - row_total(w * g, 1)[:, None])
        ds = tl.where(seen, ds, 0.0).to(gradient.dtype.element_ty)
        tl.store(gradient + row * length + lane, ds, inside)
    else:
        mean = tl.full((ROWS,), 0.0, tl.float32)
        for start in range(0, length, TILE):
            column = start + lane
            inside = (row < rows) & (column < length)
            seen = _seen(mask, row, column, inside, middle, *strides, MASKED)
            w = tl.load(weights + row * length + column, seen, other=0.0).to(tl.float32)
            g = tl.load(cotangent + row * length + column, seen, other=0.0).to(tl.float32)
            mean += row_total(w * g, 1)
        for start in range(0, length, TILE):
            column = start + lane
            inside = (row < rows) & (column < length)
            seen = _seen(mask, row, column, inside, middle, *strides, MASKED)
            w = tl.load(weights + row * length + column, seen, other=0.0).to(tl.float32)
            g = tl.load(cotangent + row * length + column, seen, other=0.0).to(tl.float32)
            ds = tl.where(seen, w * (g - mean[:, None]), 0.0).to(gradient.dtype.element_ty)
            tl.store(gradient + row * length + column, ds, inside)


def tiles(rows: int, length: int) -> tuple[int, int]:
    """Rows and columns of a tile.

    >>> tiles(1000, 5), tiles(3, 4000)
    ((32, 8), (2, 1024))
    """
    tile = min(power_of_two(length), TILE)
    return min(power_of_two(rows), AREA // tile, 32), tile


def launch(function: Kernel, arrays: Sequence[Tensor], filled: Tensor, mask: Tensor | None) -> None:
    """Run ``function`` over all rows of ``filled`` [outer, middle, length]."""
    outer, middle, length = filled.shape
    rows = outer * middle
    many, tile = tiles(rows, length)
    if filled.device.type == "cpu":
        # The interpreter's cost is in the number of programs, and rows do not meet.
        many = power_of_two(rows)
    # Booleans are read as bytes; without a mask any array stands in for it.
    allowed = filled if mask is None else mask.view(torch.uint8)
    strides = (0, 0, 0) if mask is None else mask.stride()
    function[(blocks(rows, many) if length else 0,)](
        *arrays, allowed, filled, rows, length, middle, *strides,
        MASKED=mask is not None, ONCE=length <= tile, ROWS=many, TILE=tile, num_warps=4,
    )  # fmt: skip


def _flat(x: Tensor) -> Tensor:
    """``x`` as [outer, middle, length], a view where its strides allow it."""
    middle = x.shape[-2] if x.ndim > 1 else 1
    return x.reshape(math.prod(x.shape[:-2]), middle, x.shape[-1])


class _MaskedSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, mask: Tensor | None) -> Tensor:
        flat = readable(_flat(scores)).contiguous()
        filled = output(flat.shape, scores)
        allowed = None if mask is None else _flat(mask.expand(scores.shape))
        launch(softmax_forward, (flat,), filled, allowed)
        weights = stored(filled, scores).reshape(scores.shape)
        ctx.save_for_backward(weights, mask)
        return weights

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, cotangent: Tensor) -> tuple[Tensor, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        weights, mask = ctx.saved_tensors
        arrays = [readable(_flat(x)).contiguous() for x in (weights, cotangent)]
        filled = output(arrays[0].shape, weights)
        allowed = None if mask is None else _flat(mask.expand(weights.shape))
        launch(softmax_backward, arrays, filled, allowed)
        return stored(filled, weights).reshape(weights.shape), None


def masked_softmax(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Weights in the shape of ``scores`` [..., S]; ``mask``, True where allowed, broadcasts to it.

    Rows that see nothing are zeros.
    """
    return _MaskedSoftmax.apply(scores, mask)  # type: ignore[no-untyped-call]
