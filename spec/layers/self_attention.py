"""Multi-head self-attention: y = merge(softmax(Q_h K_h^T / sqrt(Dh)) V_h) Wo + bo, with Q, K, V =
split(x Wq), split(x Wk), split(x Wv).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int, Shaped

from assay.spec.attention import attention, attention_backward
from assay.spec.cache import padded_visible
from assay.spec.layers.layer import Gradients, Layer, Params
from assay.spec.scalars import Array


def split_heads(x: Shaped[np.ndarray, "B T F"], heads: int) -> Shaped[np.ndarray, "B H T D"]:
    """Features to heads: the head is the slow index of a feature, so head h owns features h D to (h
    + 1) D.

    A reshape straight to [B, H, T, D] would run as well, and mix tokens.

    >>> split_heads(np.arange(8.0).reshape(1, 2, 4), 2).ravel().tolist()
    [0.0, 1.0, 4.0, 5.0, 2.0, 3.0, 6.0, 7.0]
    """
    batch, length, width = x.shape
    if heads < 1 or width % heads:
        raise ValueError(f"heads={heads} does not divide width={width}; valid: a divisor of it")
    return np.swapaxes(x.reshape(batch, length, heads, width // heads), 1, 2)


def merge_heads(x: Shaped[np.ndarray, "B H T D"]) -> Shaped[np.ndarray, "B T F"]:
    """Inverse of ``split_heads``.

    >>> x = np.arange(8.0).reshape(1, 2, 4)
    >>> bool((merge_heads(split_heads(x, 2)) == x).all())
    True
    """
    batch, heads, length, width = x.shape
    return np.swapaxes(x, 1, 2).reshape(batch, length, heads * width)


@dataclass(frozen=True)
class Sight:
    """Which keys the queries of a layer see: all, or those up to their own position (causal).

    pads  row b begins with pads[b] padding tokens, which are seen by themselves only; causal
    keys  the keys of row b that any query sees; without ``pads``
    """

    causal: bool = False
    pads: Int[np.ndarray, " B"] | None = None
    keys: Bool[np.ndarray, "B S"] | None = None

    def mask(self, tokens: int) -> Bool[np.ndarray, "B 1 T S"] | None:
        """What the causal flag alone does not say."""
        if self.keys is not None:
            return self.keys[:, None, None, :]
        return None if self.pads is None else padded_visible(self.pads, tokens)


def split_fused(x: Shaped[np.ndarray, "B T F3"], heads: int) -> tuple[Array, Array, Array]:
    """[Q K V] side by side -> queries, keys and values of each head, [B, H, T, D]."""
    width = x.shape[-1] // 3
    parts = (x[..., :width], x[..., width : 2 * width], x[..., 2 * width :])
    q, k, v = (split_heads(part, heads) for part in parts)
    return q, k, v


def attend(heads: int, sight: Sight) -> Layer:
    """The layer [Q K V] -> O on [B, T, 3 F] -> [B, T, F]: attention in each head, without matrices.

    >>> attend(1, Sight(causal=True)).forward({}, np.array([[[1.0, 1.0, 5.0]]])).tolist()
    [[[5.0]]]
    """

    def forward(_: Params, x: Array) -> Array:
        q, k, v = split_fused(x, heads)
        return merge_heads(attention(q, k, v, mask=sight.mask(x.shape[1]), causal=sight.causal))

    def backward(_: Params, x: Array, cotangent: Array) -> tuple[Array, Gradients]:
        q, k, v = split_fused(x, heads)
        behind = split_heads(cotangent, heads)
        mask = sight.mask(x.shape[1])
        found = attention_backward(q, k, v, behind, mask=mask, causal=sight.causal)
        return np.concatenate([merge_heads(g) for g in found], axis=-1), {}

    return Layer((), forward, backward)
