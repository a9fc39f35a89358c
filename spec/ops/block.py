"""Transformer layers as ops: an encoder layer, and a decoder layer that reads a memory as well."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from assay.spec.layers.cross_attention import cross_attention_branch
from assay.spec.layers.layer import Layer, residual, sequential
from assay.spec.layers.self_attention import Sight
from assay.spec.models.networks.transformer import (
    block,
    fused_attention_branch,
    mlp_branch,
    norm_at,
)
from assay.spec.ops.entry import Arrays, Attribute, Attributes, Input, Op

Make = Callable[[Arrays, Attributes], Layer]


def _norm(number: int) -> dict[str, str]:
    return {
        f"norm{number}": f"layer.ln{number}.weight",
        f"norm{number}_bias": f"layer.ln{number}.bias",
    }


def _linear(name: str, path: str) -> dict[str, str]:
    return {name: f"{path}.weight", f"{name}_bias": f"{path}.bias"}


_SELF = {**_linear("qkv", "self.qkv"), **_linear("out_proj", "self.output")}
_CROSS = {**_linear("cross_qkv", "cross.qkv"), **_linear("cross_proj", "cross.output")}
_MLP = {**_linear("up", "mlp.up"), **_linear("down", "mlp.down")}
_ENCODER = {**_SELF, **_MLP, **_norm(1), **_norm(2)}
_DECODER = {**_SELF, **_CROSS, **_MLP, **_norm(1), **_norm(2), **_norm(3)}
"""Each input that is a parameter, and the name under which the layer stores it."""


def encoder(inputs: Arrays, attributes: Attributes) -> Layer:
    """x + attention, then + mlp: norms after the additions, or before the branches where
    ``norm_first``.
    """
    sight = Sight(causal=attributes.get("causal", False), keys=inputs.get("keys"))
    attention = fused_attention_branch("self", attributes.get("heads", 1), sight)
    mlp = mlp_branch("mlp", attributes.get("activation", "relu"))
    return block("layer", attention, mlp, pre=attributes.get("norm_first", False))


def decoder(inputs: Arrays, attributes: Attributes) -> Layer:
    """The same with attention to the memory in between; ``memory_keys`` are those of it that are
    seen.
    """
    heads = attributes.get("heads", 1)
    sight = Sight(causal=attributes.get("causal", False), keys=inputs.get("keys"))
    branches = (
        fused_attention_branch("self", heads, sight),
        cross_attention_branch("cross", "memory", heads, Sight(keys=inputs.get("memory_keys"))),
        mlp_branch("mlp", attributes.get("activation", "relu")),
    )
    norms = [norm_at(f"layer.ln{i}") for i in (1, 2, 3)]
    if attributes.get("norm_first", False):
        return sequential(
            *(residual(sequential(n, b)) for n, b in zip(norms, branches, strict=True))
        )
    return sequential(
        *(part for n, b in zip(norms, branches, strict=True) for part in (residual(b), n))
    )


def _block(
    name: str, summary: str, make: Make, stored: dict[str, str], more: tuple[str, ...]
) -> Op:
    """``more``: what is read besides x, and gets a gradient as the parameters do."""
    stored = {**stored, **{n: n for n in more}}

    def params(inputs: Arrays) -> dict[str, np.ndarray]:
        return {path: inputs[n] for n, path in stored.items()}

    def forward(inputs: Arrays, attributes: Attributes) -> dict[str, np.ndarray]:
        return {"out": make(inputs, attributes).forward(params(inputs), inputs["x"])}

    def backward(
        inputs: Arrays, cotangents: Arrays, attributes: Attributes
    ) -> dict[str, np.ndarray]:
        layer = make(inputs, attributes)
        behind, found = layer.backward(params(inputs), inputs["x"], cotangents["out"])
        assert behind is not None
        return {"x": behind, **{n: found[path] for n, path in stored.items()}}

    keys = ("keys", "memory_keys") if more else ("keys",)
    return Op(
        name=name,
        summary=summary,
        inputs=(
            Input("x", ("B", "T", "F")),
            *(Input(n, ("B", "S", "F")) for n in more),
            *(Input(n, _SHAPES[n.rstrip("123")]) for n in stored if n not in more),
            *(
                Input(n, ("B", length), differentiable=False, optional=True, holds="bool")
                for n, length in zip(keys, "TS", strict=False)
            ),
        ),
        attributes=(
            Attribute("heads", 1, "heads of each attention; a divisor of F"),
            Attribute("causal", False, "token i sees tokens up to i"),
            Attribute("norm_first", False, "norms before the branches, not after the additions"),
            Attribute("activation", "relu", "of the feed-forward branch: relu or gelu"),
        ),
        outputs={"out": ("B", "T", "F")},
        forward=forward,
        backward=backward,
    )


_SHAPES: dict[str, tuple[str, ...]] = {
    **{f"{p}qkv": ("3F", "F") for p in ("", "cross_")},
    **{f"{p}qkv_bias": ("3F",) for p in ("", "cross_")},
    **dict.fromkeys(("out_proj", "cross_proj"), ("F", "F")),
    **{f"{n}_bias": ("F",) for n in ("out_proj", "cross_proj", "down")},
    **dict.fromkeys(("norm", "norm1_bias", "norm2_bias", "norm3_bias"), ("F",)),
    "up": ("M", "F"),
    "up_bias": ("M",),
    "down": ("F", "M"),
}

BLOCK: tuple[Op, ...] = (
    _block(
        "encoder_layer",
        "transformer encoder layer: self-attention, a feed-forward branch and their norms",
        encoder,
        _ENCODER,
        (),
    ),
    _block(
        "decoder_layer",
        "transformer decoder layer: the same, and attention to a memory",
        decoder,
        _DECODER,
        ("memory",),
    ),
)
