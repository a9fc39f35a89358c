"""The course GPT: logits = norm(blocks(E[ids] + P[positions])) E^T."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Int, Shaped

from assay.spec.cache import (
    Cache,
    advance,
    decode_attention,
    empty,
    padded_positions,
)
from assay.spec.layers.embedding import embedding
from assay.spec.layers.layer import Gradients, Layer, Params, residual, sequential
from assay.spec.layers.leaves import embedding_layer, linear_layer, position_layer
from assay.spec.layers.self_attention import Sight, merge_heads, split_fused
from assay.spec.models.gpt import GPTConfig
from assay.spec.models.networks.passes import gradients
from assay.spec.models.networks.transformer import (
    block,
    fused_attention_branch,
    fused_projections,
    mlp_branch,
    norm_at,
)

Ids = Int[np.ndarray, "B T"]
Logits = Shaped[np.ndarray, "B T V"]
Pads = Int[np.ndarray, " B"]


def network(config: GPTConfig, *, pads: Pads | None = None) -> Layer:
    """ids [B, T] -> logits [B, T, V], for any T up to the context.

    ``pads``: row b begins with pads[b] padding tokens (none unless given). Positions are counted
    from the first real token, no padding is seen, and a padding query sees itself, so that no row
    of weights is empty. Source: A. Radford et al., "Language models are unsupervised multitask
    learners" (2019), section 2.3.
    """
    seen = Sight(causal=True, pads=pads)
    blocks = [
        block(
            path,
            fused_attention_branch(f"{path}.attention", config.heads, seen, bias=config.bias),
            _mlp(config, path),
            bias=config.bias,
        )
        for path in _paths(config)
    ]
    first = (embedding_layer("token"), position_layer("position", pads))
    return sequential(*first, *blocks, *_last(config))


def _paths(config: GPTConfig) -> list[str]:
    return [f"block.{i}" for i in range(config.layers)]


def _mlp(config: GPTConfig, path: str) -> Layer:
    return mlp_branch(f"{path}.mlp", "gelu", bias=config.bias)


def _last(config: GPTConfig) -> tuple[Layer, Layer]:
    return norm_at("final", bias=config.bias), linear_layer("token")


def forward(config: GPTConfig, params: Params, inputs: Ids, *, pads: Pads | None = None) -> Logits:
    """Logits of every position; see ``network``."""
    return network(config, pads=pads).forward(params, inputs)


def backward(
    config: GPTConfig, params: Params, inputs: Ids, cotangent: Logits, *, pads: Pads | None = None
) -> Gradients:
    """Gradients by parameter name; the table's is that of its lookup plus that of the head."""
    return gradients(network(config, pads=pads), params, inputs, cotangent)


def empty_cache(config: GPTConfig, batch: int, dtype: Any = np.float64) -> Cache:
    """Slots for the whole context in every layer and head.

    >>> empty_cache(GPTConfig(), 1, np.float32).k.nbytes * 2
    524288
    """
    return empty(config.layers, batch, config.heads, config.context, config.head_width, dtype=dtype)


def decode(
    config: GPTConfig, params: Params, ids: Ids, cache: Cache, *, pads: Pads | None = None
) -> tuple[Logits, Cache]:
    """Logits of the next chunk of tokens, and the cache that holds it as well.

    Equals the rows of ``forward`` on the whole sequence, however it is cut into chunks. The length
    advances once, after the last block. A chunk that goes beyond the context is refused before any
    lookup, and the cache is as it was.
    """
    start, tokens = cache.length, ids.shape[1]
    if start + tokens > config.context:
        raise ValueError(
            f"length={start} + tokens={tokens} exceeds context={config.context}; "
            f"valid: {config.context - start} more at most"
        )
    none = np.zeros(len(ids), dtype=int)
    places = padded_positions(none if pads is None else pads, tokens, start)
    x = embedding(ids, params["token"]) + embedding(places, params["position"])
    for layer, path in enumerate(_paths(config)):
        into, out = fused_projections(f"{path}.attention", bias=config.bias)
        h = sequential(norm_at(f"{path}.ln1", bias=config.bias), into).forward(params, x)
        q, k, v = split_fused(h, config.heads)
        seen, cache = decode_attention(q, k, v, cache, layer, pads=pads)
        x = x + out.forward(params, merge_heads(seen))
        mlp = sequential(norm_at(f"{path}.ln2", bias=config.bias), _mlp(config, path))
        x = residual(mlp).forward(params, x)
    return sequential(*_last(config)).forward(params, x), advance(cache, tokens)
