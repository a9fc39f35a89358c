"""Linear map: y = x W^T + b."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Shaped

from assay.spec.contraction import product_plus
from assay.spec.scalars import Array

Weight = Shaped[np.ndarray, "O I"]


class LinearGradients(NamedTuple):
    """Cotangents of the three inputs, each in its input's shape."""

    x: Array
    weight: Weight
    bias: Shaped[np.ndarray, "O"]


def _check(x: Array, weight: Weight, bias: Array | None) -> None:
    if weight.ndim != 2 or x.ndim < 1 or x.shape[-1] != weight.shape[1]:
        raise ValueError(
            f"x {x.shape} and weight {weight.shape} do not fit: x is [..., I] and weight [O, I]"
        )
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(f"bias {bias.shape} must have the shape {weight.shape[:1]} of an output")


def linear(
    x: Shaped[np.ndarray, "*b I"], weight: Weight, bias: Shaped[np.ndarray, "O"] | None = None
) -> Shaped[np.ndarray, "*b O"]:
    """Each row of x times the transposed weight, plus the bias.

    x [..., I], weight [O, I] (out by in), bias [O] or none. I = 0 gives the bias, or zeros.

    >>> linear(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]), np.array([5.0])).tolist()
    [[16.0]]
    """
    _check(x, weight, bias)
    columns = np.swapaxes(weight, 0, 1)
    return np.matmul(x, columns) if bias is None else product_plus(x, columns, bias)


def linear_backward(
    x: Shaped[np.ndarray, "*b I"], weight: Weight, cotangent: Shaped[np.ndarray, "*b O"]
) -> LinearGradients:
    """Gradients of sum(y * cotangent): dx = g W, dW = g^T x, db = sum of g over the rows.

    >>> one = np.ones((1, 1))
    >>> linear_backward(2 * one, 3 * one, one).weight.tolist()
    [[2.0]]
    """
    _check(x, weight, None)
    rows = math.prod(x.shape[:-1])
    g, flat = cotangent.reshape(rows, weight.shape[0]), x.reshape(rows, weight.shape[1])
    dx = np.matmul(g, weight).reshape(*x.shape)
    return LinearGradients(dx, np.matmul(np.swapaxes(g, 0, 1), flat), g.sum(axis=0))
