"""Sound scans in chunks and as trees, and sound convolutions along time, in numpy."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from assay.impl.protocol import implements
from assay.zoo.sound_sequences import Array, LoopScans, along_steps, fits


class ChunkedScans(LoopScans):
    """Chunks of 8 steps from zero, all at once; then what flows from each into the next."""

    contract = along_steps("zoo.scans-chunked", block_sizes=(8,))

    def scan(self, a: Array, v: Array, start: Array) -> Array:
        """Within a chunk the states and the products of factors, step by step."""
        a, outs, h = np.broadcast_to(a, v.shape), [], start
        for begin in range(0, v.shape[1], 8):
            part, added = a[:, begin : begin + 8], v[:, begin : begin + 8]
            local = super().scan(part, added, np.zeros_like(start))
            outs.append(local + np.cumprod(part, axis=1) * h[:, None])
            h = outs[-1][:, -1]
        return np.concatenate(outs, axis=1) if outs else np.zeros(v.shape, v.dtype)


class SweptScans(LoopScans):
    """Up a balanced tree of maps and down again (G. Blelloch, 1990)."""

    contract = along_steps("zoo.scans-swept")

    def scan(self, a: Array, v: Array, start: Array) -> Array:
        """Filled up with maps that change nothing; each step then sees all maps before it."""
        steps = v.shape[1]
        if not steps:
            return np.zeros(v.shape, v.dtype)
        size = 1 << (steps - 1).bit_length()
        wide = (v.shape[0], size, *v.shape[2:])
        factors, added = np.ones(wide, v.dtype), np.zeros(wide, v.dtype)
        factors[:, :steps], added[:, :steps] = a, v
        before_a, before_v = _swept(factors, added)
        h = before_a * start[:, None] + before_v
        return np.asarray(a * h[:, :steps] + v)


def _swept(a: Array, v: Array) -> tuple[Array, Array]:
    """For each step the composition of all maps before it."""
    if a.shape[1] == 1:
        return np.ones_like(a), np.zeros_like(v)
    (first_a, first_v), (second_a, second_v) = ((a[:, i::2], v[:, i::2]) for i in (0, 1))
    upper_a, upper_v = _swept(second_a * first_a, second_a * first_v + second_v)
    outs = np.empty_like(a), np.empty_like(v)
    outs[0][:, ::2], outs[1][:, ::2] = upper_a, upper_v
    outs[0][:, 1::2], outs[1][:, 1::2] = first_a * upper_a, first_a * upper_v + first_v
    return outs


class HalvedScans(LoopScans):
    """The first half, then the second half from where it ended."""

    contract = along_steps("zoo.scans-halved")

    def scan(self, a: Array, v: Array, start: Array) -> Array:
        """By recursion; the second half runs from zero and is moved."""
        steps = v.shape[1]
        if steps < 2:
            return np.asarray(a * start[:, None] + v)
        a, half = np.broadcast_to(a, v.shape), steps // 2
        first = self.scan(a[:, :half], v[:, :half], start)
        second = self.scan(a[:, half:], v[:, half:], np.zeros_like(start))
        moved = second + np.cumprod(a[:, half:], axis=1) * first[:, -1:]
        return np.concatenate([first, moved], axis=1)


class WideScans(LoopScans):
    """States are kept in float64 and rounded where they are handed back."""

    contract = along_steps("zoo.scans-double")

    def scan(self, a: Array, v: Array, start: Array) -> Array:
        """Step by step."""
        wide = (x.astype(np.float64) for x in (a, v, start))
        return super().scan(*wide).astype(v.dtype)


class TimeFirst(LoopScans):
    """Time is the slow axis in memory."""

    contract = along_steps("zoo.scans-time-first")

    def scan(self, a: Array, v: Array, start: Array) -> Array:
        """States are made [T, B, ...]."""
        turned = np.ascontiguousarray(np.moveaxis(np.broadcast_to(a, v.shape), 1, 0))
        states, h = [], start
        for factor, added in zip(turned, np.moveaxis(v, 1, 0), strict=True):
            h = factor * h + added
            states.append(h)
        return np.moveaxis(np.array(states), 0, 1) if states else np.zeros(v.shape, v.dtype)


class WindowedConvolution(LoopScans):
    """The causal convolution as one product of windows with turned taps."""

    contract = along_steps("zoo.causal-windows")

    @implements("causal_conv1d")
    def causal_conv1d(
        self,
        x: Array,
        weight: Array,
        *,
        bias: Array | None = None,
        history: Array | None = None,
    ) -> tuple[Array, Array]:
        """Outputs [B, T, E] and the inputs that later taps still see."""
        (batch, steps, channels), taps = x.shape, weight.shape[0]
        past = (batch, taps - 1, channels)
        fits(weight=(weight, (taps, channels)), bias=(bias, (channels,)), history=(history, past))
        seen = np.concatenate([np.zeros(past, x.dtype) if history is None else history, x], axis=1)
        y = np.zeros_like(x)
        if steps:
            windows = sliding_window_view(seen, taps, axis=1)
            y = np.einsum("btek,ke->bte", windows, weight[::-1])
        return y if bias is None else y + bias, seen[:, steps:].copy()
