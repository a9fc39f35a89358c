"""Hard-masked softmax: w_j = exp(s_j) / sum over allowed k of exp(s_k) where j is allowed, exactly
0 where it is not.
"""

from __future__ import annotations

import numpy as np

from assay.spec.scalars import Array, any_of, broadcast, exp, row_max, select, total


def _everywhere(scores: Array) -> Array:
    return np.ones(scores.shape, dtype=bool)


def masked_softmax(scores: Array, allowed: Array | None = None) -> Array:
    """Softmax over the last axis that looks at allowed entries only.

    scores [..., S], allowed bool broadcastable to it (None: all). A blocked entry gets weight 0 and
    has no influence, whatever it holds (NaN, inf); a row with none allowed is all zeros; S = 0
    gives an empty row. Source: the convention of most fused kernels for an empty row; shift by the
    maximum as in N. Higham and coauthors, "Accurately computing the log-sum-exp and softmax
    functions" (2021), algorithm 4.1.

    >>> only_first = np.array([True, False, False, False])
    >>> masked_softmax(np.array([0.5, 1.5, np.nan, 2.0]), only_first).tolist()
    [1.0, 0.0, 0.0, 0.0]
    >>> masked_softmax(np.array([[1.0, 2.0]]), np.array([[False, False]])).tolist()
    [[0.0, 0.0]]
    """
    if allowed is None:
        allowed = _everywhere(scores)
    top = row_max(scores, allowed)
    # A blocked score is replaced before the exponential, so that it can neither overflow nor
    # poison.
    weights = select(allowed, exp(select(allowed, scores, top) - top), 0)
    mass = total(weights)
    return weights / select(any_of(broadcast(allowed, scores.shape)), mass, 1)


def softmax(scores: Array) -> Array:
    """Softmax over the last axis, nothing blocked.

    >>> softmax(np.array([0.0, 0.0])).tolist()
    [0.5, 0.5]
    """
    return masked_softmax(scores)


def penalty_softmax(scores: Array, allowed: Array, penalty: float) -> Array:
    """Softmax of s - penalty at blocked entries: what finite masks compute. Kept for contrast; it
    leaks.

    >>> bool(penalty_softmax(np.array([0.5, 2.0]), np.array([True, False]), 30.0)[1] > 0)
    True
    """
    return softmax(select(allowed, scores, scores - penalty))


def sentinel_softmax(scores: Array, allowed: Array, sentinel: float) -> Array:
    """Softmax with blocked scores replaced by ``sentinel``; an empty row becomes uniform. Kept for
    contrast.

    >>> sentinel_softmax(np.array([1.0, 2.0]), np.array([False, False]), -1e30).tolist()
    [0.5, 0.5]
    """
    return softmax(select(allowed, scores, sentinel))


def softmax_backward(weights: Array, cotangent: Array, allowed: Array | None = None) -> Array:
    """Gradient into the scores, from the weights: w * (g - sum_j g_j w_j).

    weights and cotangent [..., S]. Exactly 0 at blocked entries, whatever the cotangent holds
    there; rows sum to 0. The same expression is the forward derivative. Source: the Jacobian
    diag(w) - w w^T.

    >>> softmax_backward(np.array([0.5, 0.5]), np.array([1.0, 0.0])).tolist()
    [0.25, -0.25]
    """
    if allowed is None:
        return weights * (cotangent - total(cotangent * weights))
    seen = select(allowed, cotangent, 0)
    return select(allowed, weights * (seen - total(seen * weights)), 0)
