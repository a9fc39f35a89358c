"""Layer normalisation: y = (x - mean x) / sqrt(var x + eps) * weight + bias over the last axis."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Shaped

from assay.spec.layers.standardize import check_eps, standardize, standardize_backward
from assay.spec.scalars import Array

Features = Shaped[np.ndarray, "C"]


class NormGradients(NamedTuple):
    """Cotangents of x, weight and bias, each in its input's shape."""

    x: Array
    weight: Features
    bias: Features


def check_features(x: Array, weight: Features | None, bias: Features | None) -> None:
    """ValueError unless weight and bias have one entry for each feature of the last axis."""
    for name, given in (("weight", weight), ("bias", bias)):
        if given is not None and given.shape != x.shape[-1:]:
            raise ValueError(f"{name} {given.shape} must have the shape {x.shape[-1:]} of a row")


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
    check_features(x, weight, bias)
    check_eps(eps)
    y = standardize(x, eps).z
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def layer_norm_backward(
    x: Shaped[np.ndarray, "*b C"],
    weight: Features | None,
    cotangent: Shaped[np.ndarray, "*b C"],
    *,
    eps: float = 1e-5,
) -> NormGradients:
    """Gradients of sum(y * cotangent): db = sum g and dw = sum g z over the rows, and dx that of
    ``standardize`` for g weight.

    One feature: dx = 0 and dw = 0, whatever x holds.

    >>> layer_norm_backward(np.ones((1, 1)), np.ones(1), np.ones((1, 1))).x.tolist()
    [[0.0]]
    """
    check_features(x, weight, None)
    check_eps(eps)
    rows = standardize(x, eps)
    dx = standardize_backward(rows, cotangent if weight is None else cotangent * weight)
    flat = (math.prod(x.shape[:-1]), x.shape[-1])
    dw, db = (part.reshape(*flat).sum(axis=0) for part in (cotangent * rows.z, cotangent))
    return NormGradients(dx, dw, db)
