"""CharGPT: logits = head(norm(blocks(E[ids] + P)))."""

from __future__ import annotations

from assay.spec.layers.layer import Layer, sequential
from assay.spec.layers.leaves import embedding_layer, linear_layer, position_layer
from assay.spec.layers.self_attention import Sight
from assay.spec.models.char_gpt import CharGPTConfig
from assay.spec.models.networks.passes import passes
from assay.spec.models.networks.transformer import attention_branch, block, mlp_branch, norm_at


def network(config: CharGPTConfig) -> Layer:
    """ids [B, T] -> logits [B, T, V], for any T up to the context.

    Evaluation: the stored dropout rates are not read. A tied head is the token table without a
    bias, whose gradient is that of the lookup plus that of the head.
    """
    blocks = [
        block(
            path,
            attention_branch(
                f"{path}.attention",
                config.heads,
                Sight(causal=True),
                input_bias=config.input_bias,
                output_bias=config.output_bias,
            ),
            mlp_branch(f"{path}.mlp", config.activation),
            pre=config.pre_norm,
        )
        for path in (f"block.{i}" for i in range(config.layers))
    ]
    head = linear_layer("token") if config.tied else linear_layer("head.weight", "head.bias")
    return sequential(
        embedding_layer("token"), position_layer("position"), *blocks, norm_at("final"), head
    )


forward, backward = passes(network)
