"""Faults of activations, linear maps, embeddings, dropout, layer norm and cross-entropy."""

from __future__ import annotations

from typing import Any

import numpy as np

from assay.zoo.sound_layers import (
    Array,
    Dropout,
    Embedding,
    Entropy,
    Gelu,
    LayerNorm,
    Linear,
    Softplus,
    on_layers,
)


class TanhForErf(Gelu):
    """Both forms of GELU are computed by tanh."""

    contract = on_layers("zoo.gelu-tanh-for-erf", exp_ulps=2.0)

    def mass(self, x: Array, form: str) -> Array:
        """The form that is faster."""
        return super().mass(x, "tanh")


class SoftplusOverflow(Softplus):
    """log(1 + exp(x)): infinite above 88.

    https://github.com/state-spaces/mamba/commit/3854ad8
    """

    contract = on_layers("zoo.softplus-overflow")

    def forward(self, x: Array) -> Array:
        """As in the textbook."""
        return np.log(1 + np.exp(x))


class RaggedInputs(Linear):
    """The last block of inputs is left out when it is not full."""

    contract = on_layers("zoo.linear-ragged", block_sizes=(16,))

    def blocks(self, width: int) -> list[slice]:
        """Whole blocks only, once there is one."""
        found = super().blocks(width)
        return found[:-1] if len(found) > 1 and width % 16 else found


class WeightGradientSmaller(Linear):
    """The gradient into the weight is the mean over rows, not the sum."""

    contract = on_layers("zoo.linear-gradient-mean")

    def into_weight(self, rows: Array, inputs: Array) -> Array:
        """Divided by the rows."""
        return super().into_weight(rows, inputs) / max(len(rows), 1)


class ShortIds(Embedding):
    """Identifiers are kept in 15 bits."""

    contract = on_layers("zoo.embedding-short-ids")

    def place(self, ids: Array) -> Array:
        """Those beyond start over."""
        return np.asarray(ids % 32768)


class PaddingGradient(Embedding):
    """The padding row is moved like any other.

    https://github.com/pytorch/pytorch/issues/28716
    """

    contract = on_layers("zoo.embedding-padding-gradient")

    def padded(self, total: Array, padding_idx: int | None) -> Array:
        """Nothing is blanked."""
        return total


class LastUseWins(Embedding):
    """An identifier that occurs twice gets the gradient of its last use alone."""

    contract = on_layers("zoo.embedding-last-use")

    def add(self, total: Array, ids: Array, rows: Array) -> None:
        """Assigned instead of added."""
        total[ids] = rows


class TableInBfloat16(Embedding):
    """Rows lose their last bits on the way."""

    contract = on_layers("zoo.embedding-rounded", gradients=False)

    def embedding(self, ids: Array, table: Array, *, padding_idx: int | None = None) -> Array:
        """Rounded to 8 bits."""
        rows = super().embedding(ids, table, padding_idx=padding_idx).astype(np.float32)
        short = (rows.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
        return short.astype(table.dtype)

    embedding.__assay_implements__ = ("embedding",)  # type: ignore[attr-defined]


class MultipliedMask(Dropout):
    """The mask is multiplied with the input: 0 times infinity is NaN."""

    contract = on_layers("zoo.dropout-multiplied")

    def forward(self, x: Array, keep: Array, p: float, training: bool) -> Array:
        """Faster than a choice."""
        if not training:
            return x.copy()
        with np.errstate(invalid="ignore"):
            return x * (keep & (p < 1)) / np.float32(1 - p if p < 1 else 1)


class AlwaysDropping(Dropout):
    """Masks are applied outside of training as well.

    https://github.com/pytorch/pytorch/issues/124464
    """

    contract = on_layers("zoo.dropout-in-evaluation")

    def forward(self, x: Array, keep: Array, p: float, training: bool) -> Array:
        """The flag is not read."""
        return super().forward(x, keep, p, True)


class UnscaledGradient(Dropout):
    """The gradient is not divided by 1 - p."""

    contract = on_layers("zoo.dropout-gradient-unscaled")

    def backward(self, g: Array, keep: Array, p: float, training: bool) -> Array:
        """Masked only."""
        return super().backward(g, keep & (p < 1), 0.0, training)


class FoldedNorm(LayerNorm):
    """x * rate - mean * rate, the second product exact: the rounding error of the first one stays.

    https://github.com/pytorch/pytorch/issues/188375
    """

    contract = on_layers("zoo.norm-folded")

    def standardized(self, x: Array, eps: Any) -> tuple[Array, Array]:
        """One multiplication and addition an entry."""
        _, rate = super().standardized(x, eps)
        shift = self.mean(x).astype(np.float64) * rate
        return (x * rate - shift).astype(np.float32), rate


class EpsOutside(LayerNorm):
    """eps is added to the deviation, outside of the root.

    https://github.com/pyg-team/pytorch_geometric/pull/2917
    """

    contract = on_layers("zoo.norm-eps-outside")

    def standardized(self, x: Array, eps: Any) -> tuple[Array, Array]:
        """x / (sqrt(var) + eps)."""
        away = x - self.mean(x)
        rate = 1 / (np.sqrt((away * away).mean(axis=-1, keepdims=True)) + eps)
        return away * rate, rate


class UncentredNorm(LayerNorm):
    """The mean is not subtracted: root mean square norm."""

    contract = on_layers("zoo.norm-uncentred")

    def mean(self, x: Array) -> Array:
        """None."""
        return np.zeros((*x.shape[:-1], 1), x.dtype)


class GradientUncentred(LayerNorm):
    """The gradient lacks the term of the mean."""

    contract = on_layers("zoo.norm-gradient-uncentred")

    def backward(self, z: Array, rate: Array, h: Array) -> Array:
        """h - z mean(h z)."""
        return (h - z * (h * z).mean(axis=-1, keepdims=True)) * rate


class EntropyUnshifted(Entropy):
    """The maximum is not subtracted: exp overflows above 88."""

    contract = on_layers("zoo.loss-unshifted")

    def mass(self, x: Array) -> tuple[Array, Array]:
        """As in the textbook."""
        top = np.zeros((*x.shape[:-1], 1), np.float32)
        with np.errstate(all="ignore"):
            return top, np.log(np.exp(x).sum(axis=-1, keepdims=True))


class ShortVocabulary(Entropy):
    """Classes from 32768 on are left out of the sum."""

    contract = on_layers("zoo.loss-short-vocabulary")

    def mass(self, x: Array) -> tuple[Array, Array]:
        """15 bits of classes."""
        return super().mass(x[..., :32768])


class IgnoredRowsSpread(Entropy):
    """The gradient into ignored rows is 0 times their logits: NaN for an infinity."""

    contract = on_layers("zoo.loss-ignored-multiplied")

    def blanked(self, slopes: Array, x: Array, counts: Array) -> Array:
        """Multiplied by 0."""
        with np.errstate(invalid="ignore"):
            return slopes * counts[:, None] + 0 * x


class IgnoredRowsCount(Entropy):
    """A mean is divided by all rows, also by those that are ignored: 0 where none counts.

    https://github.com/pytorch/pytorch/issues/73205
    """

    contract = on_layers("zoo.loss-ignored-counted")

    def number(self, counts: Array) -> int:
        """Every row."""
        return int(counts.size)


class SmoothingUnmixed(Entropy):
    """Smoothing is added to the loss of the target, which is not made smaller."""

    contract = on_layers("zoo.loss-smoothing-unmixed")

    def mixed(self, hit: Array, spread: Array, smoothing: float) -> Array:
        """1 instead of 1 - s."""
        return hit + np.float32(smoothing) * spread


class EntropyGradientUnnormalised(Entropy):
    """The gradient wants the target fully, and the smoothed classes on top of it."""

    contract = on_layers("zoo.loss-gradient-unnormalised")

    def away(self, x: Array, targets: Array, counts: Array, smoothing: float) -> Array:
        """p - 1 - s / V."""
        hit = (np.arange(x.shape[1]) == targets[:, None]) & counts[:, None]
        return super().away(x, targets, counts, smoothing) - np.float32(smoothing) * hit


class BiasedByShift(Entropy):
    """The largest logit is added a thousandth too much."""

    contract = on_layers("zoo.loss-shift-leaks")

    def mass(self, x: Array) -> tuple[Array, Array]:
        """The logarithm depends on the shift."""
        top, log = super().mass(x)
        return top, log + np.float32(1e-3) * top
