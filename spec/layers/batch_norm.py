"""Batch normalisation in training: y = (x - mean) / sqrt(var + eps) * weight + bias, with the mean
and variance of each channel over samples and positions.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Shaped

from assay.spec.layers.slices import (
    Features,
    NormGradients,
    by_channel,
    normalize,
    normalize_backward,
)

Channels = Shaped[np.ndarray, "B C *n"]


def batch_norm(
    x: Channels,
    weight: Features | None = None,
    bias: Features | None = None,
    *,
    eps: float = 1e-5,
) -> Channels:
    """Each channel standardised over the batch and all positions, by the biased variance.

    x [B, C, ...], weight and bias [C]. Running statistics take no part. A constant channel, or one
    with a single value, gives the bias. Source: S. Ioffe and C. Szegedy, "Batch normalization"
    (2015), algorithm 1.

    >>> batch_norm(np.array([[1.0, 5.0], [3.0, 5.0]]), bias=np.ones(2), eps=1e-12).round(6).tolist()
    [[0.0, 1.0], [2.0, 1.0]]
    """
    return normalize(x, weight, bias, eps, by_channel(x))


def batch_norm_backward(
    x: Channels, weight: Features | None, cotangent: Channels, *, eps: float = 1e-5
) -> NormGradients:
    """Gradients of sum(y * cotangent), through the batch's mean and variance."""
    return normalize_backward(x, weight, cotangent, eps, by_channel(x))
