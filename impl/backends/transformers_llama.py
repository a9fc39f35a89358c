"""transformers.llama.*: attention and norm as the Llama of Hugging Face's transformers has them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask
from transformers.models.llama.modeling_llama import LlamaRMSNorm, eager_attention_forward

from assay.impl import Contract, TorchBackend, implements
from assay.impl.backends.shapes import check_attention, check_shapes
from assay.impl.backends.torch_masks import merge

QKV = tuple[Tensor, Tensor, Tensor]
DTYPES = ("float32", "bfloat16")
WHO: dict[str, Any] = {"provider": "ATen", "requires": ("transformers", "torch")}
FUSED: dict[str, Any] = {"block_sizes": (32, 64, 256, 512), "subnormals": False}
"""Of the tiles of torch's kernel, and of its exponential."""
SHARED: dict[str, Any] = {
    "intermediate": "input",
    "grouped_heads": True,
    "value_width": True,
}


def layer_of(q: Tensor, k: Tensor, v: Tensor) -> Any:
    """What the functions read of a layer: how many query heads share one of keys and values."""
    return SimpleNamespace(num_key_value_groups=q.shape[1] // max(k.shape[1], 1), training=False)


def causal_mask(q: Tensor, k: Tensor, offset: int) -> Any:
    """The mask [B, 1, L, S] of queries that stand ``offset`` behind the first key."""
    return sdpa_mask(q.shape[0], q.shape[2], k.shape[2], offset, allow_is_causal_skip=False)


class TransformersLlama(TorchBackend):
    """By torch's fused attention, with the causal rule as a flag where the model sets the flag, and
    as a mask elsewhere.
    """

    contract = Contract("transformers.llama", DTYPES, **SHARED, **FUSED, **WHO)

    @implements("attention")
    def attention(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        *,
        mask: Tensor | None = None,
        causal: bool = False,
        offset: int = 0,
        scale: float | None = None,
    ) -> Tensor:
        """Output [B, H, L, Dv]."""
        check_attention(q, k, v, mask)
        flag = causal and offset == 0 and q.shape[2] > 1 and mask is None
        if causal and not flag:
            mask = merge(mask, causal_mask(q, k, offset))
        return self.attend((q, k, v), mask, scale, flag)[0].transpose(1, 2)

    def attend(self, qkv: QKV, mask: Tensor | None, scale: float | None, flag: bool) -> Any:
        """Output [B, L, H, Dv], and no weights."""
        return sdpa_attention_forward(layer_of(*qkv), *qkv, mask, scaling=scale, is_causal=flag)


class TransformersLlamaEager(TransformersLlama):
    """With explicit scores, to which blocked keys get the least finite number added. Scores and
    weights are of the input's format, between them a softmax in float32.
    """

    contract = Contract(
        "transformers.llama.eager",
        (*DTYPES, "float64"),
        accumulate="float32",
        empty_row="mean_v",
        **SHARED,
        **WHO,
    )

    def attend(self, qkv: QKV, mask: Tensor | None, scale: float | None, flag: bool) -> Any:
        """Output [B, L, H, Dv] and weights. The mask is 0 and the least finite number, as the model
        makes it.
        """
        q, k, _ = qkv
        mask = causal_mask(q, k, 0) if flag else mask
        if mask is not None and mask.dtype is torch.bool:
            mask = torch.zeros_like(mask, dtype=q.dtype).masked_fill(~mask, -torch.inf)
        mask = None if mask is None else mask.clamp(min=torch.finfo(q.dtype).min)
        factor = max(q.shape[3], 1) ** -0.5 if scale is None else scale
        return eager_attention_forward(layer_of(*qkv), *qkv, mask, factor)


class TransformersLlamaNorm(TorchBackend):
    """``LlamaRMSNorm``, which rounds to the input's format before the gain."""

    contract = Contract("transformers.llama.norm", (*DTYPES, "float64"), accumulate="input", **WHO)

    @implements("rms_norm")
    def rms_norm(self, x: Tensor, *, weight: Tensor | None = None, eps: float = 1e-5) -> Tensor:
        """The shape of x."""
        check_shapes(weight=(weight, tuple(x.shape[-1:])))
        gain = x.new_ones(x.shape[-1:]) if weight is None else weight
        return functional_call(LlamaRMSNorm(x.shape[-1], eps), {"weight": gain}, (x,))
