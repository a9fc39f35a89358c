"""A sound kernel to plant faults in: attention by tiles of keys with a running maximum, and masked
softmax.

Every stage is a method of its own, so that a fault is a changed stage of an otherwise real kernel.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from assay.impl.backends.shapes import check_attention, check_softmax
from assay.impl.contract import Contract
from assay.impl.numpy_backend import NumpyBackend
from assay.impl.protocol import implements, implements_vjp

Array = np.ndarray
Window = tuple[int | None, int | None]


@dataclass(frozen=True)
class Rules:
    """The optional input and the attributes of one call, as the op defines them."""

    mask: Array | None = None
    causal: bool = False
    offset: int = 0
    window: Window | None = None
    scale: float | None = None


def declared(name: str, **promises: Any) -> Contract:
    """The contract of ``TiledAttention`` under another name, with what differs."""
    common: dict[str, Any] = {
        "provider": "zoo",
        "block_sizes": (16,),
        "grouped_heads": True,
        "value_width": True,
        "blocked_nonfinite": "propagates",
    }
    return Contract(name, **{**common, **promises})


class TiledAttention(NumpyBackend):
    """Attention over tiles of 16 keys. ``blocked_nonfinite`` propagates: 0 times NaN is NaN in the
    products.

    compute  dtype of sums and products;  block: keys a tile
    """

    contract = declared("zoo.tiled")
    compute: type[np.floating[Any]] = np.float32
    block = 16

    @implements("attention")
    def attention(
        self,
        q: Array,
        k: Array,
        v: Array,
        *,
        mask: Array | None = None,
        causal: bool = False,
        offset: int = 0,
        window: Window | None = None,
        scale: float | None = None,
    ) -> Array:
        """Output [B, H, L, Dv] in the dtype of ``q``."""
        return self.forward(q, k, v, Rules(mask, causal, offset, window, scale))

    @implements_vjp("attention")
    def attention_vjp(
        self,
        q: Array,
        k: Array,
        v: Array,
        *,
        out: Array,
        mask: Array | None = None,
        causal: bool = False,
        offset: int = 0,
        window: Window | None = None,
        scale: float | None = None,
    ) -> dict[str, Array]:
        """``out`` is the cotangent of the output."""
        return self.backward(q, k, v, out, Rules(mask, causal, offset, window, scale))

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """Running maximum ``top``, sum ``mass`` and weighted values ``total``, tile by tile."""
        self.check(q, k, v, rules)
        seen = self.visible(q, k, rules)
        shape = (*q.shape[:3], 1)
        top = np.full(shape, -np.inf, self.compute)
        mass = np.zeros(shape, self.compute)
        total = np.zeros((*q.shape[:3], v.shape[3]), self.compute)
        for tile in self.tiles(k.shape[2]):
            x = self.block_out(self.scores(q, k, rules, tile), seen[..., tile])
            new = np.maximum(top, x.max(axis=-1, keepdims=True, initial=-np.inf))
            shift = self.shift(new)
            e, decay = self.exp(x - shift), self.exp(top - shift)
            values = self.per_query_head(v[:, :, tile].astype(self.compute), q.shape[1])
            mass = mass * decay + e.sum(axis=-1, keepdims=True)
            total = total * decay + e @ values
            top = new
        return self.finish(total, mass).astype(q.dtype)

    def backward(self, q: Array, k: Array, v: Array, out: Array, rules: Rules) -> dict[str, Array]:
        """Gradients from weights that are computed again."""
        p, g = self.weights(q, k, rules), out.astype(self.compute)
        keys, values = (self.per_query_head(x.astype(self.compute), q.shape[1]) for x in (k, v))
        dp = g @ values.swapaxes(2, 3)
        ds = p * (dp - (p * dp).sum(axis=-1, keepdims=True)) * self.factor(q, rules)
        dq = ds @ keys
        dk = self.per_key_head(ds.swapaxes(2, 3) @ q.astype(self.compute), k.shape[1])
        dv = self.per_key_head(p.swapaxes(2, 3) @ g, k.shape[1])
        return {"q": dq.astype(q.dtype), "k": dk.astype(k.dtype), "v": dv.astype(v.dtype)}

    def weights(self, q: Array, k: Array, rules: Rules) -> Array:
        """All weights at once [B, H, L, S]."""
        x = self.scores(q, k, rules, slice(None))
        return row_softmax(np.where(self.visible(q, k, rules), x, -np.inf))

    def check(self, q: Array, k: Array, v: Array, rules: Rules) -> None:
        """Refuse shapes that do not fit together."""
        check_attention(q, k, v, rules.mask)

    def visible(self, q: Array, k: Array, rules: Rules) -> Array:
        """Which key each query may see, [B, H, L, S]."""
        ahead = np.arange(k.shape[2]) - np.arange(q.shape[2])[:, None] - rules.offset
        left, right = rules.window or (None, None)
        seen = np.ones(ahead.shape, dtype=bool)
        if rules.causal:
            seen = seen & (ahead <= 0)
        if left is not None:
            seen = seen & (ahead >= -left)
        if right is not None:
            seen = seen & (ahead <= right)
        if rules.mask is not None:
            seen = seen & self.permits(rules.mask)
        return np.broadcast_to(seen, (*q.shape[:3], k.shape[2]))

    def permits(self, mask: Array) -> Array:
        """Where the mask allows, in the mask's shape."""
        return mask if mask.dtype == bool else np.asarray(mask != -np.inf)

    def factor(self, q: Array, rules: Rules) -> Any:
        """What scores are multiplied by."""
        plain = 1.0 / math.sqrt(max(q.shape[3], 1))
        return self.compute(plain if rules.scale is None else rules.scale)

    def tiles(self, keys: int) -> list[slice]:
        """Stretches of the key axis."""
        return [slice(i, min(i + self.block, keys)) for i in range(0, keys, self.block)]

    def scores(self, q: Array, k: Array, rules: Rules, tile: slice) -> Array:
        """Scaled scores of one tile of keys, with an additive mask added."""
        keys = self.per_query_head(k[:, :, tile].astype(self.compute), q.shape[1])
        x = q.astype(self.compute) @ keys.swapaxes(2, 3) * self.factor(q, rules)
        if rules.mask is None or rules.mask.dtype == bool:
            return x
        return x + rules.mask[..., tile].astype(self.compute)

    def block_out(self, x: Array, seen: Array) -> Array:
        """Scores with the blocked ones removed."""
        return np.where(seen, x, -np.inf)

    def shift(self, top: Array) -> Array:
        """What is subtracted before the exponential: nothing until a key was seen."""
        return np.where(np.isneginf(top), 0, top)

    def exp(self, x: Array) -> Array:
        """The exponential."""
        return np.exp(x)

    def finish(self, total: Array, mass: Array) -> Array:
        """The quotient; rows that saw nothing are zero."""
        return total / np.where(mass == 0, 1, mass)

    def per_query_head(self, x: Array, heads: int) -> Array:
        """Key/value heads repeated for the query heads that share them."""
        return x if x.shape[1] == heads else np.repeat(x, heads // x.shape[1], axis=1)

    def per_key_head(self, x: Array, groups: int) -> Array:
        """Gradients summed over the query heads that share a key/value head."""
        return x.reshape(x.shape[0], groups, -1, *x.shape[2:]).sum(axis=2) if groups else x


class RowSoftmax(NumpyBackend):
    """Masked softmax of whole rows in float32."""

    contract = declared("zoo.softmax", block_sizes=(), blocked_nonfinite="isolates")

    @implements("masked_softmax")
    def masked_softmax(self, scores: Array, *, mask: Array | None = None) -> Array:
        """Weights in the shape and dtype of ``scores`` [..., S]."""
        check_softmax(scores, mask)
        return self.forward(scores, mask).astype(scores.dtype)

    @implements_vjp("masked_softmax")
    def masked_softmax_vjp(
        self, scores: Array, *, weights: Array, mask: Array | None = None
    ) -> dict[str, Array]:
        """``weights`` is the cotangent of the output."""
        p = self.forward(scores, mask)
        slopes = self.backward(p, weights, allowed(scores, mask))
        return {"scores": slopes.astype(scores.dtype)}

    def forward(self, scores: Array, mask: Array | None) -> Array:
        """Blocked scores removed, then the softmax."""
        return row_softmax(np.where(allowed(scores, mask), scores, -np.inf))

    def backward(self, p: Array, g: Array, seen: Array) -> Array:
        """p (g - <p, g>); the cotangent at blocked entries is never used."""
        g = np.where(seen, g, 0)
        return p * (g - (p * g).sum(axis=-1, keepdims=True))


def allowed(scores: Array, mask: Array | None) -> Array:
    """The mask in the shape of the scores."""
    return np.broadcast_to(True if mask is None else mask, scores.shape)


def row_softmax(x: Array) -> Array:
    """Softmax over the last axis, in the dtype of ``x``; a row of -inf gives zeros."""
    top = x.max(axis=-1, keepdims=True, initial=-np.inf)
    e = np.exp(x - np.where(np.isneginf(top), x.dtype.type(0), top))
    mass = e.sum(axis=-1, keepdims=True)
    return e / np.where(mass == 0, x.dtype.type(1), mass)
