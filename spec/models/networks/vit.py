"""Vision transformer: logits = head(pool(norm(blocks([class token; patches] + P))))."""

from __future__ import annotations

from assay.spec.layers.layer import Layer, sequential
from assay.spec.layers.leaves import linear_layer, position_layer
from assay.spec.layers.self_attention import Sight
from assay.spec.models.networks.images import FIRST_TOKEN, MEAN_TOKEN, patch_layer
from assay.spec.models.networks.passes import passes
from assay.spec.models.networks.transformer import attention_branch, block, mlp_branch, norm_at
from assay.spec.models.vit import ViTConfig


def network(config: ViTConfig) -> Layer:
    """x [B, C, *n] -> logits [B, classes]: the mean over all tokens, or row 0, is read out.

    Every token sees every other one. Evaluation: the stored dropout rates are not read. Source: A.
    Dosovitskiy et al., "An image is worth 16x16 words" (2020), equations 1 to 4.
    """
    token = "class_token" if config.pooling == "cls" else None
    blocks = [
        block(
            path,
            attention_branch(
                f"{path}.attention", config.heads, Sight(), input_bias=config.input_bias
            ),
            mlp_branch(f"{path}.mlp", config.activation),
        )
        for path in (f"block.{i}" for i in range(config.layers))
    ]
    return sequential(
        patch_layer("patch", token, config.strides, config.paddings),
        position_layer("position"),
        *blocks,
        norm_at("final"),
        MEAN_TOKEN if token is None else FIRST_TOKEN,
        linear_layer("head.weight", "head.bias"),
    )


forward, backward = passes(network)
