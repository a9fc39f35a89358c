"""Contractions: y_i = sum over allowed j of w_ij x_j, and x M + parts, which is one sum."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Bool, Shaped

from assay.spec.scalars import Array, is_symbolic, select, total_over


def contract(
    weights: Shaped[np.ndarray, "*b L S"],
    allowed: Bool[np.ndarray, "*b L S"],
    x: Shaped[np.ndarray, "*b S W"],
) -> Shaped[np.ndarray, "*b L W"]:
    """sum over allowed j of weights[i, j] x[j]: a blocked row of x has no influence, NaN and inf
    included.

    >>> weights, allowed = np.array([[1.0, 0.0]]), np.array([[True, False]])
    >>> contract(weights, allowed, np.array([[2.0], [np.nan]])).tolist()
    [[2.0]]
    """
    if is_symbolic(x) or is_symbolic(weights):
        products = np.asarray(weights[..., :, :, None] * x[..., None, :, :], dtype=object)
        return total_over(select(allowed[..., None], products, 0), x)
    if np.isfinite(x).all() and np.isfinite(weights).all():
        return np.matmul(np.where(allowed, weights, 0), x)
    with np.errstate(invalid="ignore"):
        products = weights[..., :, :, None] * x[..., None, :, :]
    return np.where(allowed[..., None], products, 0).sum(axis=-2)


def product_plus(
    x: Shaped[np.ndarray, "*b L S"], matrix: Shaped[np.ndarray, "*b S W"], *parts: Array
) -> Shaped[np.ndarray, "*b L W"]:
    """x matrix + parts: one sum of the products and of the parts, which broadcast to its shape.

    A kernel may start its accumulator at a part or add it last, so the sum is named as one: in
    running error analysis (``inexact``) it has a rule of its own, for every order.

    >>> product_plus(np.array([[1.0, 2.0]]), np.array([[3.0], [4.0]]), np.array([5.0])).tolist()
    [[16.0]]
    """
    operands: tuple[Any, ...] = (x, matrix, *parts)
    carried = next((a for a in operands if hasattr(a, "product_plus")), None)
    if parts and carried is not None:
        return carried.product_plus(*operands)
    return sum(parts, start=np.matmul(x, matrix))
