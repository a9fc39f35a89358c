"""Multi-head cross-attention: y = merge(softmax(Q_h K_h^T / sqrt(Dh)) V_h) Wo + bo, with queries
from x, and keys and values from a memory.
"""

from __future__ import annotations

import numpy as np

from assay.spec.attention import attention, attention_backward
from assay.spec.layers.layer import Gradients, Layer, Params
from assay.spec.layers.leaves import linear_layer
from assay.spec.layers.linear import linear, linear_backward
from assay.spec.layers.self_attention import Sight, merge_heads, split_heads
from assay.spec.scalars import Array


def cross_attention_branch(path: str, memory: str, heads: int, sight: Sight) -> Layer:
    """x [B, T, F] -> [B, T, F], reading the parameter ``memory`` [B, S, F], which gets a gradient.

    The rows of ``path.qkv`` [3 F, F] are those of queries, keys and values. Source: A. Vaswani et
    al., "Attention is all you need" (2017), section 3.2.3.
    """
    out = linear_layer(f"{path}.output.weight", f"{path}.output.bias")
    weight, bias = f"{path}.qkv.weight", f"{path}.qkv.bias"

    def heads_of(params: Params, x: Array) -> tuple[Array, Array, Array]:
        width = x.shape[-1]
        w, b = params[weight], params[bias]
        q = linear(x, w[:width], b[:width])
        kv = linear(params[memory], w[width:], b[width:])
        parts = (q, kv[..., :width], kv[..., width:])
        of_q, of_k, of_v = (split_heads(part, heads) for part in parts)
        return of_q, of_k, of_v

    def seen(params: Params, x: Array) -> Array:
        q, k, v = heads_of(params, x)
        return merge_heads(attention(q, k, v, mask=sight.mask(x.shape[1])))

    def forward(params: Params, x: Array) -> Array:
        return out.forward(params, seen(params, x))

    def backward(params: Params, x: Array, cotangent: Array) -> tuple[Array, Gradients]:
        width = x.shape[-1]
        behind, found = out.backward(params, seen(params, x), cotangent)
        assert behind is not None
        mask = sight.mask(x.shape[1])
        slopes = attention_backward(*heads_of(params, x), split_heads(behind, heads), mask=mask)
        gq, gk, gv = (merge_heads(g) for g in slopes)
        w = params[weight]
        of_x = linear_backward(x, w[:width], gq)
        of_memory = linear_backward(params[memory], w[width:], np.concatenate([gk, gv], axis=-1))
        return of_x.x, {
            **found,
            memory: of_memory.x,
            weight: np.concatenate([of_x.weight, of_memory.weight]),
            bias: np.concatenate([of_x.bias, of_memory.bias]),
        }

    return Layer((memory, weight, bias, *out.names), forward, backward)
