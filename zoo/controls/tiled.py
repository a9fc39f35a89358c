"""Sound attention in other orders of summation and with other exponentials, in numpy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from assay.zoo.sound import Array, Rules, TiledAttention, declared

DTYPES = ("float32", "bfloat16", "float16")
Partial = tuple[Array, Array, Array]


class Tiles16(TiledAttention):
    """The kernel that faults are planted in."""

    contract = declared("zoo.tiles-16", dtypes=DTYPES)


class Tiles64(TiledAttention):
    """Tiles of 64 keys."""

    contract = declared("zoo.tiles-64", dtypes=DTYPES, block_sizes=(64,))
    block = 64


class Backwards(TiledAttention):
    """Keys from the last to the first."""

    contract = declared("zoo.backwards", dtypes=DTYPES)

    def tiles(self, keys: int) -> list[slice]:
        """Slices of step -1."""
        ends = range(keys - 1, -1, -self.block)
        return [slice(i, i - self.block if i >= self.block else None, -1) for i in ends]


class SplitKeys(TiledAttention):
    """Each tile for itself, then merged two by two, as split-K decoding does."""

    contract = declared("zoo.split-keys", dtypes=DTYPES)

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """A tree of merges."""
        self.check(q, k, v, rules)
        parts = [self.partial(q, k, v, rules, tile) for tile in self.tiles(k.shape[2])]
        while len(parts) > 1:
            pairs = [self.merge(a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)]
            parts = pairs + parts[len(parts) - len(parts) % 2 :]
        if not parts:
            return np.zeros((*q.shape[:3], v.shape[3]), q.dtype)
        _, mass, total = parts[0]
        return self.finish(total, mass).astype(q.dtype)

    def partial(self, q: Array, k: Array, v: Array, rules: Rules, tile: slice) -> Partial:
        """Maximum, sum and weighted values of one tile."""
        seen = self.visible(q, k, rules)[..., tile]
        x = self.block_out(self.scores(q, k, rules, tile), seen)
        top = x.max(axis=-1, keepdims=True, initial=-np.inf)
        e = self.exp(x - self.shift(top))
        values = self.per_query_head(v[:, :, tile].astype(self.compute), q.shape[1])
        return top, e.sum(axis=-1, keepdims=True), e @ values

    def merge(self, a: Partial, b: Partial) -> Partial:
        """Both under their common maximum."""
        top = np.maximum(a[0], b[0])
        left, right = (self.exp(part[0] - self.shift(top)) for part in (a, b))
        return top, a[1] * left + b[1] * right, a[2] * left + b[2] * right


class BaseTwo(TiledAttention):
    """Scores in units of log 2, and exp2."""

    contract = declared("zoo.base-two", dtypes=DTYPES, exponential="exp2")

    def scores(self, q: Array, k: Array, rules: Rules, tile: slice) -> Array:
        """Multiplied by log2(e)."""
        return super().scores(q, k, rules, tile) * self.compute(np.log2(np.e))

    def exp(self, x: Array) -> Array:
        """A power of two."""
        return np.exp2(x)

    def weights(self, q: Array, k: Array, rules: Rules) -> Array:
        """The backward pass uses the same exponential."""
        x = np.where(self.visible(q, k, rules), self.scores(q, k, rules, slice(None)), -np.inf)
        e = self.exp(x - self.shift(x.max(axis=-1, keepdims=True, initial=-np.inf)))
        mass = e.sum(axis=-1, keepdims=True)
        return e / np.where(mass == 0, 1, mass)


class DoublePrecision(TiledAttention):
    """All sums and products in float64, rounded once at the end."""

    contract = declared("zoo.double", dtypes=DTYPES, accumulate="float64")
    compute: type[np.floating[Any]] = np.float64


class QueryChunks(TiledAttention):
    """Seven queries at a time."""

    contract = declared("zoo.query-chunks", dtypes=DTYPES)

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """Each chunk at its offset, with its rows of the mask."""
        out = np.zeros((*q.shape[:3], v.shape[3]), q.dtype)
        for start in range(0, max(q.shape[2], 1), 7):
            mask = rules.mask
            if mask is not None and mask.shape[-2] > 1:
                mask = mask[..., start : start + 7, :]
            offset = rules.offset + start
            part = Rules(mask, rules.causal, offset, rules.window, rules.scale)
            out[:, :, start : start + 7] = super().forward(q[:, :, start : start + 7], k, v, part)
        return out


class Bfloat16Stored(TiledAttention):
    """Not fused: scores and weights are stored as bfloat16 between the stages, sums are float32."""

    contract = declared("zoo.bfloat16-stored", dtypes=("bfloat16",), intermediate="input")

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """Three kernels."""
        self.check(q, k, v, rules)
        values = self.per_query_head(v.astype(self.compute), q.shape[1])
        return (self.weights(q, k, rules) @ values).astype(q.dtype)

    def scores(self, q: Array, k: Array, rules: Rules, tile: slice) -> Array:
        """Stored, and read again."""
        return stored(super().scores(q, k, rules, tile))

    def weights(self, q: Array, k: Array, rules: Rules) -> Array:
        """Stored, and read again."""
        return stored(super().weights(q, k, rules))


def stored(x: Array) -> Array:
    """Rounded to bfloat16."""
    return x.astype(ml_dtypes.bfloat16).astype(np.float32)
