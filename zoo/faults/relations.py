"""Faults that show between two calls: in another batch, order, length or mode."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from assay.zoo.sound import Array, Rules, TiledAttention, declared


class MaskOfFirstSequence(TiledAttention):
    """All sequences of a batch get the mask of the first.

    https://github.com/pytorch/pytorch/issues/139462
    """

    contract = declared("zoo.mask-of-first-sequence")

    def visible(self, q: Array, k: Array, rules: Rules) -> Array:
        """Stride 0 along the batch."""
        seen = super().visible(q, k, rules)
        return np.broadcast_to(seen[:1], seen.shape)


class KeysOfFirstSequence(TiledAttention):
    """All sequences of a batch attend to the keys of the first."""

    contract = declared("zoo.keys-of-first-sequence")

    def scores(self, q: Array, k: Array, rules: Rules, tile: slice) -> Array:
        """Stride 0 along the batch."""
        return super().scores(q, np.broadcast_to(k[:1], k.shape), rules, tile)


class FirstHeadScale(TiledAttention):
    """The first of several heads has twice the scale."""

    contract = declared("zoo.first-head-scale")

    def scores(self, q: Array, k: Array, rules: Rules, tile: slice) -> Array:
        """One head apart."""
        x = super().scores(q, k, rules, tile)
        first = np.arange(x.shape[1])[:, None, None] == 0
        return np.where(first & (x.shape[1] > 1), 2 * x, x)


class PositionBias(TiledAttention):
    """Scores fall with the position of the key, as with a positional bias that nobody asked for."""

    contract = declared("zoo.position-bias")

    def scores(self, q: Array, k: Array, rules: Rules, tile: slice) -> Array:
        """A slope along the keys."""
        slope = np.arange(k.shape[2], dtype=self.compute)[tile] * self.compute(0.01)
        return super().scores(q, k, rules, tile) - slope


class RowBias(TiledAttention):
    """The first 4 queries look away from the first key."""

    contract = declared("zoo.row-bias")

    def scores(self, q: Array, k: Array, rules: Rules, tile: slice) -> Array:
        """Something for the first rows only."""
        x = super().scores(q, k, rules, tile).copy()
        if tile.start == 0:
            x[:, :, :4, :1] -= 1
        return x


class LengthScale(TiledAttention):
    """The scale depends on the number of keys, so that a prefix is not computed as in the whole."""

    contract = declared("zoo.length-scale")

    def scores(self, q: Array, k: Array, rules: Rules, tile: slice) -> Array:
        """Warmer for long sequences."""
        return super().scores(q, k, rules, tile) * self.compute(1 + k.shape[2] / 1000)


class EmptyTilePoison(TiledAttention):
    """A tile without visible key before the first visible one gives -inf - -inf.

    https://github.com/pytorch/pytorch/issues/127055
    """

    contract = declared("zoo.empty-tile-poison")

    def shift(self, top: Array) -> Array:
        """No guard."""
        return top


class ModesDisagree(TiledAttention):
    """Of two modes one leaves the causal mask out.

    https://github.com/pytorch/pytorch/issues/99282
    """

    contract = declared("zoo.modes-disagree", modes=("plain", "fast"))

    def visible(self, q: Array, k: Array, rules: Rules) -> Array:
        """The fast path forgets."""
        return super().visible(q, k, replace(rules, causal=False) if self.mode == "fast" else rules)
