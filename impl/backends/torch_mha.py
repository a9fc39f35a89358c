"""torch.mha: ``nn.MultiheadAttention`` with projections that only select, so that the module
computes attention itself.

The module's fast path takes self-attention alone: query, key and value must be one tensor x. So x =
[q | k | v] along the features, as wide as 3 H heads, and the projections pick each part for the
first H heads; the other heads are idle (their queries, keys and values are 0) and their outputs are
dropped. The width of a head, and with it the scale, is that of q. Where there are more keys than
queries or fewer, the module is called with three tensors.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor, nn

from assay.impl.backends.shapes import check_attention
from assay.impl.backends.torch_masks import Window, merge, position_mask
from assay.impl.contract import Contract
from assay.impl.protocol import Unsupported, implements
from assay.impl.torch_backend import TorchBackend

_NEEDS_MASK = "Need attn_mask if specifying the is_causal hint"


class TorchMha(TorchBackend):
    """Called as a user would: ``is_causal=True`` without a mask where causal says it all, in every
    mode.

    Where the module refuses that, the call is unsupported. So are inputs that are not finite:
    selecting by matrix products would mix them into all features of a token. The slow path runs
    the flash kernel, whose exponential gives 0 where the result is subnormal.
    """

    contract = Contract(
        name="torch.mha",
        dtypes=("float32", "bfloat16", "float16", "float64"),
        provider="ATen",
        intermediate="input",
        subnormals=False,
        empty_row="zeros",
        blocked_nonfinite="propagates",
        modes=(
            "train",
            "eval.grad",
            "eval.grad.weights",
            "eval.no_grad",
            "eval.no_grad.weights",
        ),
        requires=("torch",),
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
        window: Window | None = None,
    ) -> Tensor:
        """Output [B, H, L, D]; values as wide as keys, and as many heads."""
        check_attention(q, k, v, mask)
        _check_supported(q, k, v)
        flag = causal and mask is None and offset == 0 and window is None
        seen = position_mask(
            q.shape[2],
            k.shape[2],
            causal=causal and not flag,
            offset=offset,
            window=window,
            device=q.device,
        )
        together = q.shape[2] == k.shape[2]
        heads = _packed_heads(q.shape[1]) if together else q.shape[1]
        module = _module(q.shape[1], heads, q.shape[3], q.dtype, q.device, together)
        module.train(self.mode == "train")
        tokens = _packed(q, k, v, heads) if together else tuple(_joined(x) for x in (q, k, v))
        try:
            out, _ = module(
                *tokens,
                attn_mask=_blocked(merge(mask, seen), q, k, heads),
                need_weights=self.mode.endswith(".weights"),
                is_causal=flag,
            )
        except RuntimeError as error:
            if _NEEDS_MASK in str(error):
                raise Unsupported(
                    "attention", f"the module refuses is_causal without a mask here: {error}"
                ) from error
            raise
        split = out.unflatten(-1, (heads, q.shape[3])).transpose(1, 2)
        return split[:, : q.shape[1]]


def _check_supported(q: Tensor, k: Tensor, v: Tensor) -> None:
    if k.shape[1] != q.shape[1]:
        raise Unsupported("attention", "the module has as many key heads as query heads")
    if v.shape[3] != k.shape[3]:
        raise Unsupported("attention", "the module's values are as wide as its keys")
    if not (q.shape[1] and q.shape[3]):
        raise Unsupported("attention", "the module needs at least one head of width 1")
    if not all(bool(x.isfinite().all()) for x in (q, k, v)):
        raise Unsupported("attention", "the projections here would spread NaN and infinity")


def _packed_heads(heads: int) -> int:
    """Room for q, k and v side by side; even, as the fast path demands."""
    return 3 * heads + heads % 2


def _joined(x: Tensor) -> Tensor:
    """[B, H, L, D] -> [B, L, H D]."""
    return x.transpose(1, 2).flatten(2)


def _packed(q: Tensor, k: Tensor, v: Tensor, heads: int) -> tuple[Tensor, Tensor, Tensor]:
    """The one tensor x = [q | k | v | 0], three times."""
    x = torch.cat([_joined(part) for part in (q, k, v)], dim=-1)
    x = nn.functional.pad(x, (0, heads * q.shape[3] - x.shape[-1]))
    return x, x, x


def _blocked(mask: Tensor | None, q: Tensor, k: Tensor, heads: int) -> Tensor | None:
    """The module's mask [B heads, L, S]: True where *blocked*, or additive; idle heads see
    everything.
    """
    if mask is None:
        return None
    batch, own, queries = q.shape[:3]
    turned = ~mask if mask.dtype is torch.bool else mask
    full = turned.new_zeros(batch, heads, queries, k.shape[2])
    full[:, :own] = turned
    return full.flatten(0, 1)


@lru_cache(maxsize=64)
def _module(
    own: int, heads: int, width: int, dtype: torch.dtype, device: torch.device, together: bool
) -> nn.MultiheadAttention:
    """A module of ``heads`` heads whose first ``own`` read their q, k and v from where they lie."""
    size = heads * width
    # Initial weights are drawn at random, and then replaced.
    with torch.random.fork_rng(devices=[]):
        module = nn.MultiheadAttention(size, heads, batch_first=True, dtype=dtype, device=device)
    module.requires_grad_(False)
    used = own * width
    identity = torch.eye(used, dtype=dtype, device=device)
    module.in_proj_weight.zero_()
    for part in range(3):
        source = part * used if together else 0
        module.in_proj_weight[part * size : part * size + used, source : source + used] = identity
    module.out_proj.weight.copy_(torch.eye(size, dtype=dtype, device=device))
    return module
