"""Logarithm of softmax: y_j = x_j - m - log sum_k exp(x_k - m), with m the largest of the row."""

from __future__ import annotations

import numpy as np
from jaxtyping import Shaped

from assay.spec.functions import log
from assay.spec.scalars import Array, exp, row_max, total
from assay.spec.softmax import softmax

Logits = Shaped[np.ndarray, "*b V"]


def log_mass(x: Logits) -> tuple[Array, Array]:
    """The shifted row x - m and log sum exp(x - m): the exponentials are at most 1."""
    shifted = x - row_max(x, np.ones(x.shape, dtype=bool))
    return shifted, log(total(exp(shifted)))


def log_softmax(x: Logits) -> Logits:
    """Log-probabilities over the last axis, also where a probability underflows.

    x [..., V]; V = 0 gives an empty row. Source: N. Higham and coauthors, "Accurately computing the
    log-sum-exp and softmax functions" (2021), algorithm 4.1.

    >>> log_softmax(np.array([-800.0, -1600.0, 0.0])).tolist()
    [-800.0, -1600.0, 0.0]
    """
    if x.shape[-1] == 0:
        return x
    shifted, mass = log_mass(x)
    return shifted - mass


def log_softmax_backward(x: Logits, cotangent: Logits) -> Logits:
    """Gradient into x: g - softmax(x) sum g. It sums to 0 along the row.

    >>> log_softmax_backward(np.zeros(2), np.array([1.0, 0.0])).tolist()
    [0.5, -0.5]
    """
    return cotangent - softmax(x) * total(cotangent)
