"""Layer normalisation: y = (x - mean x) / sqrt(var x + eps) * weight + bias over the last axis."""

from __future__ import annotations

import numpy as np
from jaxtyping import Shaped

from assay.spec.layers.slices import (
    Features,
    NormGradients,
    by_row,
    normalize,
    normalize_backward,
)


def layer_norm(
    x: Shaped[np.ndarray, "*b C"],
    weight: Features | None = None,
    bias: Features | None = None,
    *,
    eps: float = 1e-5,
) -> Shaped[np.ndarray, "*b C"]:
    """Each row shifted to mean 0 and scaled to variance 1 (biased), then an affine map by feature.

    x [..., C], weight and bias [C]; without them 1 and 0. A row of one feature, or of equal ones,
    gives the bias. Source: J. L. Ba, J. R. Kiros and G. Hinton, "Layer normalization" (2016),
    equation 4, with eps inside the root.

    >>> layer_norm(np.array([[1.0, 3.0], [5.0, 5.0]]), eps=0.25, bias=np.ones(2)).round(3).tolist()
    [[0.106, 1.894], [1.0, 1.0]]
    """
    return normalize(x, weight, bias, eps, by_row(x))


def layer_norm_backward(
    x: Shaped[np.ndarray, "*b C"],
    weight: Features | None,
    cotangent: Shaped[np.ndarray, "*b C"],
    *,
    eps: float = 1e-5,
) -> NormGradients:
    """Gradients of sum(y * cotangent). One feature: dx = 0 and dw = 0, whatever x holds.

    >>> layer_norm_backward(np.ones((1, 1)), np.ones(1), np.ones((1, 1))).x.tolist()
    [[0.0]]
    """
    return normalize_backward(x, weight, cotangent, eps, by_row(x))
