"""Sound attention whose sums, scales and stores stand in other places, in numpy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from assay.zoo.controls.tiled import DTYPES
from assay.zoo.sound import Array, Rules, TiledAttention, declared


class WholeRows(TiledAttention):
    """Not tiled: all weights of a row, and then ``mixed`` sums the values under them."""

    contract = declared("zoo.whole-rows", dtypes=DTYPES, block_sizes=())

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """Two stages."""
        self.check(q, k, v, rules)
        values = self.per_query_head(v.astype(self.compute), q.shape[1])
        return self.mixed(self.weights(q, k, rules), values).astype(q.dtype)

    def mixed(self, p: Array, v: Array) -> Array:
        """Weights [B, H, L, S] and values [B, H, S, Dv] to [B, H, L, Dv]."""
        return p @ v


class PairwiseKeys(WholeRows):
    """Keys summed as a tree: neighbours first."""

    contract = declared("zoo.pairwise-keys", dtypes=DTYPES, block_sizes=())

    def mixed(self, p: Array, v: Array) -> Array:
        """Products [B, H, L, S, Dv], halved along S until one is left."""
        terms = p[..., None] * v[:, :, None]
        while terms.shape[3] > 1:
            rest = terms[..., terms.shape[3] - terms.shape[3] % 2 :, :]
            pairs = terms[..., : terms.shape[3] - rest.shape[3], :]
            terms = np.concatenate([pairs[..., ::2, :] + pairs[..., 1::2, :], rest], axis=3)
        return np.asarray(terms.sum(axis=3))


class CompensatedKeys(WholeRows):
    """Key by key, with the rounding error of every sum carried along (W. Kahan, 1965)."""

    contract = declared("zoo.compensated-keys", dtypes=DTYPES, block_sizes=())

    def mixed(self, p: Array, v: Array) -> Array:
        """Where a sum is not finite there is no error to carry."""
        total = np.zeros((*p.shape[:3], v.shape[3]), self.compute)
        lost = np.zeros_like(total)
        with np.errstate(invalid="ignore"):
            for j in range(p.shape[3]):
                term = p[..., j, None] * v[:, :, None, j] - lost
                new = total + term
                lost = np.where(np.isfinite(new), (new - total) - term, 0)
                total = new
        return total


class LoopsOfEinsum(WholeRows):
    """Products by the plain loops of einsum, without a library for matrices."""

    contract = declared("zoo.einsum-loops", dtypes=DTYPES, block_sizes=())

    def mixed(self, p: Array, v: Array) -> Array:
        """One sum for each output."""
        return np.asarray(np.einsum("bhls,bhsd->bhld", p, v))


class KeysByQueries(WholeRows):
    """The transposed product, with operands in Fortran order."""

    contract = declared("zoo.keys-by-queries", dtypes=DTYPES, block_sizes=())

    def mixed(self, p: Array, v: Array) -> Array:
        """(v^T p^T)^T."""
        left, right = (np.asfortranarray(x.swapaxes(2, 3)) for x in (v, p))
        return np.asarray((left @ right).swapaxes(2, 3))


class SplitWidth(WholeRows):
    """Scores as the sum of two halves of the width."""

    contract = declared("zoo.split-width", dtypes=DTYPES, block_sizes=())

    def scores(self, q: Array, k: Array, rules: Rules, tile: slice) -> Array:
        """Both halves scaled; the mask belongs to the first."""
        half, plain = q.shape[3] // 2, 1.0 / math.sqrt(max(q.shape[3], 1))
        scale = plain if rules.scale is None else rules.scale
        masked = Rules(mask=rules.mask, scale=scale)
        second = super().scores(q[..., half:], k[..., half:], Rules(scale=scale), tile)
        return super().scores(q[..., :half], k[..., :half], masked, tile) + second


class LogarithmOfMass(WholeRows):
    """Weights are exponentials already divided: the logarithm of the sum is subtracted.

    ``exp_ulps``: see ``LogarithmRows``.
    """

    contract = declared("zoo.logarithm-of-mass", dtypes=DTYPES, block_sizes=(), exp_ulps=64.0)

    def weights(self, q: Array, k: Array, rules: Rules) -> Array:
        """exp((x - top) - log(sum)); the distance from the top is exact where it matters."""
        x = np.where(self.visible(q, k, rules), self.scores(q, k, rules, slice(None)), -np.inf)
        away = x - self.shift(x.max(axis=-1, keepdims=True, initial=-np.inf))
        mass = self.exp(away).sum(axis=-1, keepdims=True)
        return self.exp(away - np.log(np.where(mass == 0, self.compute(1), mass)))


class Float16Stored(WholeRows):
    """Scores and weights are stored as float16 between the stages, sums are float32."""

    contract = declared(
        "zoo.float16-stored", dtypes=("float16",), intermediate="input", block_sizes=()
    )

    def scores(self, q: Array, k: Array, rules: Rules, tile: slice) -> Array:
        """Stored, and read again."""
        return in_half(super().scores(q, k, rules, tile))

    def weights(self, q: Array, k: Array, rules: Rules) -> Array:
        """Stored, and read again."""
        return in_half(super().weights(q, k, rules))


def in_half(x: Array) -> Array:
    """Rounded to float16."""
    with np.errstate(over="ignore"):
        return x.astype(np.float16).astype(np.float32)


class TwoPasses(TiledAttention):
    """Tiles of 16 keys twice: the maximum first, sums under it after."""

    contract = declared("zoo.two-passes", dtypes=DTYPES)

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """Nothing is ever scaled again."""
        self.check(q, k, v, rules)
        seen, tiles = self.visible(q, k, rules), self.tiles(k.shape[2])
        parts = [self.block_out(self.scores(q, k, rules, t), seen[..., t]) for t in tiles]
        top = np.full((*q.shape[:3], 1), -np.inf, self.compute)
        for x in parts:
            top = np.maximum(top, x.max(axis=-1, keepdims=True, initial=-np.inf))
        mass = np.zeros_like(top)
        total = np.zeros((*q.shape[:3], v.shape[3]), self.compute)
        for x, tile in zip(parts, tiles, strict=True):
            e = self.exp(x - self.shift(top))
            mass = mass + e.sum(axis=-1, keepdims=True)
            total = total + e @ self.per_query_head(v[:, :, tile].astype(self.compute), q.shape[1])
        return self.finish(total, mass).astype(q.dtype)


class ScaledQueries(TiledAttention):
    """Queries are scaled before the product."""

    contract = declared("zoo.scaled-queries", dtypes=DTYPES)

    def scores(self, q: Array, k: Array, rules: Rules, tile: slice) -> Array:
        """(scale q) k^T."""
        scaled = q.astype(self.compute) * self.factor(q, rules)
        return super().scores(scaled, k, Rules(mask=rules.mask, scale=1.0), tile)


class GroupedHeads(TiledAttention):
    """Query heads that share a key head become rows of one product; nothing is repeated."""

    contract = declared("zoo.grouped-heads", dtypes=DTYPES)

    def scores(self, q: Array, k: Array, rules: Rules, tile: slice) -> Array:
        """[B, Hkv, G L, D] times [B, Hkv, D, S]."""
        keys = k[:, :, tile].astype(self.compute)
        shape = (q.shape[0], k.shape[1], q.shape[1] // max(k.shape[1], 1) * q.shape[2], q.shape[3])
        rows = q.astype(self.compute).reshape(shape) @ keys.swapaxes(2, 3)
        x: Array = rows.reshape(*q.shape[:3], keys.shape[2]) * self.factor(q, rules)
        if rules.mask is None or rules.mask.dtype == bool:
            return x
        return x + rules.mask[..., tile].astype(self.compute)


class EmptyTilesSkipped(TiledAttention):
    """A tile that no query sees is not computed."""

    contract = declared("zoo.empty-tiles-skipped", dtypes=DTYPES)

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """Only keys of tiles that somebody sees are handed on."""
        self.check(q, k, v, rules)
        seen = self.visible(q, k, rules)
        tiles = [t for t in self.tiles(k.shape[2]) if seen[..., t].any()]
        chosen = np.array([j for t in tiles for j in range(t.start, t.stop)], dtype=np.int64)
        part = Rules(mask=_folded(seen, rules, self.compute)[..., chosen], scale=rules.scale)
        return super().forward(q, k[:, :, chosen], v[:, :, chosen], part)


def _folded(seen: Array, rules: Rules, compute: Any) -> Array:
    """All that blocks as one mask; an additive one keeps its numbers."""
    if rules.mask is None or rules.mask.dtype == bool:
        return seen
    return np.where(seen, rules.mask.astype(compute), compute(-np.inf))
