"""Sound blocks in torch: transformer layers head by head, state-space blocks by chunks, and the
block of a neural operator with its parts added in another order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional

from assay.impl.backends.torch_scan import TorchScan, loop
from assay.impl.backends.torch_spectral import PerAxis, TorchDft
from assay.impl.contract import Contract
from assay.impl.protocol import implements
from assay.impl.torch_backend import TorchBackend

Branch = Callable[[Tensor], Tensor]
Branches = tuple[Branch, ...]
ACTIVATIONS: Mapping[str, Branch] = {
    "relu": torch.relu,
    "gelu": lambda x: 0.5 * x * (1.0 + torch.erf(x / math.sqrt(2.0))),
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "silu": functional.silu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "identity": torch.clone,
    "softplus": lambda x: torch.logaddexp(x, torch.zeros_like(x)),
}


def normed(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Layer norm over the last axis."""
    away = x - x.mean(dim=-1, keepdim=True)
    return away * torch.rsqrt(away.square().mean(dim=-1, keepdim=True) + 1e-5) * weight + bias


class HeadByHead(TorchBackend):
    """Each head projects for itself, and its part of the output projection is added up."""

    contract = Contract(
        "zoo.layers-by-head", ("float32", "float64"), provider="zoo", requires=("torch",)
    )

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
        p: dict[str, Tensor] = dict(
            zip(("qkv", "qkv_bias", "out", "out_bias", *MLP, *NORMS), parameters, strict=True)
        )
        check(p, x.shape[2])
        own = visible(x.shape[1], x.shape[1], keys, causal)

        def attention(y: Tensor) -> Tensor:
            return attended(y, y, p["qkv"], p["qkv_bias"], p["out"], own, heads) + p["out_bias"]

        return layered(x, p, (attention, mlp_of(p, activation)), norm_first)

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
        own_names = ("qkv", "qkv_bias", "out", "out_bias")
        names = (*own_names, *(f"cross_{n}" for n in own_names), *MLP, *NORMS, "norm3", "bias3")
        p = dict(zip(names, parameters, strict=True))
        check(p, x.shape[2])
        own = visible(x.shape[1], x.shape[1], keys, causal)
        other = visible(x.shape[1], memory.shape[1], memory_keys, causal=False)

        def attention(y: Tensor) -> Tensor:
            return attended(y, y, p["qkv"], p["qkv_bias"], p["out"], own, heads) + p["out_bias"]

        def cross(y: Tensor) -> Tensor:
            parts = (p["cross_qkv"], p["cross_qkv_bias"], p["cross_out"])
            return attended(y, memory, *parts, other, heads) + p["cross_out_bias"]

        return layered(x, p, (attention, cross, mlp_of(p, activation)), norm_first)


MLP = ("up", "up_bias", "down", "down_bias")
NORMS = ("norm1", "bias1", "norm2", "bias2")


def check(p: Mapping[str, Tensor], width: int) -> None:
    """ValueError unless each parameter has the shape that the layer's width wants."""
    inner = p["up"].shape[0]
    wanted: dict[str, tuple[int, ...]] = {
        "qkv": (3 * width, width),
        "out": (width, width),
        "up": (inner, width),
    }
    wanted |= {"down": (width, inner), "up_bias": (inner,), "qkv_bias": (3 * width,)}
    for name, given in p.items():
        shape = wanted.get(name.removeprefix("cross_"), (width,))
        if tuple(given.shape) != shape:
            raise ValueError(f"{name} {tuple(given.shape)} must be {shape}")


def layered(x: Tensor, p: Mapping[str, Tensor], branches: Branches, norm_first: bool) -> Tensor:
    """Each branch with its norm before it, or behind the addition."""
    for number, branch in enumerate(branches, 1):
        norm = p[f"norm{number}"], p[f"bias{number}"]
        x = x + branch(normed(x, *norm)) if norm_first else normed(x + branch(x), *norm)
    return x


def mlp_of(p: Mapping[str, Tensor], activation: str) -> Branch:
    """up, activation, down."""
    inner = ACTIVATIONS[activation]
    return lambda y: inner(y @ p["up"].T + p["up_bias"]) @ p["down"].T + p["down_bias"]


def attended(
    x: Tensor, memory: Tensor, qkv: Tensor, bias: Tensor, out: Tensor, seen: Tensor, heads: int
) -> Tensor:
    """The sum over heads of softmax(q k^T) v times the head's columns of ``out``."""
    total = torch.zeros_like(x)
    parts = [m.chunk(heads) for m in (*qkv.chunk(3), *bias.chunk(3))]
    for head, columns in enumerate(out.chunk(heads, dim=1)):
        wq, wk, wv, bq, bk, bv = (part[head] for part in parts)
        q, k, v = x @ wq.T + bq, memory @ wk.T + bk, memory @ wv.T + bv
        scores = q @ k.mT / math.sqrt(max(q.shape[2], 1))
        total = total + (softmax(scores, seen) @ v) @ columns.T
    return total


def visible(tokens: int, others: int, keys: Tensor | None, causal: bool) -> Tensor:
    """Which of the others each token sees [B or 1, T, S]."""
    seen = torch.ones(1, tokens, others, dtype=torch.bool)
    seen = seen.tril() if causal else seen
    return seen if keys is None else seen & keys[:, None]


def softmax(scores: Tensor, seen: Tensor) -> Tensor:
    """Over what is seen; zeros where nothing is."""
    some = seen.any(dim=-1, keepdim=True)
    filled = scores.masked_fill(~seen & some, -math.inf)
    return torch.softmax(filled, dim=-1).masked_fill(~some, 0.0)


class ChunkedBlocks(TorchScan):
    """Scans in chunks of 4 steps: each from zero, and then what flows into it."""

    contract = replace(
        TorchScan.contract, name="zoo.blocks-chunked", block_sizes=(4,), modes=("no_grad", "grad")
    )

    def _scan(self, a: Tensor, v: Tensor, start: Tensor) -> Tensor:
        if not v.shape[1]:
            return v.clone()
        outs, h = [], start
        a = torch.broadcast_to(a, v.shape)
        for part, added in zip(a.split(4, dim=1), v.split(4, dim=1), strict=True):
            local = loop(part, added, torch.zeros_like(start))
            outs.append(local + torch.cumprod(part, dim=1) * h[:, None])
            h = outs[-1][:, -1]
        return torch.cat(outs, dim=1)


class BiasFirst(TorchDft):
    """The bias first, then the skip, and the spectral convolution on top."""

    contract = replace(TorchDft.contract, name="zoo.operator-bias-first")

    @implements("fno_block")
    def fno_block(
        self,
        x: Tensor,
        re: Tensor,
        im: Tensor,
        skip: Tensor,
        bias: Tensor,
        *,
        modes: PerAxis | None = None,
        activation: str = "tanh",
        half: bool = False,
    ) -> Tensor:
        """Output [B, *n, w]."""
        begun = bias
        for value, row in zip(x.unbind(-1), skip.unbind(0), strict=True):
            begun = begun + value[..., None] * row
        if half:
            return ACTIVATIONS[activation](begun + self.spectral_conv_rfft(x, re, im))
        return ACTIVATIONS[activation](begun + self.spectral_conv(x, re, im, modes=modes))
