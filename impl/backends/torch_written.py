"""torch.written: norms, losses and activations written out in tensor operations, as they are in
tutorials and in decompositions of compilers.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from assay.impl.backends.torch_layers import TorchLayers
from assay.impl.protocol import Unsupported, implements
from assay.impl.torch_backend import TorchBackend


def _standardized(x: Tensor, axes: tuple[int, ...], eps: float) -> Tensor:
    """By a variance in two passes."""
    away = x - x.mean(axes, keepdim=True)
    return away * torch.rsqrt((away * away).mean(axes, keepdim=True) + eps)


def _affine(z: Tensor, weight: Tensor | None, bias: Tensor | None, axis: int) -> Tensor:
    """z weight + bias, with features along ``axis``."""
    after = (1,) * (z.ndim - 1 - axis)
    for name, given in (("weight", weight), ("bias", bias)):
        if given is not None and given.shape != (z.shape[axis],):
            raise ValueError(f"{name} {tuple(given.shape)} must be {(z.shape[axis],)}")
    z = z if weight is None else z * weight.reshape(-1, *after)
    return z if bias is None else z + bias.reshape(-1, *after)


class TorchWritten(TorchBackend):
    """Every intermediate result is a tensor of the input's dtype."""

    contract = replace(TorchLayers.contract, name="torch.written", dtypes=("float32", "float64"))

    @implements("softplus")
    def softplus(self, x: Tensor) -> Tensor:
        """``logaddexp`` of x and 0."""
        return torch.logaddexp(x, torch.zeros_like(x))

    @implements("silu")
    def silu(self, x: Tensor) -> Tensor:
        """x times ``sigmoid``."""
        return x * torch.sigmoid(x)

    @implements("gelu")
    def gelu(self, x: Tensor, *, approximate: str = "none") -> Tensor:
        """By ``erf``; or by ``tanh`` of a cubic."""
        if approximate == "tanh":
            inner = (2.0 / torch.pi) ** 0.5 * (x + 0.044715 * x * x * x)
            return 0.5 * x * (1 + torch.tanh(inner))
        return 0.5 * x * (1 + torch.erf(x * 0.5**0.5))

    @implements("embedding")
    def embedding(self, ids: Tensor, table: Tensor, *, padding_idx: int | None = None) -> Tensor:
        """Indexing; the padding row is detached."""
        if ids.numel() and int(ids.max()) >= table.shape[0]:
            raise IndexError("an identifier lies beyond the table")
        rows = table[ids]
        if padding_idx is None:
            return rows
        return torch.where((ids == padding_idx)[..., None], rows.detach(), rows)

    @implements("layer_norm")
    def layer_norm(
        self,
        x: Tensor,
        *,
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        eps: float = 1e-5,
    ) -> Tensor:
        """Over the last axis."""
        return _affine(_standardized(x, (-1,), eps), weight, bias, x.ndim - 1)

    @implements("rms_norm")
    def rms_norm(self, x: Tensor, *, weight: Tensor | None = None, eps: float = 1e-5) -> Tensor:
        """Over the last axis."""
        z = x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps)
        return _affine(z, weight, None, x.ndim - 1)

    @implements("group_norm")
    def group_norm(
        self,
        x: Tensor,
        *,
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        groups: int = 1,
        eps: float = 1e-5,
    ) -> Tensor:
        """Over channels within a group and positions."""
        if not x.numel():
            raise Unsupported("group_norm", "an empty array has no groups")
        rows = _standardized(x.reshape(x.shape[0], groups, -1), (-1,), eps)
        return _affine(rows.reshape(x.shape), weight, bias, 1)

    @implements("batch_norm")
    def batch_norm(
        self,
        x: Tensor,
        *,
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        eps: float = 1e-5,
    ) -> Tensor:
        """Over samples and positions."""
        return _affine(_standardized(x, (0, *range(2, x.ndim)), eps), weight, bias, 1)

    @implements("dropout")
    def dropout(self, x: Tensor, keep: Tensor, *, p: float = 0.5, training: bool = True) -> Tensor:
        """Dropped entries are replaced, not multiplied by 0."""
        if keep.shape != x.shape:
            raise ValueError(f"keep {tuple(keep.shape)} must have the shape {tuple(x.shape)} of x")
        if not training:
            return x.clone()
        kept = keep if p < 1 else torch.zeros_like(keep)
        return torch.where(kept, x / (1 - p or 1.0), 0)

    @implements("log_softmax")
    def log_softmax(self, x: Tensor) -> Tensor:
        """x minus ``logsumexp``."""
        return x - torch.logsumexp(x, dim=-1, keepdim=True)

    @implements("cross_entropy")
    def cross_entropy(
        self,
        logits: Tensor,
        targets: Tensor,
        *,
        ignore_index: int = -100,
        label_smoothing: float = 0.0,
        reduction: str = "mean",
        all_ignored: str = "nan",
    ) -> Tensor:
        """Rows that count are chosen first, and losses put back in their places."""
        if targets.shape != logits.shape[:-1]:
            raise ValueError(f"targets {tuple(targets.shape)}, logits {tuple(logits.shape)}")
        counts = targets != ignore_index
        log_p = torch.log_softmax(logits[counts], dim=-1)
        loss = -log_p.gather(-1, targets[counts][:, None])[:, 0]
        loss = (1 - label_smoothing) * loss - label_smoothing * log_p.mean(dim=-1)
        if reduction == "none":
            return torch.zeros_like(logits[:, 0]).masked_scatter(counts, loss)
        total = loss.sum()
        if reduction == "sum" or (all_ignored == "zero" and not counts.any()):
            return total
        return total / counts.sum()
