"""Embedding: y_i = E[id_i], a row of the table for each identifier."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Int, Shaped

from assay.spec.contraction import contract
from assay.spec.scalars import Array

Ids = Int[np.ndarray, "*b"]
Table = Shaped[np.ndarray, "V D"]


def _check(ids: Ids, table: Table, padding_idx: int | None) -> None:
    if table.ndim != 2:
        raise ValueError(f"table {table.shape} must have 2 axes [vocabulary, width]")
    rows = table.shape[0]
    if not np.issubdtype(ids.dtype, np.integer):
        raise ValueError(f"ids of dtype {ids.dtype} must be integers")
    outside = ids[(ids < 0) | (ids >= rows)]
    if outside.size:
        raise ValueError(f"ids holds {int(outside.flat[0])}; valid: 0 to {rows - 1}")
    if padding_idx is not None and not 0 <= padding_idx < rows:
        raise ValueError(f"padding_idx={padding_idx} is not a row; valid: 0 to {rows - 1}")


def embedding(
    ids: Ids, table: Table, *, padding_idx: int | None = None
) -> Shaped[np.ndarray, "*b D"]:
    """Rows of the table; nothing is rounded. ``padding_idx`` matters to the gradient only.

    ids [...] in 0..V-1, table [V, D].

    >>> embedding(np.array([1, 0, 1]), np.array([[2.0], [3.0]])).ravel().tolist()
    [3.0, 2.0, 3.0]
    """
    _check(ids, table, padding_idx)
    return table[ids]


def embedding_backward(
    ids: Ids,
    table: Table,
    cotangent: Shaped[np.ndarray, "*b D"],
    *,
    padding_idx: int | None = None,
) -> Table:
    """Gradient into the table: dE_v = sum of g_i over the i with id_i = v.

    A row that is not looked up, and the row ``padding_idx``, get exactly 0, whatever the cotangent
    holds elsewhere.

    >>> embedding_backward(np.array([1, 1]), np.zeros((2, 1)), np.ones((2, 1))).ravel().tolist()
    [0.0, 2.0]
    """
    _check(ids, table, padding_idx)
    flat, size = ids.reshape(-1), table.shape[0]
    used = np.setdiff1d(flat, [] if padding_idx is None else [padding_idx])
    # One row a used identifier, and one that nothing falls into: the gradient of all others.
    hits = np.append(used, size)[:, None] == flat
    ones: Array = hits.astype(cotangent.dtype)
    sums = contract(ones, hits, cotangent.reshape(flat.size, math.prod(table.shape[1:])))
    row = np.full(size, used.size)
    row[used.astype(int)] = np.arange(used.size)
    return sums[row]
