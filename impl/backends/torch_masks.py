"""Causal rule, window and mask as one torch mask, for kernels that take a single one."""

from __future__ import annotations

import torch
from torch import Tensor

Window = tuple[int | None, int | None]


def position_mask(
    queries: int,
    keys: int,
    *,
    causal: bool,
    offset: int,
    window: Window | None,
    device: torch.device,
) -> Tensor | None:
    """Which keys [L, S] the causal rule and the window let each query see; None when all."""
    left, right = window or (None, None)
    if not causal and left is None and right is None:
        return None
    ahead = (
        torch.arange(keys, device=device) - torch.arange(queries, device=device)[:, None] - offset
    )
    seen = torch.ones(queries, keys, dtype=torch.bool, device=device)
    if causal:
        seen &= ahead <= 0
    if left is not None:
        seen &= ahead >= -left
    if right is not None:
        seen &= ahead <= right
    return seen


def merge(mask: Tensor | None, positions: Tensor | None) -> Tensor | None:
    """Both masks together; an additive ``mask`` stays additive, with -inf where ``positions``
    blocks.
    """
    if mask is None or positions is None:
        return positions if mask is None else mask
    if mask.dtype is torch.bool:
        return mask & positions
    return mask.masked_fill(~positions, float("-inf"))
