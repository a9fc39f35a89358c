"""Group normalisation: y = (x - mean) / sqrt(var + eps) * weight + bias, with the mean and variance
of each group of channels of each sample.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Shaped

from assay.spec.layers.slices import (
    Features,
    NormGradients,
    by_group,
    normalize,
    normalize_backward,
)

Channels = Shaped[np.ndarray, "B C *n"]


def group_norm(
    x: Channels,
    weight: Features | None = None,
    bias: Features | None = None,
    *,
    groups: int,
    eps: float = 1e-5,
) -> Channels:
    """Each group of C / groups neighbouring channels standardised over channels and positions.

    x [B, C, ...], weight and bias [C]; groups divides C. With groups = C it is instance
    normalisation. A constant group gives the bias. Source: Y. Wu and K. He, "Group normalization"
    (2018), equations 1 and 7.

    >>> x = np.array([[1.0, 3.0, 5.0, 5.0]])
    >>> group_norm(x, groups=2, eps=1e-9)[0].round(6).tolist()
    [-1.0, 1.0, 0.0, 0.0]
    """
    return normalize(x, weight, bias, eps, by_group(x, groups))


def group_norm_backward(
    x: Channels, weight: Features | None, cotangent: Channels, *, groups: int, eps: float = 1e-5
) -> NormGradients:
    """Gradients of sum(y * cotangent); weight and bias collect over samples and positions."""
    return normalize_backward(x, weight, cotangent, eps, by_group(x, groups))
