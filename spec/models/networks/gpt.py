"""The course GPT: logits = norm(blocks(E[ids] + P[positions])) E^T."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Int, Shaped

from assay.spec.layers.layer import Gradients, Layer, Params, sequential
from assay.spec.layers.leaves import embedding_layer, linear_layer, position_layer
from assay.spec.layers.self_attention import Sight
from assay.spec.models.gpt import GPTConfig
from assay.spec.models.networks.passes import gradients
from assay.spec.models.networks.transformer import (
    block,
    fused_attention_branch,
    mlp_branch,
    norm_at,
)

Ids = Int[np.ndarray, "B T"]
Logits = Shaped[np.ndarray, "B T V"]


def left_padding(lengths: Int[np.ndarray, " B"], width: int) -> tuple[Ids, Bool[np.ndarray, "B T"]]:
    """Positions and key mask of sequences that end together: the first T - length slots are padding
    at position 0.

    >>> positions, real = left_padding(np.array([1, 3]), 3)
    >>> positions.tolist(), real.astype(int).tolist()
    ([[0, 0, 0], [0, 1, 2]], [[0, 0, 1], [1, 1, 1]])
    """
    place = np.arange(width) - (width - np.asarray(lengths)[:, None])
    return np.maximum(place, 0), place >= 0


def padded_sight(real: Bool[np.ndarray, "B T"]) -> Sight:
    """Causal, among real keys; a padding query sees itself, so that no row of weights is empty.

    The mask is joined with the causal rule, which the first row of the example still lacks.

    >>> padded_sight(np.array([[False, True]])).mask.astype(int).tolist()
    [[[[1, 1], [0, 1]]]]
    """
    itself = np.eye(real.shape[1], dtype=bool)
    return Sight(causal=True, mask=real[:, None, None, :] | itself)


def network(
    config: GPTConfig, *, positions: Ids | None = None, real: Bool[np.ndarray, "B T"] | None = None
) -> Layer:
    """ids [B, T] -> logits [B, T, V], for any T up to the context.

    ``positions`` are 0, 1, ... unless given; keys where ``real`` is False are padding. Source: A.
    Radford et al., "Language models are unsupervised multitask learners" (2019), section 2.3.
    """
    sight = Sight(causal=True) if real is None else padded_sight(real)
    blocks = [
        block(
            path,
            fused_attention_branch(f"{path}.attention", config.heads, sight, bias=config.bias),
            mlp_branch(f"{path}.mlp", "gelu", bias=config.bias),
            bias=config.bias,
        )
        for path in (f"block.{i}" for i in range(config.layers))
    ]
    return sequential(
        embedding_layer("token"),
        position_layer("position", positions),
        *blocks,
        norm_at("final", bias=config.bias),
        linear_layer("token"),
    )


def forward(
    config: GPTConfig,
    params: Params,
    ids: Ids,
    *,
    positions: Ids | None = None,
    real: Bool[np.ndarray, "B T"] | None = None,
) -> Logits:
    """Logits of every position; see ``network``."""
    return network(config, positions=positions, real=real).forward(params, ids)


def backward(
    config: GPTConfig,
    params: Params,
    ids: Ids,
    cotangent: Logits,
    *,
    positions: Ids | None = None,
    real: Bool[np.ndarray, "B T"] | None = None,
) -> Gradients:
    """Gradients by parameter name; the table's is that of its lookup plus that of the head."""
    layer = network(config, positions=positions, real=real)
    return gradients(layer, params, ids, cotangent)
