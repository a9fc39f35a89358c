"""Faults of gradients: the forward pass is right."""

from __future__ import annotations

import numpy as np

from assay.zoo.sound import Array, Rules, TiledAttention, declared


class QueryGradientZero(TiledAttention):
    """dQ = 0: only the half of the gradient that belongs to keys and values is computed.

    https://github.com/NVIDIA/cudnn-frontend/issues/385
    """

    contract = declared("zoo.query-gradient-zero")

    def backward(self, q: Array, k: Array, v: Array, out: Array, rules: Rules) -> dict[str, Array]:
        """No dQ."""
        return {**super().backward(q, k, v, out, rules), "q": np.zeros_like(q)}


class ValueGradientScaled(TiledAttention):
    """dV is 10 % too large."""

    contract = declared("zoo.value-gradient-scaled")

    def backward(self, q: Array, k: Array, v: Array, out: Array, rules: Rules) -> dict[str, Array]:
        """A factor too much."""
        slopes = super().backward(q, k, v, out, rules)
        return {**slopes, "v": slopes["v"] * self.compute(1.1)}


class GradientIgnoresMask(TiledAttention):
    """The backward pass computes its weights without the boolean mask.

    https://github.com/Dao-AILab/flash-attention/commit/a4f148b6
    """

    contract = declared("zoo.gradient-ignores-mask")

    def weights(self, q: Array, k: Array, rules: Rules) -> Array:
        """Used by the backward pass only."""
        return super().weights(
            q, k, Rules(None, rules.causal, rules.offset, rules.window, rules.scale)
        )
