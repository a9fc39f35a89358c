"""Sound masked softmax by tiles: maximum and sum first, the weights in a second pass."""

from __future__ import annotations

import numpy as np

from assay.zoo.sound import Array, RowSoftmax, allowed, declared


class OnlineSoftmax(RowSoftmax):
    """Tiles of 32 entries."""

    contract = declared("zoo.online-softmax", block_sizes=(32,), blocked_nonfinite="isolates")

    def forward(self, scores: Array, mask: Array | None) -> Array:
        """Two passes over the tiles."""
        x = np.where(allowed(scores, mask), scores, np.float32(-np.inf))
        top = np.full((*x.shape[:-1], 1), -np.inf, np.float32)
        mass = np.zeros_like(top)
        for start in range(0, x.shape[-1], 32):
            part = x[..., start : start + 32]
            new = np.maximum(top, part.max(axis=-1, keepdims=True))
            mass = mass * np.exp(top - _finite(new))
            mass = mass + np.exp(part - _finite(new)).sum(axis=-1, keepdims=True)
            top = new
        return np.exp(x - _finite(top)) / np.where(mass == 0, np.float32(1), mass)


def _finite(top: Array) -> Array:
    return np.where(np.isneginf(top), np.float32(0), top)
