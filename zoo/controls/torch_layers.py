"""Sound layers in other forms, in torch: norms by merged statistics, losses by chunks of classes,
activations by halves, and 16-bit formats with all of it in float32.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from assay.impl.backends.torch_layers import TorchLayers
from assay.impl.contract import Contract
from assay.impl.protocol import Unsupported, implements
from assay.impl.torch_backend import TorchBackend

LAYERS = Contract("zoo.layers", provider="zoo", requires=("torch",))
Moments = tuple[int, Tensor, Tensor]


def merged(x: Tensor) -> Moments:
    """Count, mean and sum of squared distances of each row, from those of its two halves (T. Chan,
    G. Golub and R. LeVeque, 1983).
    """
    n = x.shape[-1]
    if n == 1:
        return 1, x, torch.zeros_like(x)
    (left, mean, spread), (right, other, more) = merged(x[..., : n // 2]), merged(x[..., n // 2 :])
    away = other - mean
    return n, mean + away * (right / n), spread + more + away * away * (left * right / n)


def welford(x: Tensor) -> Moments:
    """The same, one entry after the other (B. Welford, 1962)."""
    mean, spread = x[..., :1], torch.zeros_like(x[..., :1])
    for i in range(1, x.shape[-1]):
        value = x[..., i : i + 1]
        away = value - mean
        mean = mean + away / (i + 1)
        spread = spread + away * (value - mean)
    return x.shape[-1], mean, spread


class MergedNorms(TorchBackend):
    """Statistics of halves, merged as a tree."""

    contract = replace(LAYERS, name="zoo.norms-merged")

    def moments(self, x: Tensor) -> Moments:
        """Of each row."""
        return merged(x)

    def standardized(self, rows: Tensor, eps: float) -> Tensor:
        """Rows without their mean, over the root of their variance."""
        if not rows.numel():
            return rows.clone()
        count, mean, spread = self.moments(rows)
        return (rows - mean) / torch.sqrt(spread / count + eps)

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
        return _affine(self.standardized(x, eps), weight, bias, x.ndim - 1)

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
        rows = self.standardized(x.reshape(x.shape[0], groups, -1), eps)
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
        if not x.numel():
            return _affine(x.clone(), weight, bias, 1)
        turned = x.movedim(1, 0)
        rows = self.standardized(turned.reshape(x.shape[1], -1), eps)
        return _affine(rows.reshape(turned.shape).movedim(0, 1), weight, bias, 1)


class WelfordNorms(MergedNorms):
    """Statistics entry by entry."""

    contract = replace(LAYERS, name="zoo.norms-welford")

    def moments(self, x: Tensor) -> Moments:
        """Of each row."""
        return welford(x)


class WideNorms(MergedNorms):
    """Statistics in float64, of a float32 array."""

    contract = replace(LAYERS, name="zoo.norms-double")

    def standardized(self, rows: Tensor, eps: float) -> Tensor:
        """Wide, and rounded once before the weights."""
        return super().standardized(rows.double(), eps).to(rows.dtype)


def _affine(z: Tensor, weight: Tensor | None, bias: Tensor | None, axis: int) -> Tensor:
    """z weight + bias, with features along ``axis``."""
    after = (1,) * (z.ndim - 1 - axis)
    for name, given in (("weight", weight), ("bias", bias)):
        if given is not None and given.shape != (z.shape[axis],):
            raise ValueError(f"{name} {tuple(given.shape)} must be {(z.shape[axis],)}")
    z = z if weight is None else z * weight.reshape(-1, *after)
    return z if bias is None else z + bias.reshape(-1, *after)


class SplitLinear(TorchBackend):
    """The sum over inputs in three stretches, each a product of its own (split-K)."""

    contract = replace(LAYERS, name="zoo.linear-split")

    @implements("linear")
    def linear(self, x: Tensor, weight: Tensor, *, bias: Tensor | None = None) -> Tensor:
        """x W^T + b."""
        if x.shape[-1] != weight.shape[1]:
            raise ValueError(f"x {tuple(x.shape)} does not fit weight {tuple(weight.shape)}")
        stretches = zip(x.tensor_split(3, dim=-1), weight.tensor_split(3, dim=1), strict=True)
        total = torch.stack([part @ w.T for part, w in stretches]).sum(dim=0)
        return total if bias is None else total + bias


class OuterLinear(TorchBackend):
    """One input after the other: a sum of outer products, on top of the bias."""

    contract = replace(LAYERS, name="zoo.linear-outer")

    @implements("linear")
    def linear(self, x: Tensor, weight: Tensor, *, bias: Tensor | None = None) -> Tensor:
        """x W^T + b."""
        if x.shape[-1] != weight.shape[1] or (bias is not None and bias.ndim != 1):
            raise ValueError(f"x {tuple(x.shape)} does not fit weight {tuple(weight.shape)}")
        total = x.new_zeros(*x.shape[:-1], weight.shape[0])
        total = total if bias is None else total + bias
        for value, column in zip(x.unbind(-1), weight.unbind(1), strict=True):
            total = total + value[..., None] * column
        return total


class SharedOut(TorchBackend):
    """Two threads, each with half of the batch's rows and columns."""

    contract = replace(LAYERS, name="zoo.linear-threads")

    @implements("linear")
    def linear(self, x: Tensor, weight: Tensor, *, bias: Tensor | None = None) -> Tensor:
        """x W^T + b, by two threads of torch's own."""
        before = torch.get_num_threads()
        torch.set_num_threads(2)
        try:
            return functional.linear(x, weight, bias)
        finally:
            torch.set_num_threads(before)


class ChunkedLosses(TorchBackend):
    """Classes in chunks of 8 with a running maximum; the logits of a class are read twice."""

    contract = replace(LAYERS, name="zoo.losses-chunked", exp_ulps=4.0, block_sizes=(8,))

    def mass(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Maximum and logarithm of the sum of exp(x - maximum), [..., 1]."""
        top, total = x[..., :1].detach(), torch.zeros_like(x[..., :1])
        for part in x.split(8, dim=-1):
            new = torch.maximum(top, part.detach().amax(dim=-1, keepdim=True))
            total = total * torch.exp(top - new) + torch.exp(part - new).sum(-1, keepdim=True)
            top = new
        return top, torch.log(total)

    @implements("log_softmax")
    def log_softmax(self, x: Tensor) -> Tensor:
        """Over the last axis."""
        if not x.numel():
            return x.clone()
        top, log = self.mass(x)
        return (x - top) - log

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
        minus = -self.log_softmax(logits[counts])
        loss = minus.gather(-1, targets[counts][:, None])[:, 0]
        if label_smoothing:
            loss = (1 - label_smoothing) * loss + label_smoothing * minus.mean(dim=-1)
        if reduction == "none":
            return torch.zeros_like(logits[:, 0]).masked_scatter(counts, loss)
        total = loss.sum()
        if reduction == "sum" or (all_ignored == "zero" and not counts.any()):
            return total
        return total / counts.sum()


class ActivationsByHalves(TorchBackend):
    """Every exponential is that of a number that is not above 0.

    Of |x| autograd says that its slope at 0 is 0; the choice between x and -x has the slope of its
    side, which the outer choice fits.
    """

    contract = replace(LAYERS, name="zoo.activations-by-halves", exp_ulps=4.0)

    @implements("sigmoid")
    def sigmoid(self, x: Tensor) -> Tensor:
        """1 / (1 + e) or e / (1 + e), with e = exp(-|x|)."""
        e = torch.exp(_below(x))
        return torch.where(x < 0, e, 1.0) / (1 + e)

    @implements("silu")
    def silu(self, x: Tensor) -> Tensor:
        """x times the sigmoid."""
        return x * self.sigmoid(x)

    @implements("tanh")
    def tanh(self, x: Tensor) -> Tensor:
        """By expm1, which keeps small numbers."""
        e = torch.expm1(2 * _below(x))
        return torch.where(x < 0, e, -e) / (2 + e)

    @implements("relu")
    def relu(self, x: Tensor) -> Tensor:
        """A choice, which keeps NaN."""
        return torch.where(x <= 0, 0.0, x)

    @implements("softplus")
    def softplus(self, x: Tensor) -> Tensor:
        """max(x, 0) + log1p(exp(-|x|))."""
        return torch.clamp(x, min=0) + torch.log1p(torch.exp(_below(x)))


def _below(x: Tensor) -> Tensor:
    """-|x|."""
    return torch.where(x < 0, x, -x)


class UpcastLayers(TorchBackend):
    """16-bit formats: torch's float32 layers between two conversions."""

    contract = replace(
        LAYERS, name="zoo.layers-upcast", dtypes=("bfloat16", "float16"), exp_ulps=6.0
    )
    layers, norms = TorchLayers(), MergedNorms()

    def between(self, op: str, x: Tensor, **rules: Any) -> Tensor:
        """One op on float32: torch's, but for layer norm, whose gradient into the weight torch
        takes from x / s - mean / s and not from the difference.
        """
        wide = {n: r.float() if isinstance(r, Tensor) else r for n, r in rules.items()}
        whose = self.norms if op == "layer_norm" else self.layers
        result: Tensor = getattr(whose, op)(x.float(), **wide)
        return result.to(x.dtype)

    @implements("sigmoid")
    def sigmoid(self, x: Tensor) -> Tensor:
        """In float32."""
        return self.between("sigmoid", x)

    @implements("silu")
    def silu(self, x: Tensor) -> Tensor:
        """In float32."""
        return self.between("silu", x)

    @implements("linear")
    def linear(self, x: Tensor, weight: Tensor, *, bias: Tensor | None = None) -> Tensor:
        """In float32."""
        return self.between("linear", x, weight=weight, bias=bias)

    @implements("layer_norm")
    def layer_norm(
        self,
        x: Tensor,
        *,
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        eps: float = 1e-5,
    ) -> Tensor:
        """In float32."""
        return self.between("layer_norm", x, weight=weight, bias=bias, eps=eps)

    @implements("rms_norm")
    def rms_norm(self, x: Tensor, *, weight: Tensor | None = None, eps: float = 1e-5) -> Tensor:
        """In float32."""
        return self.between("rms_norm", x, weight=weight, eps=eps)

    @implements("log_softmax")
    def log_softmax(self, x: Tensor) -> Tensor:
        """In float32."""
        return self.between("log_softmax", x)
