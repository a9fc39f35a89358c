"""torch.encoder_layer and torch.decoder_layer: ``nn.TransformerEncoderLayer`` and
``nn.TransformerDecoderLayer``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn

from assay.impl.contract import Contract
from assay.impl.protocol import Unsupported, implements
from assay.impl.torch_backend import TorchBackend

_NEEDS_MASK = "Need attn_mask if specifying the is_causal hint"

_ENCODER = {
    "qkv": "self_attn.in_proj_weight",
    "qkv_bias": "self_attn.in_proj_bias",
    "out_proj": "self_attn.out_proj.weight",
    "out_proj_bias": "self_attn.out_proj.bias",
    "up": "linear1.weight",
    "up_bias": "linear1.bias",
    "down": "linear2.weight",
    "down_bias": "linear2.bias",
    "norm1": "norm1.weight",
    "norm1_bias": "norm1.bias",
    "norm2": "norm2.weight",
    "norm2_bias": "norm2.bias",
}
_DECODER = {
    **_ENCODER,
    "cross_qkv": "multihead_attn.in_proj_weight",
    "cross_qkv_bias": "multihead_attn.in_proj_bias",
    "cross_proj": "multihead_attn.out_proj.weight",
    "cross_proj_bias": "multihead_attn.out_proj.bias",
    "norm3": "norm3.weight",
    "norm3_bias": "norm3.bias",
}
"""The layer's own name of each parameter."""


@lru_cache(maxsize=64)
def _layer(
    kind: Callable[..., nn.Module],
    width: int,
    heads: int,
    inner: int,
    activation: str,
    norm_first: bool,
) -> nn.Module:
    """On no device, so that it draws no random numbers: parameters come with each call."""
    with torch.device("meta"):
        return kind(
            width,
            heads,
            inner,
            dropout=0.0,
            activation=activation,
            batch_first=True,
            norm_first=norm_first,
        )


class _Layer(TorchBackend):
    """Called as a user would: ``is_causal=True`` without a mask where causal says it all, in every
    mode. Where the layer refuses that, the call is unsupported.
    """

    def _run(
        self,
        kind: Callable[..., nn.Module],
        parameters: Mapping[str, Tensor],
        inputs: tuple[Tensor, ...],
        masks: Mapping[str, Any],
        **choices: Any,
    ) -> Tensor:
        names = _DECODER if kind is nn.TransformerDecoderLayer else _ENCODER
        inner, width = parameters["up"].shape
        layer = _layer(kind, width, inner=inner, **choices).train(self.mode == "train")
        own = {names[n]: p for n, p in parameters.items()}
        _check(layer, own)
        try:
            result: Tensor = torch.func.functional_call(layer, own, inputs, dict(masks))
        except RuntimeError as error:
            if _NEEDS_MASK in str(error):
                op = next(iter(self.operations()))
                raise Unsupported(
                    op, f"the layer refuses is_causal without a mask here: {error}"
                ) from error
            raise
        return result


def _check(layer: nn.Module, given: Mapping[str, Tensor]) -> None:
    """ValueError unless each parameter has the shape of the layer's."""
    for name, own in layer.named_parameters():
        if given[name].shape != own.shape:
            raise ValueError(f"{name} {tuple(given[name].shape)} must be {tuple(own.shape)}")


def _causal(x: Tensor, causal: bool, keys: Tensor | None) -> Tensor | None:
    """True where blocked; None where the flag is left to say it."""
    if not causal or keys is None:
        return None
    tokens = x.shape[1]
    return torch.ones(tokens, tokens, dtype=torch.bool, device=x.device).triu(1)


def _contract(name: str) -> Contract:
    return Contract(
        name=name,
        dtypes=("float32", "float64"),
        provider="ATen",
        intermediate="input",
        subnormals=False,
        modes=("train", "eval.grad", "eval.no_grad"),
        requires=("torch",),
    )


class TorchEncoderLayer(_Layer):
    """In eval and no_grad an even number of heads takes the fast path, one fused operator."""

    contract = _contract("torch.encoder_layer")

    @implements("encoder_layer")
    def encoder_layer(
        self,
        x: Tensor,
        *parameters: Tensor,
        keys: Tensor | None = None,
        heads: int = 1,
        causal: bool = False,
        norm_first: bool = False,
        activation: str = "relu",
    ) -> Tensor:
        """Output [B, T, F]; parameters in the order of the op."""
        masks = {
            "src_mask": _causal(x, causal, keys),
            "src_key_padding_mask": None if keys is None else ~keys,
            "is_causal": causal,
        }
        named = dict(zip(_ENCODER, parameters, strict=True))
        return self._run(
            nn.TransformerEncoderLayer,
            named,
            (x,),
            masks,
            heads=heads,
            activation=activation,
            norm_first=norm_first,
        )


class TorchDecoderLayer(_Layer):
    """In eval and no_grad the self-attention takes its own fast path."""

    contract = _contract("torch.decoder_layer")

    @implements("decoder_layer")
    def decoder_layer(
        self,
        x: Tensor,
        memory: Tensor,
        *parameters: Tensor,
        keys: Tensor | None = None,
        memory_keys: Tensor | None = None,
        heads: int = 1,
        causal: bool = False,
        norm_first: bool = False,
        activation: str = "relu",
    ) -> Tensor:
        """Output [B, T, F]; parameters in the order of the op."""
        masks = {
            "tgt_mask": _causal(x, causal, keys),
            "tgt_key_padding_mask": None if keys is None else ~keys,
            "memory_key_padding_mask": None if memory_keys is None else ~memory_keys,
            "tgt_is_causal": causal,
        }
        named = dict(zip(_ORDER, parameters, strict=True))
        return self._run(
            nn.TransformerDecoderLayer,
            named,
            (x, memory),
            masks,
            heads=heads,
            activation=activation,
            norm_first=norm_first,
        )


_ORDER = (
    *("qkv", "qkv_bias", "out_proj", "out_proj_bias"),
    *("cross_qkv", "cross_qkv_bias", "cross_proj", "cross_proj_bias"),
    *("up", "up_bias", "down", "down_bias"),
    *("norm1", "norm1_bias", "norm2", "norm2_bias", "norm3", "norm3_bias"),
)
"""Parameters of a decoder layer in the order of the op."""
