"""Contraction over what is visible: y_i = sum over allowed j of w_ij x_j."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Shaped

from assay.spec.scalars import is_symbolic, select, total_over


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
