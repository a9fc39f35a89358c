"""Faults of masks, causal frontiers and rows that see nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from assay.zoo.sound import Array, Rules, TiledAttention, declared


class TopLeft(TiledAttention):
    """The causal triangle starts at the first key, whatever the offset of the first query. Shows
    where offset > 0.

    https://github.com/pytorch/pytorch/issues/108108
    """

    contract = declared("zoo.top-left")

    def visible(self, q: Array, k: Array, rules: Rules) -> Array:
        """As if the chunk began at position 0."""
        return super().visible(q, k, replace(rules, offset=0))


class FinitePenalty(TiledAttention):
    """Blocked scores get -1e4 added instead of being left out. Shows in rows that see nothing, and
    where scores are as large.

    https://github.com/microsoft/onnxruntime/issues/14363
    """

    contract = declared("zoo.finite-penalty")

    def block_out(self, x: Array, seen: Array) -> Array:
        """A penalty in place of a mask."""
        return x + np.where(seen, 0, -1e4).astype(x.dtype)


class PolarityFlipped(TiledAttention):
    """True in a boolean mask means "leave out". Shows with any boolean mask.

    https://github.com/lucidrains/halonet-pytorch/pull/6
    """

    contract = declared("zoo.polarity-flipped")

    def permits(self, mask: Array) -> Array:
        """The other way round."""
        return ~mask if mask.dtype == bool else super().permits(mask)


class PolarityFlippedInLastRow(TiledAttention):
    """In the last query's row alone True means "leave out". Shows with boolean masks that have
    rows.
    """

    contract = declared("zoo.polarity-flipped-in-one-row")

    def permits(self, mask: Array) -> Array:
        """The last row the other way round."""
        if mask.dtype != bool or mask.shape[-2] == 1:
            return super().permits(mask)
        last = np.arange(mask.shape[-2])[:, None] == mask.shape[-2] - 1
        return mask ^ last


class LastKeyLeaks(TiledAttention):
    """The last key is seen by every query where S % 16 = 1."""

    contract = declared("zoo.last-key-leaks")

    def visible(self, q: Array, k: Array, rules: Rules) -> Array:
        """The tail tile of one key escapes the mask."""
        seen = super().visible(q, k, rules)
        keys = k.shape[2]
        return seen | (np.arange(keys) == keys - 1) if keys % self.block == 1 else seen


class BlockedScoredZero(TiledAttention):
    """Blocked scores are set to 0, so that padding keeps its share of the weight. Shows with any
    mask.

    https://github.com/pytorch/pytorch/issues/196678
    """

    contract = declared("zoo.blocked-scored-zero")

    def block_out(self, x: Array, seen: Array) -> Array:
        """A multiplication in place of a mask."""
        return np.where(seen, x, 0)


class EmptyRowNan(TiledAttention):
    """Rows that see nothing are 0 / 0, and zeros are declared.

    https://github.com/pytorch/pytorch/issues/103963
    """

    contract = declared("zoo.empty-row-nan")

    def finish(self, total: Array, mass: Array) -> Array:
        """A quotient without a guard."""
        return total / mass


class SelfUnseen(TiledAttention):
    """A causal query does not see itself: the frontier is off by one."""

    contract = declared("zoo.self-unseen")

    def visible(self, q: Array, k: Array, rules: Rules) -> Array:
        """Strictly earlier keys."""
        return super().visible(
            q, k, replace(rules, offset=rules.offset - 1) if rules.causal else rules
        )


class NonfiniteDeclaredIsolated(TiledAttention):
    """NaN and infinity at blocked positions reach the output as 0 times NaN, and isolation is
    declared.

    https://github.com/pytorch/pytorch/issues/141128
    """

    contract = declared("zoo.nonfinite-leaks", blocked_nonfinite="isolates")


class NonfiniteHidden(TiledAttention):
    """NaN in values that queries see is replaced by 0, so that a broken model looks well."""

    contract = declared("zoo.nonfinite-hidden")

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """Values are cleaned first."""
        return super().forward(q, k, np.nan_to_num(v), rules)
