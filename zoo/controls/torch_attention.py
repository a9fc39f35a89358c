"""Sound attention in torch: recomputed for the backward pass, mapped over heads."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from assay.impl.backends.shapes import check_attention
from assay.impl.backends.torch_manual import TorchManual
from assay.impl.backends.torch_masks import Window, merge, position_mask
from assay.impl.protocol import implements

WRITTEN = replace(TorchManual.contract, dtypes=("float32",), intermediate=None)


class _Masked(TorchManual):
    """The rules of a call become one mask before ``heads`` computes."""

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
        window: Window | None = None,
        scale: float | None = None,
    ) -> Tensor:
        """Output [B, H, L, Dv]."""
        check_attention(q, k, v, mask)
        groups = q.shape[1] // max(k.shape[1], 1)
        keys, values = (x.repeat_interleave(groups, dim=1) for x in (k, v))
        seen = position_mask(
            q.shape[2], k.shape[2], causal=causal, offset=offset, window=window, device=q.device
        )
        factor = 1.0 / math.sqrt(max(q.shape[3], 1)) if scale is None else scale
        return self.heads(q, keys, values, merge(mask, seen), factor)

    def heads(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float) -> Tensor:
        """As many key heads as query heads."""
        return weights(q, k, mask, scale) @ v


def weights(q: Tensor, k: Tensor, mask: Tensor | None, scale: float) -> Tensor:
    """Softmax of the masked scores."""
    return torch.softmax(_blocked(q @ k.transpose(-2, -1) * scale, mask), dim=-1)


def _blocked(scores: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        return scores
    return scores.masked_fill(~mask, -math.inf) if mask.dtype is torch.bool else scores + mask


class CheckpointedHeads(_Masked):
    """Nothing is kept for the backward pass: it runs the forward pass again."""

    contract = replace(WRITTEN, name="zoo.checkpointed-heads")

    def heads(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float) -> Tensor:
        """``torch.utils.checkpoint``."""
        again = super().heads
        result: Tensor = checkpoint(again, q, k, v, mask, scale, use_reentrant=False)
        return result


class HandwrittenGradient(_Masked):
    """A function of its own for autograd, which keeps inputs and makes the weights again."""

    contract = replace(WRITTEN, name="zoo.handwritten-gradient")

    def heads(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float) -> Tensor:
        """``_Recomputed``."""
        apply: Any = _Recomputed.apply
        result: Tensor = apply(q, k, v, mask, scale)
        return result


class _Recomputed(torch.autograd.Function):
    """Attention whose backward pass starts from q, k, v, mask and scale."""

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float
    ) -> Tensor:
        """The output only."""
        ctx.save_for_backward(q, k, v, mask)
        ctx.scale = scale
        return weights(q, k, mask, scale) @ v

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> Any:
        """The row sum of p dp, and the products."""
        (g,) = cotangents
        q, k, v, mask = ctx.saved_tensors
        p = weights(q, k, mask, ctx.scale)
        dp = g @ v.transpose(-2, -1)
        ds = p * (dp - (p * dp).sum(dim=-1, keepdim=True)) * ctx.scale
        return ds @ k, ds.transpose(-2, -1) @ q, p.transpose(-2, -1) @ g, None, None


class MappedHeads(_Masked):
    """Written for one head and mapped over batch and heads (``torch.vmap``)."""

    contract = replace(WRITTEN, name="zoo.mapped-heads")

    def heads(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float) -> Tensor:
        """An empty batch or no heads leave nothing to map."""
        if not q.shape[0] * q.shape[1]:
            return super().heads(q, k, v, mask, scale)
        whole = None if mask is None else mask.expand(*q.shape[:3], k.shape[2])
        axes = (0, 0, 0, None if mask is None else 0, None)
        mapped: Any = torch.vmap(torch.vmap(super().heads, in_dims=axes), in_dims=axes)
        result: Tensor = mapped(q, k, v, whole, scale)
        return result


class EinsumHeads(_Masked):
    """Products by einsum on arrays with the heads behind the tokens."""

    contract = replace(WRITTEN, name="zoo.einsum-heads")

    def heads(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float) -> Tensor:
        """[B, L, H, D] in memory."""
        q, k, v = (x.transpose(1, 2).contiguous() for x in (q, k, v))
        scores = torch.einsum("blhd,bshd->bhls", q, k) * scale
        p = torch.softmax(_blocked(scores, mask), dim=-1)
        return torch.einsum("bhls,bshd->bhld", p, v)
