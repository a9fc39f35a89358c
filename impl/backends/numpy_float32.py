"""numpy.float32: masked softmax and attention in plain numpy, one array expression a step, with
gradients by hand.

16-bit inputs are computed in float32 and rounded once at the end; float64 inputs are computed in
float64.
"""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

from assay.impl.backends.shapes import check_attention, check_softmax
from assay.impl.contract import Contract
from assay.impl.numpy_backend import NumpyBackend
from assay.impl.protocol import implements, implements_vjp

Array = np.ndarray
Window = tuple[int | None, int | None]


class NumpyFloat32(NumpyBackend):
    """Both ops, every attribute, and nothing at a blocked position has any influence."""

    contract = Contract(
        name="numpy.float32",
        dtypes=("float32", "bfloat16", "float16", "float64"),
        provider="numpy",
        exp_ulps=2.0,
        empty_row="zeros",
        blocked_nonfinite="isolates",
        grouped_heads=True,
        value_width=True,
        requires=("numpy",),
    )

    @implements("masked_softmax")
    def masked_softmax(self, scores: Array, *, mask: Array | None = None) -> Array:
        """Weights in the shape and dtype of ``scores`` [..., S]."""
        check_softmax(scores, mask)
        x, allowed = _masked(_wide(scores), mask)
        return _softmax(x, allowed).astype(scores.dtype)

    @implements_vjp("masked_softmax")
    def masked_softmax_vjp(
        self, scores: Array, *, mask: Array | None = None, weights: Array
    ) -> dict[str, Array]:
        """``weights`` is the cotangent of the output."""
        x, allowed = _masked(_wide(scores), mask)
        slopes = _softmax_vjp(_softmax(x, allowed), _wide(weights), allowed)
        return {"scores": slopes.astype(scores.dtype)}

    @implements("attention")
    def attention(
        self,
        q: Array,
        k: Array,
        v: Array,
        *,
        mask: Array | None = None,
        causal: bool = False,
        offset: int = 0,
        window: Window | None = None,
        scale: float | None = None,
    ) -> Array:
        """Output [B, H, L, Dv] in the dtype of ``q``."""
        check_attention(q, k, v, mask)
        p, allowed = _weights(q, k, mask, causal, offset, window, scale)
        return _mix(p, allowed, _per_query_head(_wide(v), q.shape[1])).astype(q.dtype)

    @implements_vjp("attention")
    def attention_vjp(
        self,
        q: Array,
        k: Array,
        v: Array,
        *,
        out: Array,
        mask: Array | None = None,
        causal: bool = False,
        offset: int = 0,
        window: Window | None = None,
        scale: float | None = None,
    ) -> dict[str, Array]:
        """``out`` is the cotangent of the output."""
        heads, groups = q.shape[1], k.shape[1]
        p, allowed = _weights(q, k, mask, causal, offset, window, scale)
        back, g = allowed.swapaxes(2, 3), _wide(out)
        keys, values = (_per_query_head(_wide(x), heads) for x in (k, v))
        ds = _softmax_vjp(p, g @ values.swapaxes(2, 3), allowed) * _factor(q, scale)
        dq = _mix(ds, allowed, keys)
        dk = _per_key_head(_mix(ds.swapaxes(2, 3), back, _wide(q)), groups)
        dv = _per_key_head(_mix(p.swapaxes(2, 3), back, g), groups)
        return {"q": dq.astype(q.dtype), "k": dk.astype(k.dtype), "v": dv.astype(v.dtype)}


def _wide(x: Array) -> Array:
    """In the dtype that is computed in."""
    return x.astype(np.float32) if x.dtype in (np.float16, ml_dtypes.bfloat16) else x


def _factor(q: Array, scale: float | None) -> Any:
    plain = 1.0 / math.sqrt(max(q.shape[3], 1)) if scale is None else scale
    return _wide(q).dtype.type(plain)


def _masked(x: Array, mask: Array | None) -> tuple[Array, Array]:
    """Scores with an additive mask added, and where they are allowed (in the shape of the
    scores).
    """
    if mask is None:
        return x, np.ones(x.shape, dtype=bool)
    if mask.dtype == bool:
        return x, np.broadcast_to(mask, x.shape)
    added = _wide(mask)
    return x + added, np.broadcast_to(added != -np.inf, x.shape)


def _softmax(x: Array, allowed: Array) -> Array:
    """exp(x - top) over its sum; blocked entries are 0, and so is a row without allowed ones."""
    bottom = np.where(allowed, x, -np.inf)
    top = bottom.max(axis=-1, keepdims=True, initial=-np.inf)
    some = allowed.any(axis=-1, keepdims=True)
    e = np.where(allowed, np.exp(bottom - np.where(some, top, 0)), 0)
    mass = e.sum(axis=-1, keepdims=True)
    return e / np.where(some, mass, 1)


def _softmax_vjp(p: Array, g: Array, allowed: Array) -> Array:
    seen = np.where(allowed, g, 0)
    return np.where(allowed, p * (seen - (p * seen).sum(axis=-1, keepdims=True)), 0)


def _weights(
    q: Array,
    k: Array,
    mask: Array | None,
    causal: bool,
    offset: int,
    window: Window | None,
    scale: float | None,
) -> tuple[Array, Array]:
    x = _wide(q) @ _per_query_head(_wide(k), q.shape[1]).swapaxes(2, 3) * _factor(q, scale)
    x, allowed = _masked(x, mask)
    # Distance of key j from query i, forward in time positive.
    ahead = np.arange(k.shape[2]) - np.arange(q.shape[2])[:, None] - offset
    left, right = window or (None, None)
    if left is not None:
        allowed = allowed & (ahead >= -left)
    for limit in (0 if causal else None, right):
        if limit is not None:
            allowed = allowed & (ahead <= limit)
    return _softmax(x, allowed), allowed


def _mix(p: Array, allowed: Array, x: Array) -> Array:
    """p @ x, where a row of x that holds NaN or infinity reaches only the rows that may see it."""
    good = np.isfinite(x)
    if good.all():
        return p @ x
    total = p @ np.where(good, x, 0)
    for j in np.flatnonzero(~good.all(axis=(0, 1, 3))):
        part = np.where(good[:, :, j, None], 0, p[..., j, None] * x[:, :, j, None])
        total = total + np.where(allowed[..., j, None], part, 0)
    return total


def _per_query_head(x: Array, heads: int) -> Array:
    return x if x.shape[1] == heads else np.repeat(x, heads // x.shape[1], axis=1)


def _per_key_head(x: Array, groups: int) -> Array:
    if x.shape[1] == groups:
        return x
    return x.reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:]).sum(axis=2)
