"""Sound layers with other orders of summation, in numpy."""

from __future__ import annotations

import numpy as np

from assay.zoo.sound_layers import Array, Dropout, Embedding, Entropy, LayerNorm, Linear, on_layers


class SortedEmbedding(Embedding):
    """Gradients of one identifier are brought together by sorting, and summed as one stretch."""

    contract = on_layers("zoo.embedding-sorted")

    def add(self, total: Array, ids: Array, rows: Array) -> None:
        """Each stretch of equal identifiers to its row of the table."""
        if not len(ids):
            return
        order = np.argsort(ids, kind="stable")
        own, starts = np.unique(ids[order], return_index=True)
        total[own] = np.add.reduceat(rows[order], starts, axis=0)


class GatheredEmbedding(Embedding):
    """Gradients as one product: which identifier each row had, times the rows."""

    contract = on_layers("zoo.embedding-product")

    def add(self, total: Array, ids: Array, rows: Array) -> None:
        """A matrix of zeros and ones, transposed."""
        total += (np.arange(len(total))[:, None] == ids).astype(np.float32) @ rows


class ScaledDropout(Dropout):
    """Kept entries are scaled where they stand, in a copy that was zeros."""

    contract = on_layers("zoo.dropout-in-place")

    def forward(self, x: Array, keep: Array, p: float, training: bool) -> Array:
        """Only kept entries are ever read."""
        if not training:
            return x.copy()
        y = np.zeros_like(x)
        if p < 1:
            y[keep] = x[keep] * np.float32(1 / (1 - p))
        return y


class CompensatedNorm(LayerNorm):
    """The mean by Kahan's sum, and once more of what is left."""

    contract = on_layers("zoo.layer-norm-compensated")

    def mean(self, x: Array) -> Array:
        """The second mean repairs the rounding of the first."""
        first = kahan(x) / np.float32(x.shape[-1])
        return np.asarray(first + kahan(x - first) / np.float32(x.shape[-1]))


def kahan(x: Array) -> Array:
    """The sum of each row [..., 1] with its error carried along (W. Kahan, 1965)."""
    total = np.zeros((*x.shape[:-1], 1), x.dtype)
    lost = np.zeros_like(total)
    for i in range(x.shape[-1]):
        term = x[..., i : i + 1] - lost
        new = total + term
        lost = (new - total) - term
        total = new
    return total


class RowsOfLoss(Entropy):
    """Row by row, as far as the targets go, and each row's classes at once."""

    contract = on_layers("zoo.cross-entropy-rows")

    def mass(self, x: Array) -> tuple[Array, Array]:
        """Maximum and logarithm of the sum, [..., 1]."""
        top = x.max(axis=-1, keepdims=True)
        sums = [np.exp(row - m).sum() for row, m in zip(x, top, strict=True)]
        return top, np.log(np.array(sums, np.float32)[:, None])


class ColumnsOfWeights(Linear):
    """The weight lies in memory in-by-out, and one block holds all inputs."""

    contract = on_layers("zoo.linear-columns")

    def blocks(self, width: int) -> list[slice]:
        """All of it."""
        return [slice(0, width)]

    def into_weight(self, rows: Array, inputs: Array) -> Array:
        """(x^T g)^T, in Fortran order."""
        return np.asfortranarray(inputs.T @ rows).T
