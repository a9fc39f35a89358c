"""Selective scan in Triton, and its gradients.

A program runs over time in chunks, with the states of some channels in registers: nothing of size
[B, T, E, N] is kept. The forward pass saves the states before every chunk; the backward pass runs
each chunk again from there, last chunk first.
"""

from __future__ import annotations

from typing import Any

import torch
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable
from triton.language import tensor

from assay.impl.kernels.triton_kernel import (
    blocks,
    kernel,
    output,
    power_of_two,
    readable,
    row_total,
    stored,
)
from assay.impl.kernels.triton_recurrence import recurrence

CHUNK = 16
"""Steps of a tile."""
AREA = 2048
"""Entries of a tile [CHUNK, channels, states]: 16 for each thread of 4 warps."""


@kernel
def _rows(
    x: tensor, time: tensor, column: tensor, base: tensor, start: tensor, end: tensor, width: tensor
) -> tensor:
    """x[base + time, column] for a tile of steps; 0 before ``start``, from ``end`` on, and beyond
    ``width``.
    """
    inside = ((time >= start) & (time < end))[:, None] & (column < width)[None, :]
    at = (base + time)[:, None] * width + column[None, :]
    return tl.load(x + at, inside, other=0.0).to(tl.float32)


@kernel
def _maps(delta: tensor, u: tensor, b: tensor, rates: tensor) -> tensor:
    """Factors exp(-delta a) and added terms delta u b, [T, E, N]; a step of 0 changes nothing."""
    factor = tl.exp(-(delta[:, :, None] * rates[None, :, :]))
    return factor, (delta * u)[:, :, None] * b[:, None, :]


@kernel
def scan_forward(
    u: tensor, delta: tensor, a: tensor, b: tensor, c: tensor, d: tensor, h0: tensor, out: tensor,
    last: tensor, saved: tensor, steps: tensor, channels: tensor, states: tensor,
    SKIP: tl.constexpr, START: tl.constexpr, SAVE: tl.constexpr, CHUNK: tl.constexpr,
    BLOCK: tl.constexpr, STATES: tl.constexpr,
) -> None:  # fmt: skip
    """Outputs of BLOCK channels of one sequence, and their last states."""
    batch = tl.program_id(0).to(tl.int64)
    channel = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    state, row = tl.arange(0, STATES), tl.arange(0, CHUNK)
    real = channel < channels
    inside = real[:, None] & (state < states)[None, :]
    tile = channel[:, None] * states + state[None, :]
    rates = tl.load(a + tile, inside, other=0.0).to(tl.float32)
    h = tl.full((BLOCK, STATES), 0.0, tl.float32)
    if START:
        h = tl.load(h0 + batch * channels * states + tile, inside, other=0.0).to(tl.float32)
    chunks = (steps + CHUNK - 1) // CHUNK
    base = batch * steps
    for chunk in range(0, chunks):
        if SAVE:
            tl.store(saved + (batch * chunks + chunk) * channels * states + tile, h, inside)
        time = chunk * CHUNK + row
        u_t = _rows(u, time, channel, base, 0, steps, channels)
        delta_t = _rows(delta, time, channel, base, 0, steps, channels)
        b_t = _rows(b, time, state, base, 0, steps, states)
        c_t = _rows(c, time, state, base, 0, steps, states)
        factor, added = _maps(delta_t, u_t, b_t, rates)
        added = tl.where((row == 0)[:, None, None], factor * h[None, :, :] + added, added)
        tracks = recurrence(factor, added, False)
        y = row_total(tracks * c_t[:, None, :], 2)
        if SKIP:
            y += tl.load(d + channel, real, other=0.0).to(tl.float32)[None, :] * u_t
        at = (base + time)[:, None] * channels + channel[None, :]
        tl.store(out + at, y.to(out.dtype.element_ty), (time < steps)[:, None] & real[None, :])
        # Steps beyond the end change nothing, so the last row is the last state.
        h = row_total(tl.where((row == CHUNK - 1)[:, None, None], tracks, 0.0), 0)
    tl.store(last + batch * channels * states + tile, h.to(last.dtype.element_ty), inside)


@kernel
def scan_backward(
    u: tensor, delta: tensor, a: tensor, b: tensor, c: tensor, d: tensor, saved: tensor,
    cotangent: tensor, last_cotangent: tensor, du: tensor, ddelta: tensor, da: tensor, db: tensor,
    dc: tensor, dd: tensor, dh0: tensor, batches: tensor, steps: tensor, channels: tensor,
    states: tensor,
    SKIP: tl.constexpr, CHUNK: tl.constexpr, BLOCK: tl.constexpr, STATES: tl.constexpr,
) -> None:  # fmt: skip
    """Gradients of BLOCK channels of one sequence; its shares of da, dd, db and dc.

    No two programs write to one place, so that sums over programs do not depend on their order.
    """
    batch, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    channel = part * BLOCK + tl.arange(0, BLOCK)
    state, row = tl.arange(0, STATES), tl.arange(0, CHUNK)
    real, kept = channel < channels, state < states
    inside = real[:, None] & kept[None, :]
    tile = channel[:, None] * states + state[None, :]
    first_row, last_row = (row == 0)[:, None, None], (row == CHUNK - 1)[:, None, None]
    sequence, base = batch * channels * states, batch * steps
    rates = tl.load(a + tile, inside, other=0.0).to(tl.float32)
    # The gradient into the states before the chunk that was done last.
    flow = tl.load(last_cotangent + sequence + tile, inside, other=0.0).to(tl.float32)
    into_a = tl.full((BLOCK, STATES), 0.0, tl.float32)
    into_d = tl.full((BLOCK,), 0.0, tl.float32)
    chunks = (steps + CHUNK - 1) // CHUNK
    for back in range(0, chunks):
        chunk = chunks - 1 - back
        first = chunk * CHUNK
        end = tl.minimum(first + CHUNK, steps)
        time = first + row
        # States before each step: the maps of the steps before, and none at the first.
        u_t = _rows(u, time - 1, channel, base, first, end, channels)
        delta_t = _rows(delta, time - 1, channel, base, first, end, channels)
        b_t = _rows(b, time - 1, state, base, first, end, states)
        factor, added = _maps(delta_t, u_t, b_t, rates)
        start = saved + (batch * chunks + chunk) * channels * states + tile
        h = tl.load(start, inside, other=0.0)
        before = recurrence(factor, tl.where(first_row, h[None, :, :], added), False)
        # Gradients into the states after each step: the factors of the steps after.
        delta_t = _rows(delta, time + 1, channel, base, first, end, channels)
        factor = tl.exp(-(delta_t[:, :, None] * rates[None, :, :]))
        g = _rows(cotangent, time, channel, base, first, end, channels)
        c_t = _rows(c, time, state, base, first, end, states)
        read = g[:, :, None] * c_t[:, None, :]
        slope = recurrence(factor, tl.where(last_row, read + flow[None, :, :], read), True)
        u_t = _rows(u, time, channel, base, first, end, channels)
        delta_t = _rows(delta, time, channel, base, first, end, channels)
        b_t = _rows(b, time, state, base, first, end, states)
        factor, added = _maps(delta_t, u_t, b_t, rates)
        carried = factor * before
        gone = slope * carried
        from_b = row_total(slope * b_t[:, None, :], 2)
        here = (base + time)[:, None] * channels + channel[None, :]
        present = (time < end)[:, None] & real[None, :]
        into_u = delta_t * from_b
        if SKIP:
            into_u += tl.load(d + channel, real, other=0.0).to(tl.float32)[None, :] * g
        tl.store(du + here, into_u.to(du.dtype.element_ty), present)
        into_delta = u_t * from_b - row_total(gone * rates[None, :, :], 2)
        tl.store(ddelta + here, into_delta.to(ddelta.dtype.element_ty), present)
        share = (part * batches * steps + base + time)[:, None] * states + state[None, :]
        mixed = (time < end)[:, None] & kept[None, :]
        tl.store(db + share, row_total(slope * (delta_t * u_t)[:, :, None], 1), mixed)
        tl.store(dc + share, row_total(g[:, :, None] * (carried + added), 1), mixed)
        into_a -= row_total(gone * delta_t[:, :, None], 0)
        into_d += row_total(g * u_t, 0)
        flow = row_total(tl.where(first_row, factor * slope, 0.0), 0)
    tl.store(da + sequence + tile, into_a, inside)
    tl.store(dd + batch * channels + channel, into_d, real)
    tl.store(dh0 + sequence + tile, flow.to(dh0.dtype.element_ty), inside)


def tiles(channels: int, states: int) -> tuple[int, int]:
    """Channels of a program, and states as a power of two.

    >>> tiles(2048, 16), tiles(3, 1)
    ((8, 16), (4, 1))
    """
    width = power_of_two(states)
    return min(power_of_two(channels), max(AREA // (CHUNK * width), 1)), width


def _plain(x: Tensor | None, stand_in: Tensor) -> Tensor:
    """``x`` as kernels read it, row-major; what is left out is never read."""
    return stand_in if x is None else readable(x).contiguous()


class _SelectiveScan(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, u: Tensor, delta: Tensor, a: Tensor, *others: Any) -> tuple[Any, ...]:
        b, c, d, h0 = others
        (batch, steps, channels), states = u.shape, a.shape[1]
        block, width = tiles(channels, states)
        # Without gradients nothing is saved.
        save = any(ctx.needs_input_grad)
        chunks = blocks(steps, CHUNK) if save else 0
        saved = u.new_empty((batch, chunks, channels, states), dtype=torch.float32)
        plain = readable(u).contiguous()
        out, last = output(u.shape, u), output((batch, channels, states), u)
        scan_forward[(batch, blocks(channels, block))](
            plain, *(_plain(x, plain) for x in (delta, a, b, c, d, h0)), out, last, saved,
            steps, channels, states,
            SKIP=d is not None, START=h0 is not None, SAVE=save,
            CHUNK=CHUNK, BLOCK=block, STATES=width, num_warps=4,
        )  # fmt: skip
        ctx.save_for_backward(u, delta, a, b, c, d, h0, saved)
        return stored(out, u), stored(last, u)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *cotangents: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        *inputs, saved = ctx.saved_tensors
        u, delta, a, b, c, d, _ = inputs
        (batch, steps, channels), states = u.shape, a.shape[1]
        block, width = tiles(channels, states)
        parts = blocks(channels, block)
        plain = readable(u).contiguous()
        arrays = [plain, *(_plain(x, plain) for x in (delta, a, b, c, d))]
        given = [readable(x).contiguous() for x in cotangents]
        da, dd = (saved.new_empty(batch, *s) for s in ((channels, states), (channels,)))
        db, dc = (saved.new_empty(parts, batch, steps, states) for _ in range(2))
        du, ddelta, dh0 = (output(x.shape, u) for x in (u, u, da))
        scan_backward[(batch, parts)](
            *arrays, saved, *given, du, ddelta, da, db, dc, dd, dh0,
            batch, steps, channels, states,
            SKIP=d is not None, CHUNK=CHUNK, BLOCK=block, STATES=width, num_warps=4,
        )  # fmt: skip
        found = (du, ddelta, da.sum(0), db.sum(0), dc.sum(0), dd.sum(0), dh0)
        return tuple(
            None if x is None else stored(g, x) for g, x in zip(found, inputs, strict=True)
        )


def selective_scan(
    u: Tensor,
    delta: Tensor,
    a: Tensor,
    b: Tensor,
    c: Tensor,
    d: Tensor | None = None,
    h0: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Outputs [B, T, E] and the last state [B, E, N] of h = exp(-delta a) h + delta u b,
    y = sum h c + d u.

    u, delta [B, T, E]; a [E, N], rates of decay, not negative: a product of growing factors may
    overflow where the states do not; b, c [B, T, N]; d [E]; h0 [B, E, N].
    """
    return _SelectiveScan.apply(u, delta, a, b, c, d, h0)  # type: ignore[no-untyped-call]
