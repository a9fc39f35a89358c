"""Faults of attention and softmax in corners: two conditions at once, lengths, gradients only."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np

from assay.zoo.sound import Array, RowSoftmax, Rules, TiledAttention, allowed, declared, row_softmax


class MaskBeforeScale(TiledAttention):
    """Blocked scores are set to -inf before they are scaled: a negative scale makes them +inf.
    Shows with a mask and a negative scale.

    https://github.com/NVIDIA/cudnn-frontend/pull/804
    """

    contract = declared("zoo.corner-mask-before-scale")

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """Infinity over infinity in rows of which something is blocked."""
        out = super().forward(q, k, v, rules)
        if rules.mask is not None and rules.scale is not None and rules.scale < 0:
            blocked = ~np.broadcast_to(self.permits(rules.mask), (*q.shape[:3], k.shape[2]))
            out[blocked.any(axis=-1)] = np.nan
        return out


class ZeroScaleIgnored(TiledAttention):
    """A scale of 0 is taken for none: ``scale or default``."""

    contract = declared("zoo.corner-zero-scale-ignored")

    def factor(self, q: Array, rules: Rules) -> Any:
        """0 is false."""
        return super().factor(q, replace(rules, scale=rules.scale or None))


class FirstBlockStatistics(TiledAttention):
    """The backward pass normalises every block of 16 queries by what it kept of the first block.
    Shows with more than 16 queries.

    https://github.com/Dao-AILab/flash-attention/commit/b3f1b6a5
    """

    contract = declared("zoo.corner-first-block-statistics")

    def weights(self, q: Array, k: Array, rules: Rules) -> Array:
        """The loop's index stands still."""
        seen = self.visible(q, k, rules)
        x = np.where(seen, self.scores(q, k, rules, slice(None)), -np.inf)
        if q.shape[2] <= 16 or not k.shape[2]:
            return row_softmax(x)
        top = x.max(axis=-1, keepdims=True)
        mass = np.exp(x - np.where(np.isneginf(top), 0, top)).sum(axis=-1, keepdims=True)
        kept = np.where(mass > 0, top + np.log(np.maximum(mass, 1e-30)), 0)
        return np.exp(x - kept[:, :, np.arange(q.shape[2]) % 16])


class TransposedWhenSquare(TiledAttention):
    """The backward pass turns the weights once more where that fits: L = S.

    https://github.com/huggingface/diffusers/issues/14338
    """

    contract = declared("zoo.corner-transposed-when-square")

    def weights(self, q: Array, k: Array, rules: Rules) -> Array:
        """Saved in the kernel's layout already."""
        p = super().weights(q, k, rules)
        return p.swapaxes(2, 3) if q.shape[2] == k.shape[2] else p


class GroupGradientOfFirst(TiledAttention):
    """Of the query heads that share a key/value head the first alone passes a gradient on. Shows
    with grouped heads.
    """

    contract = declared("zoo.corner-group-gradient-of-first")

    def per_key_head(self, x: Array, groups: int) -> Array:
        """Not a sum."""
        return x.reshape(x.shape[0], groups, -1, *x.shape[2:])[:, :, 0] if groups else x


class MaskHeadsByGroup(TiledAttention):
    """A mask of all query heads is read in the order of another layout of groups. Shows with
    grouped heads and a mask that differs between heads.

    https://github.com/pytorch/pytorch/issues/97409
    """

    contract = declared("zoo.corner-mask-heads-by-group")

    def visible(self, q: Array, k: Array, rules: Rules) -> Array:
        """Transposed groups."""
        mask, heads, groups = rules.mask, q.shape[1], k.shape[1]
        if mask is not None and mask.ndim == 4 and mask.shape[1] == heads and 1 < groups < heads:
            order = np.arange(heads).reshape(groups, -1).T.ravel()
            rules = replace(rules, mask=mask[:, order])
        return super().visible(q, k, rules)


class WindowWiderWhenCausal(TiledAttention):
    """A window that is causal as well reaches one key further. Shows with both."""

    contract = declared("zoo.corner-window-wider-when-causal")

    def visible(self, q: Array, k: Array, rules: Rules) -> Array:
        """The query itself is not counted."""
        if rules.causal and rules.window is not None and rules.window[0] is not None:
            rules = replace(rules, window=(rules.window[0] + 1, rules.window[1]))
        return super().visible(q, k, rules)


class SingleQuerySeesAll(TiledAttention):
    """A single query is taken for a decoding step, which sees all keys. Shows with one causal query
    before later keys.

    https://github.com/flashinfer-ai/flashinfer/pull/1675
    """

    contract = declared("zoo.corner-single-query-sees-all")

    def visible(self, q: Array, k: Array, rules: Rules) -> Array:
        """The fast path for L = 1."""
        return super().visible(q, k, replace(rules, causal=rules.causal and q.shape[2] > 1))


class ShortOffset(TiledAttention):
    """The offset of a chunk has five bits. Shows from offset 32 on, with causal masks.

    https://github.com/pytorch/pytorch/issues/84144
    """

    contract = declared("zoo.corner-short-offset")

    def visible(self, q: Array, k: Array, rules: Rules) -> Array:
        """Modulo 32, in place of 2^32."""
        return super().visible(q, k, replace(rules, offset=rules.offset % 32))


class BroadcastTail(TiledAttention):
    """Of a mask that all queries share the last key is read a place too early, where it stands
    alone in a tile: S % 16 = 1.

    https://github.com/pytorch/pytorch/issues/191937
    """

    contract = declared("zoo.corner-broadcast-tail")

    def permits(self, mask: Array) -> Array:
        """Stride 0 along the queries, and a tail."""
        seen = super().permits(mask)
        keys = seen.shape[-1]
        if seen.shape[-2] == 1 and keys > 16 and keys % 16 == 1:
            seen = np.concatenate([seen[..., :-1], seen[..., -2:-1]], axis=-1)
        return seen


class MaskWrapsAtSixtyFour(TiledAttention):
    """Entries of a mask beyond 64 keys are those of its beginning. Shows with a mask and more than
    64 keys.

    https://github.com/microsoft/onnxruntime/issues/32299
    """

    contract = declared("zoo.corner-mask-wraps")

    def permits(self, mask: Array) -> Array:
        """An index of six bits."""
        seen = super().permits(mask)
        return np.asarray(seen[..., np.arange(seen.shape[-1]) % 64])


class PenaltyTakenForBlock(TiledAttention):
    """Additive masks below -100 are taken to block. Shows in rows that have nothing better."""

    contract = declared("zoo.corner-penalty-taken-for-block")

    def permits(self, mask: Array) -> Array:
        """A finite number for -inf."""
        return mask if mask.dtype == bool else np.asarray(mask > -100)


class LastElement(TiledAttention):
    """The last element of the output is 1 % too large."""

    contract = declared("zoo.corner-last-element")

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """One lane of the last head."""
        out = super().forward(q, k, v, rules)
        if out.size:
            out.flat[-1] *= 1.01
        return out


class ElementOfLongRow(TiledAttention):
    """Beyond 16 queries the first value of row 16 is 1 % too large."""

    contract = declared("zoo.corner-element-of-long-row")

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """The seam of two tiles."""
        out = super().forward(q, k, v, rules)
        if q.shape[2] > 16 and v.shape[3]:
            out[..., 16, 0] *= 1.01
        return out


class WeightsInInputFormat(TiledAttention):
    """Where there is a mask, weights of bfloat16 inputs are stored in bfloat16, and float32 is
    declared.

    https://github.com/pytorch/pytorch/issues/163588
    """

    contract = declared("zoo.corner-weights-in-input-format", dtypes=("float32", "bfloat16"))
    narrow = False

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """Partial blocks change the precision."""
        self.narrow = q.dtype == ml_dtypes.bfloat16 and rules.mask is not None
        return super().forward(q, k, v, rules)

    def exp(self, x: Array) -> Array:
        """Rounded to 8 bits."""
        e = super().exp(x)
        return e.astype(ml_dtypes.bfloat16).astype(e.dtype) if self.narrow else e


class ProductsOverflow(TiledAttention):
    """Products of float16 inputs are infinite beyond 65504 before they are scaled, and float32 is
    declared.

    https://github.com/pytorch/pytorch/issues/110213
    """

    contract = declared("zoo.corner-products-overflow", dtypes=("float32", "float16"))

    def scores(self, q: Array, k: Array, rules: Rules, tile: slice) -> Array:
        """Scaled too late."""
        x = super().scores(q, k, rules, tile)
        if q.dtype != np.float16:
            return x
        most = self.compute(65504) * abs(self.factor(q, rules))
        return np.where(np.abs(x) > most, np.copysign(np.inf, x), x).astype(x.dtype)


class PaddedLanesCount(RowSoftmax):
    """Rows are filled up to multiples of 8 with zeros, which count in the sum. Hidden where scores
    are large.

    https://github.com/vllm-project/vllm/pull/55009
    """

    contract = declared("zoo.corner-padded-lanes-count", block_sizes=(8,))

    def forward(self, scores: Array, mask: Array | None) -> Array:
        """exp(0 - maximum) for each lane beyond the end."""
        p = super().forward(scores, mask)
        x = np.where(allowed(scores, mask), scores, -np.inf)
        top = x.max(axis=-1, keepdims=True, initial=-np.inf)
        lanes = -scores.shape[-1] % 8
        share = np.exp(x - np.where(np.isneginf(top), 0, top)).sum(axis=-1, keepdims=True)
        more = lanes * np.exp(-np.maximum(top, -80))
        return np.asarray(p * (share / np.where(share == 0, 1, share + more)), p.dtype)


class GradientOfFirstBlock(RowSoftmax):
    """The mean of the gradient is taken over the first 16 entries. Shows in longer rows."""

    contract = declared("zoo.corner-softmax-gradient-of-first-block", block_sizes=(16,))

    def backward(self, p: Array, g: Array, seen: Array) -> Array:
        """One block of the reduction."""
        g = np.where(seen, g, 0)
        return p * (g - (p * g)[..., :16].sum(axis=-1, keepdims=True))


class EmptyRowGradientNan(RowSoftmax):
    """Rows that see nothing are right forward, and NaN in the gradient: where() after 0 / 0.

    https://github.com/Xilinx/brevitas/pull/1591
    """

    contract = declared("zoo.corner-softmax-empty-row-gradient", block_sizes=())

    def backward(self, p: Array, g: Array, seen: Array) -> Array:
        """0 times the slope of something undefined."""
        empty = ~seen.any(axis=-1, keepdims=True)
        return np.where(empty, np.asarray(np.nan, p.dtype), super().backward(p, g, seen))
