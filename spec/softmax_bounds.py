"""Error bounds of masked softmax: |computed - exact| <= bound, for any summation order."""

from __future__ import annotations

import numpy as np

from assay.spec.arithmetic import Arithmetic, gamma
from assay.spec.scalars import Array, broadcast
from assay.spec.softmax import masked_softmax, softmax_backward

# The reference itself is computed with a unit roundoff at most 2^-11 of the one that is judged
# (float64 for float32, extended precision for float64), through the same formulas, so its own error
# is below this fraction of any bound.
REFERENCE_SLACK = 1.0 + 2.0**-10


def exponential_error(
    weights: Array, exponent: Array, rescale: Array | float, arithmetic: Arithmetic
) -> tuple[Array, Array]:
    """Relative error a of each unnormalised weight, and A = sum_j w_j a_j, that of their mass.

    weights [..., S] exact; exponent [..., S] bounds the absolute error of each exponential's
    argument; rescale [..., 1] the relative error by online rescaling.

    With e^_j = exp(x_j + d)(1 + h), |d| <= exponent_j, |h| <= eta, the relative error of e^_j is at
    most a_j = exp(exponent_j)(1 + eta) - 1 (rescale adds to it).
    """
    a = np.expm1(exponent) * (1.0 + arithmetic.eta) + (arithmetic.eta + arithmetic.u_mid)
    if np.any(rescale):
        a = a + (1.0 + a) * rescale
    return a, np.sum(weights * a, axis=-1, keepdims=True)


def weight_error(
    weights: Array, a: Array, loss: Array, count: Array, arithmetic: Arithmetic
) -> Array:
    """Absolute error of the normalised weights.

    a and loss as of ``exponential_error``; count [..., 1] the allowed entries of the row.

    The mass of n terms in any order is off by A = loss and a factor 1 + gamma_{n-1} (Higham,
    section 4.2; blocked terms add exact zeros), and one division follows. So |w^_j / w_j - 1| <= (1
    + a_j)(1 + u)^2 (1 + u_mid)^2 / ((1 - A)(1 - gamma_{n-1})) - 1. An exponential that underflows
    is off by tau, against a mass of at least 1: that adds tau (1 + n w_j) twice. Beyond A = 1/2
    weights are only known to lie in [0, 1].
    """
    u = arithmetic.u_acc
    below = (1.0 - np.minimum(loss, 0.5)) * (1.0 - np.minimum(gamma(count, u), 0.5))
    factor = (1.0 + u) ** 2 * (1.0 + arithmetic.u_mid) ** 2
    # (1 + a) factor / below - 1, arranged so that small terms do not cancel.
    relative = (a * factor + (factor - 1.0) + (1.0 - below)) / below
    absolute = weights * relative + 2.0 * arithmetic.tau_acc * (1.0 + count * weights)
    useless = (loss > 0.5) | ~np.isfinite(loss)
    return np.where(useless, 1.0, np.minimum(absolute, 1.0))


def rescale_error(span: Array, keys: int, arithmetic: Arithmetic) -> Array:
    """Relative error that an online form adds: each of its blocks multiplies by exp(m - m'), and
    sum |m - m'| <= span.

    One factor costs one exponential, one subtraction and one product: eta + 2u + u |m - m'|; the
    first block costs none.
    """
    steps = arithmetic.blocks(keys) - 1
    if steps < 1:
        return np.zeros_like(span)
    return np.expm1(steps * (arithmetic.eta + 2.0 * arithmetic.u_acc) + arithmetic.u_acc * span)


def _setup(scores: Array, allowed: Array | None) -> tuple[Array, Array, Array, Array, Array]:
    shape = scores.shape
    allowed = np.ones(shape, dtype=bool) if allowed is None else broadcast(allowed, shape)
    weights = masked_softmax(scores, allowed)
    count = np.count_nonzero(allowed, axis=-1, keepdims=True)
    s = np.where(allowed, scores, 0.0)
    top = np.max(np.where(allowed, scores, -np.inf), axis=-1, keepdims=True, initial=-np.inf)
    return allowed, weights, count, s, np.where(count > 0, top, 0.0)


def _weights_and_error(
    scores: Array, allowed: Array | None, arithmetic: Arithmetic
) -> tuple[Array, Array, Array, Array]:
    allowed, weights, count, s, top = _setup(scores, allowed)
    u = arithmetic.u_acc
    shifted = np.where(allowed, np.abs(s - top), 0.0)
    exponent = (u + arithmetic.u_mid) * shifted
    if arithmetic.exp2:
        exponent = exponent + 2.0 * u * np.where(allowed, np.abs(s) + np.abs(top), 0.0)
    span = np.max(shifted, axis=-1, keepdims=True, initial=0.0)
    rescale = rescale_error(span, scores.shape[-1], arithmetic)
    a, loss = exponential_error(weights, exponent, rescale, arithmetic)
    error = weight_error(weights, a, loss, count, arithmetic)
    return allowed, weights, np.where(allowed, error, 0.0), count


def softmax_bound(scores: Array, allowed: Array | None, arithmetic: Arithmetic) -> Array:
    """Bound on |computed - exact| for ``masked_softmax``, in the shape of ``scores``.

    The argument s_j - m of each exponential is one subtraction: error u |s_j - m| (an exp2 form
    multiplies s_j and m by a rounded log2(e) first: 2u (|s_j| + |m|) more). ``weight_error``
    carries it to the weights; storing adds u_store w_j or one underflow. Blocked entries have bound
    0.

    >>> b = softmax_bound(np.zeros(2), np.array([True, False]), Arithmetic())
    >>> bool(0 < b[0] < 1e-6), float(b[1])
    (True, 0.0)
    """
    with np.errstate(all="ignore"):
        mask, weights, error, _ = _weights_and_error(scores, allowed, arithmetic)
        stored = arithmetic.u_store * (weights + error) + arithmetic.tau_store
        return np.where(mask, (error + stored) * REFERENCE_SLACK, 0.0)


def softmax_backward_bound(
    scores: Array, cotangent: Array, allowed: Array | None, arithmetic: Arithmetic
) -> Array:
    """Bound on |computed - exact| for the gradient w (g - sum g w) with weights computed, not
    exact.

    With dw the bound on the weights (stored once more): the sum d = sum g w is off by
    sum |g| dw + gamma_n sum |g| w. Both w (g - d) and w g - w d, the two forms in use, are then off
    by at most dw (|g| + |d|) + (w + dw)(dd + 3u (|g| + |d|)), plus one storage rounding. Blocked
    entries have bound 0.
    """
    with np.errstate(all="ignore"):
        mask, weights, error, count = _weights_and_error(scores, allowed, arithmetic)
        u = arithmetic.u_acc + arithmetic.u_mid
        error = error + arithmetic.u_store * weights + arithmetic.tau_store
        g = np.where(mask, np.abs(cotangent), 0.0)
        mass = np.sum(g * weights, axis=-1, keepdims=True)
        mean_error = (
            np.sum(g * error, axis=-1, keepdims=True) + (gamma(count, arithmetic.u_acc) + u) * mass
        )
        spread = g + mass
        result = error * spread + (weights + error) * (mean_error + 3.0 * u * spread)
        exact = softmax_backward(weights, np.where(mask, cotangent, 0.0), mask)
        tau = arithmetic.tau_acc * (2.0 + spread) + arithmetic.tau_store
        result = result * (1.0 + arithmetic.u_store) + arithmetic.u_store * np.abs(exact) + tau
        return np.where(mask, result * REFERENCE_SLACK, 0.0)
