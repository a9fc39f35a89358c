"""torch.manual: attention as it is written in tutorials: matmul, masked_fill(-inf), softmax,
matmul.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from assay.impl.backends.shapes import check_attention, check_softmax
from assay.impl.backends.torch_masks import Window, merge, position_mask
from assay.impl.contract import Contract
from assay.impl.protocol import implements
from assay.impl.torch_backend import TorchBackend


class TorchManual(TorchBackend):
    """Declares what the formula does: softmax of an empty row is NaN, and 0 times NaN is NaN.

    Scores and weights are tensors of the input's dtype, so 16-bit runs round them to 16 bits.
    """

    contract = Contract(
        name="torch.manual",
        dtypes=("float32", "bfloat16", "float16", "float64"),
        provider="ATen",
        intermediate="input",
        empty_row="nan",
        blocked_nonfinite="propagates",
        grouped_heads=True,
        value_width=True,
        requires=("torch",),
    )

    @implements("masked_softmax")
    def masked_softmax(self, scores: Tensor, *, mask: Tensor | None = None) -> Tensor:
        """Weights in the shape of ``scores`` [..., S]."""
        check_softmax(scores, mask)
        return torch.softmax(_masked(scores, mask), dim=-1)

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
        heads, queries, keys = q.shape[1], q.shape[2], k.shape[2]
        if k.shape[1] not in (0, heads):
            k, v = (x.repeat_interleave(heads // x.shape[1], dim=1) for x in (k, v))
        seen = position_mask(
            queries, keys, causal=causal, offset=offset, window=window, device=q.device
        )
        factor = 1.0 / math.sqrt(max(q.shape[3], 1)) if scale is None else scale
        scores = (q @ k.transpose(-2, -1)) * factor
        return torch.softmax(_masked(scores, merge(mask, seen)), dim=-1) @ v


def _masked(scores: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        return scores
    return scores.masked_fill(~mask, float("-inf")) if mask.dtype is torch.bool else scores + mask
