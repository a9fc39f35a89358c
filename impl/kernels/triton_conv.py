"""Causal depthwise convolution in Triton, with the history of a stream, and its gradients.

A program holds a tile of steps and channels and adds up the taps; the weight's gradient is summed
over time by one program for each tap, sequence and block of channels.
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

STEPS = 32
"""Steps of a tile at most."""
CHANNELS = 64
"""Channels of a tile at most."""


@kernel
def _past(
    x: tensor, history: tensor, batch: tensor, time: tensor, channel: tensor, inside: tensor,
    steps: tensor, channels: tensor, past: tensor,
    HISTORY: tl.constexpr,
) -> tensor:  # fmt: skip
    """The inputs at ``time``; before the first one the history, or zeros."""
    now = tl.load(
        x + (batch * steps + time) * channels + channel,
        inside & (time >= 0), other=0.0,
    ).to(tl.float32)  # fmt: skip
    if HISTORY:
        now += tl.load(
            history + (batch * past + past + time) * channels + channel,
            inside & (time < 0) & (time >= -past), other=0.0,
        ).to(tl.float32)  # fmt: skip
    return now


@kernel
def conv_forward(
    x: tensor, weight: tensor, bias: tensor, history: tensor, out: tensor, steps: tensor,
    channels: tensor, taps: tensor,
    BIAS: tl.constexpr, HISTORY: tl.constexpr, STEPS: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """bias + sum over taps k of weight[k] x[t - k], in a tile [STEPS, BLOCK]."""
    batch = tl.program_id(0).to(tl.int64)
    time = tl.program_id(1) * STEPS + tl.arange(0, STEPS)[:, None]
    channel = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)[None, :]
    inside = (time < steps) & (channel < channels)
    y = tl.full((STEPS, BLOCK), 0.0, tl.float32)
    if BIAS:
        y += tl.load(bias + channel, channel < channels, other=0.0).to(tl.float32)
    for tap in range(0, taps):
        w = tl.load(weight + tap * channels + channel, channel < channels, other=0.0)
        y += w.to(tl.float32) * _past(
            x, history, batch, time - tap, channel, inside, steps, channels, taps - 1, HISTORY
        )
    at = (batch * steps + time) * channels + channel
    tl.store(out + at, y.to(out.dtype.element_ty), inside)


@kernel
def conv_backward_inputs(
    cotangent: tensor, weight: tensor, kept_cotangent: tensor, slopes: tensor, steps: tensor,
    channels: tensor, taps: tensor,
    STEPS: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """sum over taps k of weight[k] cotangent[s + k], from the history's first input to the last.

    The last ones are the history that is handed on, whose cotangent is added before rounding.
    """
    batch = tl.program_id(0).to(tl.int64)
    place = tl.program_id(1) * STEPS + tl.arange(0, STEPS)[:, None]
    channel = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)[None, :]
    length = steps + taps - 1
    inside = (place < length) & (channel < channels)
    kept = kept_cotangent + (batch * (taps - 1) + place - steps) * channels + channel
    total = tl.load(kept, inside & (place >= steps), other=0.0).to(tl.float32)
    for tap in range(0, taps):
        w = tl.load(weight + tap * channels + channel, channel < channels, other=0.0)
        time = place - (taps - 1) + tap
        g = tl.load(
            cotangent + (batch * steps + time) * channels + channel,
            inside & (time >= 0) & (time < steps), other=0.0,
        )  # fmt: skip
        total += w.to(tl.float32) * g.to(tl.float32)
    at = (batch * length + place) * channels + channel
    tl.store(slopes + at, total.to(slopes.dtype.element_ty), inside)


@kernel
def conv_backward_weight(
    x: tensor, history: tensor, cotangent: tensor, shares: tensor, steps: tensor, channels: tensor,
    taps: tensor,
    HISTORY: tl.constexpr, STEPS: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """sum over t of cotangent[t] x[t - k] for one tap k of one sequence; for k = taps, of
    cotangent[t] alone, which is the bias's.
    """
    batch, tap = tl.program_id(0).to(tl.int64), tl.program_id(1)
    channel = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)[None, :]
    total = tl.full((STEPS, BLOCK), 0.0, tl.float32)
    for start in range(0, steps, STEPS):
        time = start + tl.arange(0, STEPS)[:, None]
        inside = (time < steps) & (channel < channels)
        at = (batch * steps + time) * channels + channel
        g = tl.load(cotangent + at, inside, other=0.0).to(tl.float32)
        seen = _past(
            x, history, batch, time - tap, channel, inside, steps, channels, taps - 1, HISTORY
        )
        total += g * tl.where(tap < taps, seen, 1.0)
    share = (batch * (taps + 1) + tap) * channels + tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    kept = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK) < channels
    tl.store(shares + share, row_total(total, 0), kept)


def tiles(steps: int, channels: int) -> tuple[int, int]:
    """Steps and channels of a tile.

    >>> tiles(1000, 2048), tiles(1, 3)
    ((32, 64), (1, 4))
    """
    return min(power_of_two(steps), STEPS), min(power_of_two(channels), CHANNELS)


def _after(x: Tensor, history: Tensor | None, past: int) -> Tensor:
    """The last ``past`` inputs, of which a short chunk leaves some to the history before it."""
    steps = x.shape[1]
    if steps >= past:
        return x[:, steps - past :].clone()
    before = x.new_zeros(x.shape[0], past, x.shape[2]) if history is None else history
    return torch.cat([before[:, steps:], x], 1)


class _CausalConv(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, history: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        (batch, steps, channels), taps = x.shape, weight.shape[0]
        plain, w = (readable(t).contiguous() for t in (x, weight))
        extra = [plain if t is None else readable(t).contiguous() for t in (bias, history)]
        out = output(x.shape, x)
        rows, block = tiles(steps, channels)
        conv_forward[(batch, blocks(steps, rows), blocks(channels, block))](
            plain, w, *extra, out, steps, channels, taps,
            BIAS=bias is not None, HISTORY=history is not None,
            STEPS=rows, BLOCK=block, num_warps=4,
        )  # fmt: skip
        ctx.save_for_backward(x, weight, bias, history)
        return stored(out, x), _after(x, history, taps - 1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, cotangent: Tensor, kept_cotangent: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        x, weight, bias, history = ctx.saved_tensors
        (batch, steps, channels), taps = x.shape, weight.shape[0]
        arrays = (x, weight, cotangent, kept_cotangent)
        plain, w, g, kept = (readable(t).contiguous() for t in arrays)
        past = plain if history is None else readable(history).contiguous()
        length = steps + taps - 1
        slopes = output((batch, length, channels), x)
        rows, block = tiles(length, channels)
        columns = blocks(channels, block)
        conv_backward_inputs[(batch, blocks(length, rows), columns)](
            g, w, kept, slopes, steps, channels, taps, STEPS=rows, BLOCK=block, num_warps=4
        )
        shares = torch.empty((batch, taps + 1, channels), dtype=torch.float32, device=x.device)
        rows, block = tiles(steps, channels)
        conv_backward_weight[(batch, taps + 1, columns)](
            plain, past, g, shares, steps, channels, taps,
            HISTORY=history is not None, STEPS=rows, BLOCK=block, num_warps=4,
        )  # fmt: skip
        slopes, sums = stored(slopes, x), shares.sum(0)
        return (
            slopes[:, taps - 1 :],
            stored(sums[:taps], weight),
            None if bias is None else stored(sums[taps], bias),
            None if history is None else slopes[:, : taps - 1],
        )


def causal_conv1d(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, history: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Outputs [B, T, E], and the history from which the next chunk continues.

    x [B, T, E]; weight [K, E], tap 0 weighs the current input; bias [E]; history [B, K-1, E], the
    inputs before x, the oldest first (None: zeros).
    """
    return _CausalConv.apply(x, weight, bias, history)  # type: ignore[no-untyped-call]
