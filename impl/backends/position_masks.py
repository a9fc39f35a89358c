"""Causal rule, window and mask as one numpy mask, for kernels that take a single one."""

from __future__ import annotations

import numpy as np

Window = tuple[int | None, int | None]


def position_mask(
    queries: int, keys: int, *, causal: bool, offset: int, window: Window | None
) -> np.ndarray | None:
    """Which keys [L, S] the causal rule and the window let each query see; None when all."""
    left, right = window or (None, None)
    if not causal and left is None and right is None:
        return None
    ahead = np.arange(keys) - np.arange(queries)[:, None] - offset
    seen = np.ones((queries, keys), bool)
    if causal:
        seen &= ahead <= 0
    if left is not None:
        seen &= ahead >= -left
    if right is not None:
        seen &= ahead <= right
    return seen


def merge(mask: np.ndarray | None, positions: np.ndarray | None) -> np.ndarray | None:
    """Both masks together; an additive ``mask`` stays additive, with -inf where ``positions``
    blocks.
    """
    if mask is None or positions is None:
        return positions if mask is None else mask
    if mask.dtype == bool:
        return mask & positions
    return np.where(positions, mask, np.asarray(-np.inf, mask.dtype))
