"""Standardised rows: z = (x - mean x) / sqrt(var x + eps), the common part of layer, group and
batch normalisation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Shaped

from assay.spec.functions import sqrt
from assay.spec.scalars import Array, count, total

Rows = Shaped[np.ndarray, "*b n"]


class Standardized(NamedTuple):
    """z [..., n], and the reciprocal deviation 1 / sqrt(var + eps) [..., 1] of each row."""

    z: Rows
    rate: Shaped[np.ndarray, "*b 1"]


def mean(x: Rows) -> Shaped[np.ndarray, "*b 1"]:
    """Mean of each row; 0 for an empty one.

    >>> mean(np.array([1.0, 3.0])).tolist()
    [2.0]
    """
    return total(x) / count(x)


def standardize(x: Rows, eps: float) -> Standardized:
    """Rows with mean 0 and, up to eps, variance 1.

    The variance is the biased one, the mean of the squared deviations, and eps is added inside the
    root. A constant row gives zeros. eps > 0, or a row that is not constant.

    >>> standardize(np.array([1.0, 3.0]), 0.0).z.tolist()
    [-1.0, 1.0]
    """
    away = x - mean(x)
    deviation = sqrt(mean(away * away) + eps)
    return Standardized(away / deviation, 1 / deviation)


def standardize_backward(rows: Standardized, cotangent: Rows) -> Rows:
    """Gradient into x: (g - mean g - z mean(g z)) / sqrt(var + eps).

    It sums to 0 along the row. Source: S. Ioffe and C. Szegedy, "Batch normalization" (2015),
    section 3, with the sums gathered.

    >>> standardize_backward(standardize(np.array([1.0, 3.0]), 0.0), np.ones(2)).tolist()
    [0.0, 0.0]
    """
    z, rate = rows
    return (cotangent - mean(cotangent) - z * mean(cotangent * z)) * rate


def check_eps(eps: Array | float) -> None:
    """ValueError for a negative eps; a symbolic one is not looked at."""
    if isinstance(eps, int | float) and not eps >= 0:
        raise ValueError(f"eps={eps!r} must be at least 0")
