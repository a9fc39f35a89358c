"""Error bound of the gradient into an embedding table."""

from __future__ import annotations

import numpy as np

from assay.spec.arithmetic import Arithmetic
from assay.spec.inexact import Inexact, stored
from assay.spec.layers.embedding import Ids, Table, embedding_backward
from assay.spec.scalars import Array


def embedding_backward_bound(
    ids: Ids, table: Table, cotangent: Array, padding_idx: int | None, arithmetic: Arithmetic
) -> Table:
    """Bound on |computed - exact| for dE_v, the sum of the c cotangents of row v, in any order.

    gamma_{c-1} sum|g|, and one rounding when it is stored. A row that is looked up once is a copy,
    and one that is not looked up is 0: both are exact.
    """
    with np.errstate(all="ignore"):
        exact, size = (
            embedding_backward(ids, table, g, padding_idx=padding_idx)
            for g in (cotangent, np.abs(cotangent))
        )
        uses = np.bincount(ids.reshape(-1), minlength=table.shape[0])
        bound = np.zeros(exact.shape)
        for count in np.unique(uses[uses > 1]):
            rows = uses == count
            whole = Inexact(exact[rows], 0.0, arithmetic)
            bound[rows] = stored(
                whole.summed(exact[rows], np.zeros(()), size[rows], int(count) - 1)
            )
        return bound
