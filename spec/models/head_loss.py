"""The first loss of a language model given what its head reads, whatever weights the head drew.

The head is a matrix of V independent rows, uniform on [-b, b), and an offset 0; it is drawn apart
from all that comes before it, so that the rows h that it reads may be taken as given. A logit
z_v = h · w_v has E exp(t z_v) <= exp(t² r² / 2) with r² = |h|² b² / 3, as sinh(x) / x <=
exp(x² / 6). Where every symbol is the target equally often after the same tokens, the loss is the
mean over h of log mean exp(z) - mean(z) + ln V, and

- it is at least ln V, since exp is convex;
- it is at most ln V + phi(M) q where z <= M and mean(z²) <= q (``initial_loss``).

For n rows h of at most the norm |h|, M = r sqrt(2 ln(2 V n / risk)) fails with half the risk, and
q = r² (1 + 2 sqrt(t / V) + 2 t / V), t = ln(2 n / risk), with the other: D. Hsu, S. Kakade,
T. Zhang, "A tail inequality for quadratic forms of subgaussian random vectors" (2012), theorem 2.1.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from assay.spec.models.initial_loss import RISK, ROUNDING
from assay.spec.models.initialisers import Glorot


def interval(vocabulary: int, hidden: Float[np.ndarray, "n D"]) -> tuple[float, float]:
    """Where the first loss lies, but for a chance of ``RISK``; the head starts Glorot-uniform.

    >>> low, high = interval(65, np.full((4, 32), 0.1))
    >>> round(low, 3), round(high, 3)
    (4.174, 4.186)
    """
    rows, width = hidden.shape
    largest = float((hidden.astype(np.float64) ** 2).sum(axis=1).max())
    spread = math.sqrt(largest / 3) * Glorot(width, vocabulary).bound
    far = math.log(2 * rows / RISK)
    reach = spread * math.sqrt(2 * (far + math.log(vocabulary)))
    square = spread**2 * (1 + 2 * math.sqrt(far / vocabulary) + 2 * far / vocabulary)
    bend = (math.expm1(reach) - reach) / reach**2 if reach else 0.5
    start = math.log(vocabulary)
    return start - ROUNDING, start + square * bend + ROUNDING
