"""Error bounds of attention and its gradients: |computed - exact| <= bound elementwise, for any
summation order and tiling.

Notation: |X| is taken elementwise; n is the number of visible keys of a row; u, eta, tau as in
``arithmetic``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from assay.spec.arithmetic import FORMATS, Arithmetic, gamma
from assay.spec.attention import (
    AttentionGradients,
    K,
    Q,
    V,
    attention_scores,
    collapse_kv,
    default_scale,
    expand_kv,
    visible,
)
from assay.spec.scalars import Array
from assay.spec.softmax import masked_softmax
from assay.spec.softmax_bounds import (
    REFERENCE_SLACK,
    exponential_error,
    rescale_error,
    weight_error,
)

_NEARLY = 1.0 + 2.0**-6
"""Computed magnitudes are this much larger at most, before they overflow."""


class _Weights(NamedTuple):
    """Exact weights of every pair, and what is known of the computed ones.

    [B, H, L, S], but [B, H, L, 1] for ``loss`` (relative error of the mass) and ``seen`` (how many
    keys are visible). ``relative``: error of an unnormalised weight, of no meaning at blocked
    pairs.
    """

    allowed: Array
    exact: Array
    relative: Array
    loss: Array
    seen: Array

    def error(self, arithmetic: Arithmetic) -> Array:
        """Absolute error of the weights."""
        error = weight_error(self.exact, self.relative, self.loss, self.seen, arithmetic)
        # After an overflow a weight need not even lie in [0, 1]: it can be NaN.
        error = np.where(np.isfinite(self.loss), error, np.inf)
        return np.where(self.allowed, error, 0.0)


def _weights(
    q: Q,
    k: K,
    mask: Array | None,
    scale: float | None,
    arithmetic: Arithmetic,
    rules: dict[str, Any],
) -> _Weights:
    """Weights and their error.

    A score is a dot product of D terms, scaled (on the result, or on q and k by its root: at most 4
    roundings), plus a bias, from which the sum may start: ds <= gamma_{D+4} |scale| |q||k| + 3
    u_mid |scale| |q||k| + u |s| + gamma_{D+1} |bias|. The exponential's argument adds u |s - m| for
    the subtraction and, in forms that take exp2 or that keep the logarithm of the mass, 3u (|s| +
    |m| + ln n + 1). A score that may overflow the accumulation format makes the whole row unknown.
    """
    allowed = visible(q, k, mask=mask, **rules)
    scores = np.where(allowed, attention_scores(q, k, mask, scale), 0.0)
    exact = masked_softmax(scores, allowed)
    count = np.count_nonzero(allowed, axis=-1, keepdims=True)
    factor = abs(default_scale(q.shape[3]) if scale is None else scale)
    magnitude = np.matmul(np.abs(q), np.swapaxes(np.abs(expand_kv(k, q.shape[1])), -1, -2))
    top = np.max(np.where(allowed, scores, -np.inf), axis=-1, keepdims=True, initial=-np.inf)
    top = np.where(count > 0, top, 0.0)
    u, mid = arithmetic.u_acc, arithmetic.u_mid
    size, shifted = np.abs(scores), np.abs(scores - top)
    exponent = ((gamma(q.shape[3] + 4, u) + 3.0 * mid) * factor) * magnitude
    exponent += (4.0 * u + mid) * size
    exponent += (u + mid) * shifted
    exponent += 3.0 * u * (np.abs(top) + np.log1p(count)) + arithmetic.tau_acc * (q.shape[3] + 1)
    biased = _added(mask)
    if biased is not None:
        exponent += (gamma(q.shape[3] + 1, u) + mid) * biased
    reach = max(1.0, factor) * np.max(magnitude, initial=0.0)
    reach += 0.0 if biased is None else 2.0 * np.max(biased, initial=0.0)
    if not reach * _NEARLY**2 < arithmetic.largest:  # |s| <= |scale| |q||k| + |bias|
        peak = np.maximum(magnitude * max(1.0, factor), size + (0.0 if biased is None else biased))
        exponent = np.where(peak * _NEARLY >= arithmetic.largest, np.inf, exponent)
    exponent = np.where(allowed, exponent, 0.0)
    rescale: Array | float = 0.0
    if arithmetic.blocks(k.shape[2]) > 1:
        span = np.max(np.where(allowed, shifted, 0.0), axis=-1, keepdims=True, initial=0.0)
        rescale = rescale_error(span, k.shape[2], arithmetic)
    return _Weights(allowed, exact, *exponential_error(exact, exponent, rescale, arithmetic), count)


def _added(mask: Array | None) -> Array | None:
    """The magnitudes that a mask adds to the scores; None where it adds nothing."""
    if mask is None or mask.dtype == bool:
        return None
    return np.where(np.isneginf(mask), 0.0, np.abs(mask))


def _finite(x: Array) -> Array:
    """Non-finite entries count as 0: where they are visible the result itself is not finite and no
    bound applies.
    """
    return np.where(np.isfinite(x), x, 0.0)


def _cap(bound: Array, values: Array, loss: Array) -> Array:
    """Where the weights are not known to better than 1/2, the output is still a weighted mean of
    the values.

    Computed weights are positive and sum to 1 within rounding, so the output is off by no more than
    the spread of the values.
    """
    hopeless = ~(loss <= 0.5)
    if not hopeless.any():
        return bound
    if values.shape[-2] == 0:
        return bound
    spread = np.max(values, axis=-2, keepdims=True) - np.min(values, axis=-2, keepdims=True)
    spread = spread + 0.25 * np.max(np.abs(values), axis=-2, keepdims=True)
    # An overflow inside the row can make anything of it.
    return np.where(np.isfinite(loss), np.where(hopeless, spread, bound), np.inf)


def attention_bound(
    q: Q,
    k: K,
    v: V,
    *,
    arithmetic: Arithmetic,
    mask: Array | None = None,
    scale: float | None = None,
    **rules: Any,
) -> Array:
    """Bound on |computed - exact| for ``attention``, [B, H, L, Dv].

    With a_j the relative error of the unnormalised weights, the quotient sum e_j (1 + a_j) v_j /
    sum e_j (1 + a_j) differs from o by sum w_j a_j (v_j - o) / (1 - A) <= (sum w_j a_j |v_j| + A
    |o|) / (1 - A), A = sum w_j a_j: errors common to a row cancel. The sums of n terms add
    gamma_{n+3} (sum w |v| + |o|), stored weights u_mid of the same, the output one storage
    rounding. Rows without a visible key are exactly zero and have bound 0.
    """
    with np.errstate(all="ignore"):
        w = _weights(q, k, mask, scale, arithmetic, rules)
        values = _finite(expand_kv(v, q.shape[1]))
        sizes, out = np.abs(values), np.abs(np.matmul(w.exact, values))
        mass = np.matmul(w.exact, sizes)
        tilt = np.matmul(w.exact * w.relative, sizes) + w.loss * out
        order = gamma(w.seen + 3, arithmetic.u_acc) + 2.0 * arithmetic.u_mid
        error = tilt / (1.0 - np.minimum(w.loss, 0.5)) + order * (mass + out)
        reach = np.matmul(w.allowed.astype(values.dtype), sizes)
        error += 2.0 * arithmetic.tau_acc * (reach + (out + 1.0) * w.seen)
        error = _cap(error, values, w.loss)
        u_store = arithmetic.u_store
        error = error * (1.0 + u_store) + (u_store * out + arithmetic.tau_store)
        error = np.where(out + error >= FORMATS[arithmetic.storage].max, np.inf, error)
        return np.where(w.seen > 0, error * REFERENCE_SLACK, 0.0)


def attention_backward_bound(
    q: Q,
    k: K,
    v: V,
    cotangent: Array,
    *,
    arithmetic: Arithmetic,
    mask: Array | None = None,
    scale: float | None = None,
    **rules: Any,
) -> AttentionGradients:
    """Bounds on |computed - exact| for dQ, dK, dV of ``attention_backward``.

    With dw the bound on the weights, P = dO V^T and |P| <= |dO||V|^T: dP <= (gamma_{Dv+1} + 2
    u_mid) |dO||V|^T. The row sum d = sum w P, also computed as dO . O from a stored O, is off by
    sum (dw + w (gamma_{n+Dv+2} + u_store + u_mid)) |dO||V|^T + sum w dP. So dS = w (P - d) is off
    by dw (|P| + |d|) + (w + dw)(dP + dd + (3u + 3 u_mid)(|P| + |d|)). The three products add gamma
    over the length of each sum (times the group size where query heads share a key head), and one
    storage rounding for each query head summed.
    """
    with np.errstate(all="ignore"):
        w = _weights(q, k, mask, scale, arithmetic, rules)
        heads, kv_heads = q.shape[1], k.shape[1]
        factor = abs(default_scale(q.shape[3]) if scale is None else scale)
        qs, ks, g = (_finite(np.abs(x)) for x in (q, expand_kv(k, heads), cotangent))
        error = w.error(arithmetic) + (arithmetic.u_store + arithmetic.u_mid) * w.exact
        ds, ds_error = _score_gradient(
            w, error, _finite(cotangent), _finite(expand_kv(v, heads)), arithmetic
        )
        group = heads // max(kv_heads, 1)
        sums = (w.seen, q.shape[2] * group)
        order = [gamma(n + 5, arithmetic.u_acc) + 4.0 * arithmetic.u_mid for n in sums]
        tau = arithmetic.tau_acc * 4.0
        dq = factor * (np.matmul(ds_error + tau, ks) + order[0] * np.matmul(ds, ks))
        dq = dq + arithmetic.u_store * factor * np.matmul(ds, ks) + tau
        down, down_error = (np.swapaxes(x, -1, -2) for x in (ds, ds_error + tau))
        dk = (
            factor
            * (np.matmul(down_error, qs) + (order[1] + arithmetic.u_store) * np.matmul(down, qs))
            + tau
        )
        up, up_error = (np.swapaxes(x, -1, -2) for x in (w.exact, error + tau))
        dv = np.matmul(up_error, g) + (order[1] + arithmetic.u_store) * np.matmul(up, g) + tau
        largest = FORMATS[arithmetic.storage].max
        grads = (dq, collapse_kv(dk, kv_heads), collapse_kv(dv, kv_heads))
        stored = [
            (x * (1 + arithmetic.u_store) + arithmetic.tau_store) * REFERENCE_SLACK for x in grads
        ]
        reach = (
            factor * np.matmul(ds, ks),
            collapse_kv(factor * np.matmul(down, qs), kv_heads),
            collapse_kv(np.matmul(up, g), kv_heads),
        )
        return AttentionGradients(
            *(np.where(r + x >= largest, np.inf, x) for r, x in zip(reach, stored, strict=True))
        )


def _score_gradient(
    w: _Weights, error: Array, cotangent: Array, values: Array, arithmetic: Arithmetic
) -> tuple[Array, Array]:
    """|dS| and the bound on its error, both [B, H, L, S], 0 at blocked pairs.

    Where a product dO V^T may overflow, the row sum and with it the whole row are unknown.
    """
    across = np.swapaxes(values, -1, -2)
    size = np.matmul(np.abs(cotangent), np.abs(across))
    overflow = np.any(size * _NEARLY >= arithmetic.largest, axis=-1, keepdims=True)
    size = np.where(w.allowed, size, 0.0)
    exact = np.where(w.allowed, np.matmul(cotangent, across), 0.0)
    width = cotangent.shape[-1]
    u, mid = arithmetic.u_acc, arithmetic.u_mid
    product = (gamma(width + 1, u) + 2.0 * mid) * size
    mean = np.sum(w.exact * exact, axis=-1, keepdims=True)
    order = gamma(w.seen + width + 2, u) + arithmetic.u_store + mid
    mean_error = np.sum(
        (error + w.exact * order) * size + w.exact * product, axis=-1, keepdims=True
    )
    spread = np.abs(exact) + np.abs(mean)
    total = error * spread + (w.exact + error) * (product + mean_error + 3.0 * (u + mid) * spread)
    total = np.where(overflow, np.inf, total + arithmetic.tau_acc * (2.0 + spread))
    return w.exact * np.abs(exact - mean), np.where(w.allowed, total, 0.0)


def convex_slack(keys: int, reach: Array, arithmetic: Arithmetic) -> Array:
    """By how much a computed output may leave the range of the visible values, whose magnitudes are
    at most ``reach``.

    Computed weights are at least 0; they are exponentials e_j, each used once in the sum of
    products and once in the mass, so their own errors cancel. What is left: two sums of n terms, a
    division, the rescaling of both by online forms (each factor is shared by sum and mass up to its
    rounding), stored weights (2 u_mid) and the stored output.

    >>> bool(convex_slack(1, np.array(1.0), Arithmetic()) < 1e-6)
    True
    """
    u = arithmetic.u_acc
    sums = 2.0 * gamma(keys + 3, u) + 2.0 * arithmetic.u_mid + arithmetic.u_store
    rescale = 4.0 * u * arithmetic.blocks(keys)
    return (
        reach * (sums + rescale) * 1.001
        + arithmetic.tau_acc * (keys + 2) * (1.0 + reach)
        + arithmetic.tau_store
    )
