"""Faults of scale, tiles, heads and single values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from assay.zoo.sound import Array, Rules, TiledAttention, declared


class ScaleIgnored(TiledAttention):
    """1/sqrt(D) whatever scale is given."""

    contract = declared("zoo.scale-ignored")

    def factor(self, q: Array, rules: Rules) -> Any:
        """The default scale."""
        return super().factor(q, replace(rules, scale=None))


class ScaleOnePercentOff(TiledAttention):
    """Scores are 1 % too large."""

    contract = declared("zoo.scale-1-percent-off")

    def factor(self, q: Array, rules: Rules) -> Any:
        """Nearly the scale."""
        return super().factor(q, rules) * self.compute(1.01)


class ScaleMagnitude(TiledAttention):
    """A negative scale loses its sign, as where its square root is multiplied into q and k.

    https://github.com/pytorch/pytorch/pull/105202
    """

    contract = declared("zoo.scale-magnitude")

    def factor(self, q: Array, rules: Rules) -> Any:
        """Its magnitude."""
        return abs(super().factor(q, rules))


class RaggedTileDropped(TiledAttention):
    """Keys after the last full tile are never read. Shows where there are more than 16 keys and no
    multiple of 16.

    https://github.com/pytorch/pytorch/issues/191937
    """

    contract = declared("zoo.ragged-tile-dropped")

    def tiles(self, keys: int) -> list[slice]:
        """Full tiles only."""
        return super().tiles(keys)[: max(1, keys // self.block)]


class HeadsModulo(TiledAttention):
    """Query head h reads key/value head h % Hkv. Shows where 1 < Hkv < H.

    https://github.com/onnx/onnx/pull/7274
    """

    contract = declared("zoo.heads-modulo")

    def per_query_head(self, x: Array, heads: int) -> Array:
        """Tiled instead of repeated."""
        return x[:, np.arange(heads) % x.shape[1]]


class OneElement(TiledAttention):
    """One element in the middle of the output is 5 % too large."""

    contract = declared("zoo.one-element")

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """One wrong lane."""
        out = super().forward(q, k, v, rules)
        if out.size:
            out.flat[out.size // 2] *= 1.05
        return out


class ShortExponential(TiledAttention):
    """The exponential is right to five digits, where 2 ulps are declared."""

    contract = declared("zoo.short-exponential")

    def exp(self, x: Array) -> Array:
        """Good to five digits."""
        return super().exp(x) * (1 + np.where(np.isneginf(x), 0, 1e-5 * np.sin(7 * x))).astype(
            x.dtype
        )


class WeightsExceedOne(TiledAttention):
    """The sum of weights starts at -0.1, as after a stale accumulator: outputs leave the range of
    the values.
    """

    contract = declared("zoo.weights-exceed-one")

    def finish(self, total: Array, mass: Array) -> Array:
        """Divided by too little."""
        return super().finish(total, np.where(mass > 0, mass - self.compute(0.1), mass))


class ValuesClipped(TiledAttention):
    """Values beyond 1 are clipped, as by a saturating conversion."""

    contract = declared("zoo.values-clipped")

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """Saturated values."""
        return super().forward(q, k, np.clip(v, -1, 1), rules)
