"""Projection of features: y = x W, with W stored in by out, and its pullback."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Shaped

from assay.spec.contraction import product_plus
from assay.spec.scalars import Array

Weight = Shaped[np.ndarray, "I O"]


def project(
    x: Shaped[np.ndarray, "*b I"], weight: Weight, bias: Shaped[np.ndarray, "O"] | None = None
) -> Shaped[np.ndarray, "*b O"]:
    """Each row of x times the weight, plus the bias.

    >>> project(np.array([[1.0, 2.0]]), np.array([[3.0], [4.0]]), np.array([5.0])).tolist()
    [[16.0]]
    """
    return np.matmul(x, weight) if bias is None else product_plus(x, weight, bias)


def project_backward(
    x: Shaped[np.ndarray, "*b I"], weight: Weight, cotangent: Shaped[np.ndarray, "*b O"]
) -> tuple[Shaped[np.ndarray, "*b I"], Weight]:
    """Gradients of sum(y * cotangent): dx = g W^T and dW = x^T g, summed over the rows.

    >>> one = np.ones((1, 1))
    >>> [g.tolist() for g in project_backward(2 * one, 3 * one, one)]
    [[[3.0]], [[2.0]]]
    """
    rows = math.prod(x.shape[:-1])
    flat = x.reshape(rows, weight.shape[0])
    g = cotangent.reshape(rows, weight.shape[1])
    return np.matmul(cotangent, weight.T), np.matmul(flat.T, g)


def joint_backward(
    x: Shaped[np.ndarray, "*b I"], weights: Sequence[Weight], cotangents: Sequence[Array]
) -> tuple[Shaped[np.ndarray, "*b I"], list[Weight]]:
    """``project_backward`` of several projections of one x: dx is one sum over all their columns.

    Kernels store such weights side by side and add in any order.

    >>> one = np.ones((1, 1))
    >>> [g.tolist() for g in joint_backward(one, [2 * one, 3 * one], [one, one])[1]]
    [[[1.0]], [[1.0]]]
    """
    side_by_side = np.concatenate(list(weights), axis=-1)
    dx, dweight = project_backward(x, side_by_side, np.concatenate(list(cotangents), axis=-1))
    ends = np.cumsum([w.shape[1] for w in weights])[:-1]
    return dx, list(np.split(dweight, ends, axis=1))


def check_projection(name: str, weight: Weight, rows: int, columns: int | None = None) -> None:
    """ValueError unless ``weight`` is [rows, columns] (None: any number of columns)."""
    fits = weight.ndim == 2 and weight.shape[0] == rows and columns in (None, weight.shape[-1])
    if not fits:
        wanted = "any" if columns is None else columns
        raise ValueError(f"shape of {name} {weight.shape} must be ({rows}, {wanted})")
