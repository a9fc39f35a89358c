"""Rows of different lengths in one batch: step t of row b exists when t < lengths[b]."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Int, Shaped

from assay.spec.scalars import Array, select

Lengths = Int[np.ndarray, " B"]


def active(lengths: Lengths | None, batch: int, steps: int) -> Bool[np.ndarray, "T B 1"] | None:
    """Which steps exist, time first; None when all do.

    ValueError unless there are ``batch`` lengths, all within 0..steps.

    >>> steps = active(np.array([2, 0]), 2, 3)
    >>> steps[..., 0].astype(int).tolist()
    [[1, 0], [1, 0], [0, 0]]
    """
    if lengths is None:
        return None
    if lengths.shape != (batch,):
        raise ValueError(f"lengths has shape {lengths.shape}, should be [batch] ({batch},)")
    if ((lengths < 0) | (lengths > steps)).any():
        raise ValueError(
            f"lengths={lengths.tolist()} must lie within 0 and the number of steps ({steps})"
        )
    return np.asarray(np.arange(steps)[:, None, None] < lengths[:, None])


def where_active(step: Bool[np.ndarray, "*b"] | None, new: Array, old: Array | float) -> Array:
    """``new`` at the steps that exist, ``old`` at the others; what is not taken has no influence.

    >>> where_active(None, np.array([1.0]), 0).tolist()
    [1.0]
    """
    return new if step is None else select(step, new, old)


def reversed_rows(x: Shaped[np.ndarray, "B T *w"], lengths: Lengths | None = None) -> Array:
    """Each row read from its last step to its first; what lies beyond its length stays in place.

    Its own inverse.

    >>> x = np.array([[1, 2, 3], [4, 5, 0]])
    >>> reversed_rows(x, np.array([3, 2])).tolist()
    [[3, 2, 1], [5, 4, 0]]
    """
    if lengths is None:
        return x[:, ::-1]
    steps = np.arange(x.shape[1])
    ends = lengths[:, None]
    order = np.where(steps < ends, ends - 1 - steps, steps)
    return x[np.arange(x.shape[0])[:, None], order]
