"""torch.compile: formulas that inductor turns into kernels of its own, for any shape.

Each function is compiled twice, without and with gradients: what would make another kernel, such
as an absent mask, another eps or an axis of length 1, is not offered, or brought into the one form.
"""

from __future__ import annotations

import importlib
import os
import shutil
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from assay.impl.backends.shapes import check_attention, check_softmax
from assay.impl.backends.torch_masks import Window, merge, position_mask
from assay.impl.contract import Contract
from assay.impl.protocol import Unavailable, Unsupported, implements
from assay.impl.torch_backend import TorchBackend

KINDS = 64
"""Kinds of call of one function, far more than there are. Past its own limit, dynamo would go on
without compiling, and the campaign would test nothing: here it fails instead.
"""


def compiled(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """``function`` as one graph for all shapes."""
    return torch.compile(function, dynamic=True, fullgraph=True)


def prepare() -> None:
    """Set dynamo and inductor up for a worker. Unavailable: there is no C++ compiler."""
    compiler = os.environ.get("CXX", "g++")
    if shutil.which(compiler) is None:
        raise Unavailable(f"there is no C++ compiler {compiler!r}", "apt-get install g++")
    dynamo: Any = torch._dynamo.config
    dynamo.recompile_limit = KINDS
    dynamo.fail_on_recompile_limit_hit = True
    inductor: Any = importlib.import_module("torch._inductor.config")
    # Helper processes would import torch first, which takes longer than to compile here.
    inductor.compile_threads = 1


@compiled
def _softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """[N, S] and [N, S] -> [N, S]."""
    return torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1)


@compiled
def _attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, scale: float) -> Tensor:
    """[N, L, D], [N, S, D], [N, S, Dv] and [N, L, S] -> [N, L, Dv]."""
    scores = (q @ k.transpose(-2, -1)) * scale
    return torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1) @ v


@compiled
def _layer_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """[N, C], [C] and [C] -> [N, C], with eps = 1e-5."""
    return functional.layer_norm(x, x.shape[-1:], weight, bias)


@compiled
def _silu(x: Tensor) -> Tensor:
    """[N] -> [N]."""
    return functional.silu(x)


@compiled
def _cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """[N, C] and [N] -> [], the mean."""
    return functional.cross_entropy(logits, targets)


class TorchCompile(TorchBackend):
    """What the formulas do: softmax of an empty row is NaN, and 0 times NaN is NaN."""

    contract = Contract(
        name="torch.compile",
        provider="inductor",
        least_length=2,
        compile_seconds=120.0,
        empty_row="nan",
        blocked_nonfinite="propagates",
        value_width=True,
        masks=("bool",),
        witness=("CompiledFxGraph",),
        requires=("torch",),
    )

    def __init__(self) -> None:
        prepare()

    @implements("masked_softmax")
    def masked_softmax(self, scores: Tensor, *, mask: Tensor | None = None) -> Tensor:
        """Weights in the shape of ``scores`` [..., S]."""
        check_softmax(scores, mask)
        given = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask
        seen = given.expand(scores.shape)
        return _softmax(_rows(scores), _rows(seen)).reshape(scores.shape)

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
        if k.shape[1] != q.shape[1]:
            raise Unsupported("attention", "the formula has as many key heads as query heads")
        if mask is not None and mask.dtype is not torch.bool:
            raise Unsupported("attention", "the formula takes a boolean mask")
        (batch, heads, queries, width), keys = q.shape, k.shape[2]
        rules = position_mask(
            queries, keys, causal=causal, offset=offset, window=window, device=q.device
        )
        seen = merge(mask, rules)
        if seen is None:
            seen = torch.ones(queries, keys, dtype=torch.bool, device=q.device)
        seen = seen.expand(batch, heads, queries, keys)
        factor = width**-0.5 if scale is None else scale
        out = _attention(*(x.flatten(0, 1) for x in (q, k, v, seen)), factor)
        return out.unflatten(0, (batch, heads))

    @implements("layer_norm")
    def layer_norm(
        self, x: Tensor, *, weight: Tensor | None = None, bias: Tensor | None = None
    ) -> Tensor:
        """``functional.layer_norm`` over the last axis."""
        ones, zeros = x.new_ones(x.shape[-1]), x.new_zeros(x.shape[-1])
        given = (ones if weight is None else weight, zeros if bias is None else bias)
        return _layer_norm(_rows(x), *given).reshape(x.shape)

    @implements("silu")
    def silu(self, x: Tensor) -> Tensor:
        """``functional.silu``."""
        return _silu(x.flatten()).reshape(x.shape)

    @implements("cross_entropy")
    def cross_entropy(self, logits: Tensor, targets: Tensor) -> Tensor:
        """``functional.cross_entropy``: the mean."""
        return _cross_entropy(logits, targets)


def _rows(x: Tensor) -> Tensor:
    """[..., C] -> [N, C]; an empty last axis leaves no number of rows to be found."""
    return x.reshape(x.shape[:-1].numel(), x.shape[-1])
