"""Root mean square normalisation: y = x / sqrt(mean x^2 + eps) * weight over the last axis."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Shaped

from assay.spec.functions import sqrt
from assay.spec.layers.slices import Features, by_row, check_features
from assay.spec.layers.standardize import Rows, check_eps, mean
from assay.spec.scalars import Array


class RmsGradients(NamedTuple):
    """Cotangents of x and weight, each in its input's shape."""

    x: Rows
    weight: Features


def rate(x: Rows, eps: float) -> Shaped[np.ndarray, "*b 1"]:
    """1 / sqrt(mean x^2 + eps) of each row."""
    return 1 / sqrt(mean(x * x) + eps)


def rms_norm(
    x: Shaped[np.ndarray, "*b C"], weight: Features | None = None, *, eps: float = 1e-5
) -> Shaped[np.ndarray, "*b C"]:
    """Each row scaled to mean square 1, then by feature; the mean stays where it is.

    x [..., C], weight [C]; eps inside the root. A row of zeros gives zeros. Source: B. Zhang and R.
    Sennrich, "Root mean square layer normalization" (2019), equation 4.

    >>> rms_norm(np.array([[3.0, 4.0]]), eps=0.0).round(6).tolist()
    [[0.848528, 1.131371]]
    """
    check_features(by_row(x), weight, None)
    check_eps(eps)
    y = x * rate(x, eps)
    return y if weight is None else y * weight


def rms_norm_backward(
    x: Shaped[np.ndarray, "*b C"],
    weight: Features | None,
    cotangent: Shaped[np.ndarray, "*b C"],
    *,
    eps: float = 1e-5,
) -> RmsGradients:
    """Gradients of sum(y * cotangent): with z = x / sqrt(mean x^2 + eps) and h = g weight, dx = (h
    - z mean(h z)) / sqrt(mean x^2 + eps) and dw = sum g z over the rows.

    >>> rms_norm_backward(np.array([[3.0]]), None, np.ones((1, 1)), eps=0.0).x.tolist()
    [[0.0]]
    """
    rows = by_row(x)
    check_features(rows, weight, None)
    check_eps(eps)
    scale: Array = rate(x, eps)
    z = x * scale
    h = cotangent if weight is None else cotangent * weight
    return RmsGradients((h - z * mean(h * z)) * scale, rows.gather(cotangent * z))
