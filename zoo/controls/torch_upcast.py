"""Sound attention in torch: everything in float32 whatever the inputs are, rounded once."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from assay.impl.backends.shapes import check_attention
from assay.impl.protocol import implements
from assay.impl.torch_backend import TorchBackend
from assay.zoo.sound import declared


class TorchUpcast(TorchBackend):
    """Blocked scores are -inf; rows that see nothing are replaced by zeros, and so are their
    gradients.
    """

    contract = declared(
        "zoo.torch-upcast", dtypes=("bfloat16", "float16", "float32"), block_sizes=()
    )

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
        groups = q.shape[1] // max(k.shape[1], 1)
        keys, values = (x.float().repeat_interleave(groups, dim=1) for x in (k, v))
        factor = 1.0 / math.sqrt(max(q.shape[3], 1)) if scale is None else scale
        x = torch.einsum("bhld,bhsd->bhls", q.float(), keys) * factor
        seen = torch.ones(x.shape[2:], dtype=torch.bool)
        if causal:
            seen = seen.tril(offset)
        if mask is not None:
            seen = seen & (mask if mask.dtype is torch.bool else mask != -math.inf)
            if mask.dtype is not torch.bool:
                x = x + mask.float().masked_fill(mask == -math.inf, 0.0)
        some = seen.any(dim=-1, keepdim=True)
        p = torch.softmax(x.masked_fill(~seen & some, -math.inf), dim=-1).masked_fill(~some, 0.0)
        return torch.einsum("bhls,bhsd->bhld", p, values).to(q.dtype)
