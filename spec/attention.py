"""Scaled dot-product attention: O = A V with A = masked_softmax(scale Q K^T + bias, allowed)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Shaped

from assay.spec.contraction import contract
from assay.spec.masks import causal_mask, combine, window_mask
from assay.spec.online import online_attend
from assay.spec.scalars import Array, broadcast
from assay.spec.softmax import masked_softmax, softmax_backward

Q = Shaped[np.ndarray, "B H L D"]
K = Shaped[np.ndarray, "B Hkv S D"]
V = Shaped[np.ndarray, "B Hkv S Dv"]
Window = tuple[int | None, int | None]


class AttentionGradients(NamedTuple):
    """Cotangents of the three inputs, each in its input's shape."""

    q: Q
    k: K
    v: V


def default_scale(width: int) -> float:
    """1 / sqrt(D), and 1 for D = 0.

    >>> default_scale(4), default_scale(0)
    (0.5, 1.0)
    """
    return 1.0 / math.sqrt(width) if width else 1.0


def kv_head(h: int, heads: int, kv_heads: int) -> int:
    """Key/value head that query head h reads: h // (H / Hkv). Neighbouring query heads share one.

    Source: J. Ainslie et al., "GQA" (2023), figure 2.

    >>> [kv_head(h, 4, 2) for h in range(4)]
    [0, 0, 1, 1]
    """
    return h // (heads // kv_heads)


def _check(q: Q, k: K, v: V) -> None:
    if q.ndim != 4 or k.ndim != 4 or v.ndim != 4:
        raise ValueError(
            "q, k and v must have 4 axes [batch, heads, length, width], "
            f"got shapes {q.shape}, {k.shape}, {v.shape}"
        )
    if q.shape[3] != k.shape[3]:
        raise ValueError(f"width of q ({q.shape[3]}) must equal width of k ({k.shape[3]})")
    if k.shape[:3] != v.shape[:3]:
        raise ValueError(
            f"batch, heads and length of k {k.shape[:3]} must equal those of v {v.shape[:3]}"
        )
    if q.shape[0] != k.shape[0]:
        raise ValueError(f"batch of q ({q.shape[0]}) must equal batch of k ({k.shape[0]})")
    if (k.shape[1] == 0) != (q.shape[1] == 0) or (k.shape[1] and q.shape[1] % k.shape[1]):
        raise ValueError(
            f"heads of q ({q.shape[1]}) must be a multiple of heads of k ({k.shape[1]})"
        )


def expand_kv(x: Shaped[np.ndarray, "B Hkv S W"], heads: int) -> Shaped[np.ndarray, "B H S W"]:
    """Repeat key/value heads so that query head h finds its own at index h.

    >>> expand_kv(np.array([10.0, 20.0]).reshape(1, 2, 1, 1), 4).ravel().tolist()
    [10.0, 10.0, 20.0, 20.0]
    """
    kv_heads = x.shape[1]
    if heads == kv_heads:
        return x
    return x[:, [kv_head(h, heads, kv_heads) for h in range(heads)]]


def collapse_kv(x: Shaped[np.ndarray, "B H S W"], kv_heads: int) -> Shaped[np.ndarray, "B Hkv S W"]:
    """Adjoint of ``expand_kv``: sum over the query heads of a group."""
    batch, heads, keys, width = x.shape
    if heads == kv_heads:
        return x
    return x.reshape(batch, kv_heads, heads // max(kv_heads, 1), keys, width).sum(axis=2)


def visible(
    q: Q,
    k: K,
    *,
    mask: Array | None = None,
    causal: bool = False,
    offset: int = 0,
    window: Window | None = None,
) -> Bool[np.ndarray, "B H L S"]:
    """Which key each query may see: the boolean mask, the causal rule and the window together.

    A boolean ``mask`` has True where attention is allowed; a float mask is added to the scores and
    blocks where it is -inf.
    """
    queries, keys = q.shape[2], k.shape[2]
    hard = (
        mask
        if mask is None or mask.dtype in (np.dtype(bool), np.dtype(object))
        else ~np.isneginf(mask)
    )
    rules = combine(
        hard,
        causal_mask(queries, keys, offset) if causal else None,
        window_mask(queries, keys, offset, *window) if window is not None else None,
    )
    shape = (q.shape[0], q.shape[1], queries, keys)
    return np.ones(shape, dtype=bool) if rules is None else broadcast(rules, shape)


def _bias(mask: Array | None) -> Array | None:
    if mask is None or mask.dtype in (np.dtype(bool), np.dtype(object)):
        return None
    return np.where(np.isneginf(mask), 0, mask)


def attention_scores(
    q: Q, k: K, mask: Array | None, scale: float | None
) -> Shaped[np.ndarray, "B H L S"]:
    """scale Q K^T + bias; ``scale`` is 1 / sqrt(D) unless given; 0 and negative ones are legal."""
    factor = default_scale(q.shape[3]) if scale is None else scale
    scores = np.matmul(q, np.swapaxes(expand_kv(k, q.shape[1]), -1, -2)) * factor
    bias = _bias(mask)
    return scores if bias is None else scores + bias


def attention_weights(
    q: Q,
    k: K,
    *,
    mask: Array | None = None,
    causal: bool = False,
    offset: int = 0,
    window: Window | None = None,
    scale: float | None = None,
) -> Shaped[np.ndarray, "B H L S"]:
    """The weights A of ``attention``: rows sum to 1, or are all zeros when no key is visible."""
    allowed = visible(q, k, mask=mask, causal=causal, offset=offset, window=window)
    return masked_softmax(attention_scores(q, k, mask, scale), allowed)


def attention(
    q: Q,
    k: K,
    v: V,
    *,
    mask: Array | None = None,
    causal: bool = False,
    offset: int = 0,
    window: Window | None = None,
    scale: float | None = None,
) -> Shaped[np.ndarray, "B H L Dv"]:
    """Each query's weighted mean of the visible values.

    q [B, H, L, D], k [B, Hkv, S, D], v [B, Hkv, S, Dv] with Hkv dividing H; mask broadcastable to
    [B, H, L, S]. A chunk of a longer sequence is the same call with ``offset`` = number of
    positions before it. A query that sees no key gets zeros. Source: A. Vaswani et al., "Attention
    is all you need" (2017), equation 1.

    >>> x = np.ones((1, 1, 2, 1)); v = np.array([2.0, 4.0]).reshape(1, 1, 2, 1)
    >>> attention(x, x, v, causal=True).ravel().tolist()
    [2.0, 3.0]
    """
    _check(q, k, v)
    allowed = visible(q, k, mask=mask, causal=causal, offset=offset, window=window)
    weights = masked_softmax(attention_scores(q, k, mask, scale), allowed)
    return contract(weights, allowed, expand_kv(v, q.shape[1]))


def attention_backward(
    q: Q,
    k: K,
    v: V,
    cotangent: Shaped[np.ndarray, "B H L Dv"],
    *,
    mask: Array | None = None,
    causal: bool = False,
    offset: int = 0,
    window: Window | None = None,
    scale: float | None = None,
) -> AttentionGradients:
    """Gradients of sum(O * cotangent): dV = A^T dO, dS = softmax_backward(A, dO V^T), dQ = scale dS
    K, dK = scale dS^T Q.

    Blocked pairs contribute exactly 0, also when a blocked key, value or cotangent row is not
    finite.
    """
    _check(q, k, v)
    heads, kv_heads = q.shape[1], k.shape[1]
    factor = default_scale(q.shape[3]) if scale is None else scale
    allowed = visible(q, k, mask=mask, causal=causal, offset=offset, window=window)
    weights = masked_softmax(attention_scores(q, k, mask, scale), allowed)
    across = np.swapaxes(allowed, -1, -2)
    dv = contract(np.swapaxes(weights, -1, -2), across, cotangent)
    da = np.matmul(cotangent, np.swapaxes(expand_kv(v, heads), -1, -2))
    ds = softmax_backward(weights, da, allowed)
    dq = contract(ds, allowed, expand_kv(k, heads)) * factor
    dk = contract(np.swapaxes(ds, -1, -2), across, q) * factor
    return AttentionGradients(dq, collapse_kv(dk, kv_heads), collapse_kv(dv, kv_heads))


def flash_attention(
    q: Q,
    k: K,
    v: V,
    *,
    block: int,
    mask: Array | None = None,
    causal: bool = False,
    offset: int = 0,
    window: Window | None = None,
    scale: float | None = None,
) -> Shaped[np.ndarray, "B H L Dv"]:
    """``attention`` by the online recurrence, ``block`` keys at a time. Equal to it over the reals.

    >>> x = np.arange(6.0).reshape(1, 1, 3, 2)
    >>> tiled = flash_attention(x, x, x, block=2, causal=True)
    >>> direct = attention(x, x, x, causal=True)
    >>> bool(np.allclose(tiled, direct))
    True
    """
    _check(q, k, v)
    allowed = visible(q, k, mask=mask, causal=causal, offset=offset, window=window)
    scores = attention_scores(q, k, mask, scale)
    values = expand_kv(v, q.shape[1])[:, :, None]
    return online_attend(
        scores, allowed, np.broadcast_to(values, (*scores.shape[:3], *values.shape[3:])), block
    )
