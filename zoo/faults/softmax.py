"""Faults of masked softmax."""

from __future__ import annotations

import numpy as np

from assay.zoo.sound import Array, RowSoftmax, allowed, declared, row_softmax


class NoShift(RowSoftmax):
    """exp without subtracting the maximum: overflows above 88, and loses digits below -80.

    https://github.com/apache/singa/pull/540
    """

    contract = declared("zoo.softmax-no-shift", block_sizes=())

    def forward(self, scores: Array, mask: Array | None) -> Array:
        """As in the textbook."""
        e = np.where(allowed(scores, mask), np.exp(scores), 0)
        mass = e.sum(axis=-1, keepdims=True)
        return e / np.where(mass == 0, np.float32(1), mass)


class Sentinel(RowSoftmax):
    """Blocked scores are set to -30, which is not far enough; rows that see nothing become uniform.

    https://github.com/pytorch/pytorch/issues/103749
    """

    contract = declared("zoo.softmax-sentinel", block_sizes=())

    def forward(self, scores: Array, mask: Array | None) -> Array:
        """Finite where infinite is due."""
        return row_softmax(np.where(allowed(scores, mask), scores, np.float32(-30)))


class MaskByMultiplication(RowSoftmax):
    """The mask is multiplied with the exponentials: 0 times infinity is NaN.

    https://github.com/tensorflow/tensorflow/issues/11756
    """

    contract = declared("zoo.softmax-mask-by-multiplication", block_sizes=())

    def forward(self, scores: Array, mask: Array | None) -> Array:
        """Blocked entries still take part in the maximum."""
        top = scores.max(axis=-1, keepdims=True, initial=-np.inf)
        e = np.exp(scores - top) * allowed(scores, mask)
        mass = e.sum(axis=-1, keepdims=True)
        return e / np.where(mass == 0, np.float32(1), mass)


class Epsilon(RowSoftmax):
    """1e-5 is added to the sum where there is a mask, so that rows sum to less than 1."""

    contract = declared("zoo.softmax-epsilon", block_sizes=())

    def forward(self, scores: Array, mask: Array | None) -> Array:
        """Safe division, at a price."""
        p = super().forward(scores, mask)
        return p if mask is None else p / np.float32(1 + 1e-5)


class GradientWithoutMean(RowSoftmax):
    """The gradient is p g: the weighted mean of g is not subtracted."""

    contract = declared("zoo.softmax-gradient-without-mean", block_sizes=())

    def backward(self, p: Array, g: Array, seen: Array) -> Array:
        """Half of the formula."""
        return p * np.where(seen, g, 0)


class GradientIntoBlocked(RowSoftmax):
    """The gradient is spread over blocked entries as well.

    https://github.com/Xilinx/brevitas/pull/1591
    """

    contract = declared("zoo.softmax-gradient-into-blocked", block_sizes=())

    def backward(self, p: Array, g: Array, seen: Array) -> Array:
        """A tiny weight instead of none."""
        p = np.where(seen, p, np.float32(1e-9))
        return p * (g - (p * g).sum(axis=-1, keepdims=True))


class LeadingTileEmpty(RowSoftmax):
    """A leading tile of 16 entries without any allowed one turns the row into NaN.

    https://github.com/pytorch/pytorch/issues/127055
    """

    contract = declared("zoo.softmax-leading-tile-empty", block_sizes=(16,))

    def forward(self, scores: Array, mask: Array | None) -> Array:
        """-inf - -inf in the recurrence of the running maximum."""
        seen = allowed(scores, mask)
        lost = ~seen[..., :16].any(axis=-1, keepdims=True) & seen.any(axis=-1, keepdims=True)
        return np.where(lost, np.float32(np.nan), super().forward(scores, mask))
