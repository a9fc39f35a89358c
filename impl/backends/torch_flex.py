"""torch.flex: FlexAttention, whose masks are functions of positions."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

from assay.impl.backends.shapes import check_attention
from assay.impl.backends.torch_masks import Window
from assay.impl.contract import Contract
from assay.impl.protocol import Unsupported, implements
from assay.impl.torch_backend import TorchBackend

Rule = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
"""(batch, head, query, key) -> whether the query sees the key, or its new score"""


def position_rule(causal: bool, offset: int, window: Window | None) -> Rule | None:
    """Which keys the causal rule and the window let a query see; None: all."""
    left, right = window or (None, None)
    right = right if not causal else 0 if right is None else min(right, 0)
    if left is None and right is None:
        return None

    def sees(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        ahead = key - query - offset
        seen = ahead == ahead
        if left is not None:
            seen = seen & (ahead >= -left)
        return seen if right is None else seen & (ahead <= right)

    return sees


def block_mask(
    q: Tensor, k: Tensor, mask: Tensor | None, positions: Rule | None
) -> BlockMask | None:
    """Boolean masks and position rules together; None where everything is seen."""
    shape = (q.shape[0], q.shape[1], q.shape[2], k.shape[2])
    given = mask is not None and mask.dtype is torch.bool
    if not given and positions is None:
        return None
    full = mask.expand(shape) if given and mask is not None else None

    def sees(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        seen = key == key if positions is None else positions(batch, head, query, key)
        return seen if full is None else seen & full[batch, head, query, key]

    batch, heads = shape[:2] if given else (None, None)
    return create_block_mask(sees, batch, heads, *shape[2:], device=q.device)


def added(mask: Tensor | None, shape: tuple[int, ...]) -> Callable[..., Tensor] | None:
    """An additive mask as a change of scores; None where there is none."""
    if mask is None or mask.dtype is torch.bool:
        return None
    full = mask.expand(shape)

    def change(score: Tensor, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return score + full[batch, head, query, key]

    return change


class TorchFlex(TorchBackend):
    """Not compiled: all scores are computed, in float32 for 16-bit formats, and weights are rounded
    to the input's. Dynamo still traces the functions of each new kind of call.

    On a CPU there is no backward pass, and no empty axis. A query without a visible key gets zeros,
    as documented.
    """

    contract = Contract(
        name="torch.flex",
        dtypes=("float32", "bfloat16", "float16", "float64"),
        provider="ATen",
        intermediate="input",
        compile_seconds=20.0,
        empty_row="zeros",
        blocked_nonfinite="propagates",
        grouped_heads=True,
        value_width=True,
        gradients=False,
        modes=("no_grad",),
        requires=("torch",),
    )

    def __init__(self) -> None:
        # The first call loads dynamo, which takes seconds: while the backend is loaded, none waits.
        one = torch.zeros(1, 1, 1, 1)
        self.attention(one, one, one)

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
        if not (q.numel() and k.numel() and v.numel()):
            raise Unsupported("attention", "FlexAttention takes no empty axis")
        shape = (q.shape[0], q.shape[1], q.shape[2], k.shape[2])
        seen = block_mask(q, k, mask, position_rule(causal, offset, window))
        with warnings.catch_warnings():
            # It says at each call that it is not compiled.
            warnings.simplefilter("ignore")
            out: Tensor = flex_attention(
                q,
                k,
                v,
                score_mod=added(mask, shape),
                block_mask=seen,
                scale=scale,
                enable_gqa=q.shape[1] != k.shape[1],
            )
        return out
