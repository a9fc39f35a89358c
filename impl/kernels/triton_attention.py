"""Attention on torch tensors by the flash kernels: tile sizes, launches, gradients."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from assay.impl.kernels.triton_flash import (
    flash_backward_keys,
    flash_backward_queries,
    flash_forward,
)
from assay.impl.kernels.triton_kernel import (
    DEVICE,
    Kernel,
    blocks,
    output,
    power_of_two,
    readable,
    stored,
)

Window = tuple[int | None, int | None]
MOST_WIDTH = 256
"""Wider heads do not fit in a program's registers and shared memory."""


@dataclass(frozen=True)
class Tiles:
    """Queries and keys of a tile, and how a program runs: warps, and stages of loads in flight."""

    queries: int
    keys: int
    warps: int
    stages: int


# By bytes of an element, then by the largest width of a head: the largest tiles whose operands stay
# in registers when compiled for sm_90, but for some of the gradients of heads wider than 64, which
# spill a few hundred bytes. Products of float32 are not left to tensor cores, which would round
# them to 11 bits.
FORWARD: dict[int, dict[int, Tiles]] = {
    2: {64: Tiles(128, 64, 8, 3), 128: Tiles(64, 32, 8, 2), 256: Tiles(32, 32, 8, 2)},
    4: {64: Tiles(64, 32, 8, 2), 128: Tiles(32, 32, 8, 1), 256: Tiles(32, 32, 8, 1)},
}
BACKWARD: dict[int, dict[int, Tiles]] = {
    2: {64: Tiles(64, 64, 8, 2), 128: Tiles(64, 32, 8, 1), 256: Tiles(32, 32, 8, 1)},
    4: {64: Tiles(32, 32, 8, 1), 128: Tiles(32, 32, 8, 1), 256: Tiles(32, 32, 8, 1)},
}
INTERPRETED = Tiles(128, 128, 1, 1)
"""On the CPU, where time goes by the number of tiles and not by their size."""
BLOCK_SIZES = (INTERPRETED.keys,) if DEVICE == "cpu" else (32, 64, 128)
"""Sizes of the tiles of long axes."""


def tiles_for(table: dict[int, dict[int, Tiles]], q: Tensor, k: Tensor, v: Tensor) -> Tiles:
    """The tiles for the format, the sizes and the device of the inputs; none reaches far beyond a
    short axis, such as the one query of a step of decoding.

    >>> x = torch.empty(1, 1, 100, 80, dtype=torch.bfloat16, device="meta")
    >>> tiles_for(FORWARD, x[:, :, :1], x, x)
    Tiles(queries=16, keys=32, warps=8, stages=2)
    """
    if q.device.type == "cpu":
        tiles = INTERPRETED
    else:
        width = max(q.shape[3], v.shape[3])
        tiles = next(t for most, t in table[q.element_size()].items() if width <= most)
    queries, keys = power_of_two(q.shape[2], 16), power_of_two(k.shape[2], 16)
    return replace(tiles, queries=min(tiles.queries, queries), keys=min(tiles.keys, keys))


@dataclass(frozen=True)
class Rules:
    """Which keys a query sees: those from ``left`` behind its position to ``right`` ahead of it,
    query i being at position offset + i; and the factor on the scores.

    limited  whether the distances leave out anything
    """

    offset: int
    left: int
    right: int
    scale: float
    limited: bool


def rules_of(
    q: Tensor, k: Tensor, causal: bool, offset: int, window: Window | None, scale: float | None
) -> Rules:
    """The causal rule and the window as two distances; a side without end reaches every key."""
    everywhere = q.shape[2] + k.shape[2] + abs(offset)
    left, right = (everywhere if side is None else side for side in window or (None, None))
    factor = 1.0 / math.sqrt(max(q.shape[3], 1)) if scale is None else scale
    limited = causal or left < everywhere or right < everywhere
    return Rules(offset, left, min(right, 0) if causal else right, factor, limited)


def _strides(mask: Tensor | None, *arrays: Tensor) -> list[int]:
    sizes = [stride for x in arrays for stride in x.stride()]
    return [*sizes, *((0,) * 4 if mask is None else mask.stride())]


def _sizes(q: Tensor, k: Tensor, v: Tensor, rules: Rules) -> list[Any]:
    heads = q.shape[1]
    group = heads // max(k.shape[1], 1)
    return [
        heads, max(group, 1), q.shape[2], k.shape[2], q.shape[3], v.shape[3],
        rules.offset, rules.left, rules.right, rules.scale,
    ]  # fmt: skip


def _constants(
    q: Tensor, v: Tensor, mask: Tensor | None, tiles: Tiles, limited: bool
) -> dict[str, Any]:
    kind = 0 if mask is None else 1 if mask.dtype is torch.uint8 else 2
    return {
        "MASK": kind, "LIMITED": limited, "PRECISION": "ieee",
        "QUERIES": tiles.queries, "KEYS": tiles.keys,
        "WIDTH": power_of_two(q.shape[3], 16), "VALUES": power_of_two(v.shape[3], 16),
        "num_warps": tiles.warps, "num_stages": tiles.stages,
    }  # fmt: skip


def _readable_mask(mask: Tensor | None, shape: tuple[int, ...]) -> Tensor | None:
    """The mask spread over [B, H, L, S] without copying; booleans as bytes."""
    if mask is None:
        return None
    plain = mask.view(torch.uint8) if mask.dtype is torch.bool else readable(mask)
    return plain.expand(shape)


def _launch(function: Kernel, grid: tuple[int, int], arguments: list[Any], **named: Any) -> None:
    """Run ``function``, and again with care the programs whose results are not finite."""
    marks = torch.empty(math.prod(grid), dtype=torch.int32, device=arguments[0].device)
    for careful in (False, True):
        function[grid](marks, *arguments, CAREFUL=careful, **named)


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, rules: Rules
    ) -> Tensor:
        batch, heads, queries, _ = q.shape
        arrays = readable(q), readable(k), readable(v)
        seen = _readable_mask(mask, (batch, heads, queries, k.shape[2]))
        out = output((batch, heads, queries, v.shape[3]), q)
        logarithm = torch.empty(out.shape[:3], dtype=torch.float32, device=q.device)
        tiles = tiles_for(FORWARD, q, k, v)
        arguments = [
            *arrays, arrays[0] if seen is None else seen, out, logarithm,
            *_strides(seen, *arrays), *_sizes(*arrays, rules),
        ]  # fmt: skip
        constants = _constants(arrays[0], arrays[2], seen, tiles, rules.limited)
        grid = blocks(queries, tiles.queries), batch * heads
        _launch(flash_forward, grid, arguments, **constants)
        result = stored(out, q)
        ctx.save_for_backward(q, k, v, mask, result, logarithm)
        ctx.rules = rules
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, cotangent: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        q, k, v, mask, out, logarithm = ctx.saved_tensors
        batch, heads, queries, _ = q.shape
        arrays = readable(q), readable(k), readable(v)
        seen = _readable_mask(mask, (batch, heads, queries, k.shape[2]))
        g = readable(cotangent).contiguous()
        # sum w (dO V^T) = dO . O: one number for each row.
        mean = (g.float() * out.float()).sum(-1)
        dq, dk, dv = (output(x.shape, x) for x in (q, k, v))
        tiles = tiles_for(BACKWARD, q, k, v)
        before = (*arrays, arrays[0] if seen is None else seen, g, logarithm, mean)
        after = (*_strides(seen, *arrays), *_sizes(*arrays, ctx.rules))
        constants = _constants(arrays[0], arrays[2], seen, tiles, ctx.rules.limited)
        grid = blocks(queries, tiles.queries), batch * heads
        _launch(flash_backward_queries, grid, [*before, dq, *after], **constants)
        grid = blocks(k.shape[2], tiles.keys), batch * k.shape[1]
        _launch(flash_backward_keys, grid, [*before, dk, dv, *after], **constants)
        return stored(dq, q), stored(dk, k), stored(dv, v), None, None


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: Tensor | None = None,
    causal: bool = False,
    offset: int = 0,
    window: Window | None = None,
    scale: float | None = None,
) -> Tensor:
    """Output [B, H, L, Dv] of q [B, H, L, D], k [B, Hkv, S, D] and v [B, Hkv, S, Dv].

    Arrays may lie in memory as they like. ``mask`` broadcasts to [B, H, L, S]: True where
    attention is allowed, or numbers that are added to the scores. No gradient goes into it.
    """
    rules = rules_of(q, k, causal, offset, window, scale)
    return _Attention.apply(q, k, v, mask, rules)  # type: ignore[no-untyped-call]
