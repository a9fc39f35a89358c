"""CharGPT, the course GPT and ViT as one would write them in torch, independently of the spec."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from assay.spec.models.char_gpt import CharGPTConfig
from assay.spec.models.gpt import GPTConfig
from assay.spec.models.vit import ViTConfig

ACTIVATIONS: dict[str, Any] = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "silu": functional.silu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
}
CONVOLUTIONS: dict[int, Any] = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}


class SeparateAttention(nn.Module):
    """Four nn.Linear and torch's fused attention."""

    def __init__(self, width: int, heads: int, inner: int, into: bool, out: bool) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(width, inner, bias=into) for _ in range(3))
        self.output = nn.Linear(inner, width, bias=out)

    def forward(self, x: Tensor, causal: bool) -> Tensor:
        q, k, v = (
            part(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return self.output(y.transpose(1, 2).flatten(2))


class JointAttention(nn.MultiheadAttention):
    """torch.nn.MultiheadAttention, whose boolean mask is True where attention is forbidden."""

    def forward(self, x: Tensor, causal: bool) -> Tensor:  # type: ignore[override]
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1) if causal else None
        return super().forward(x, x, x, attn_mask=mask, need_weights=False)[0]


class MLP(nn.Module):
    """up, activation, down."""

    def __init__(self, width: int, hidden: int, activation: str) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.activation = ACTIVATIONS[activation]

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.activation(self.up(x)))


class Block(nn.Module):
    """One transformer block, pre-norm or post-norm."""

    def __init__(self, attention: nn.Module, mlp: nn.Module, width: int, pre: bool = True) -> None:
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.mlp, self.pre = attention, mlp, pre

    def forward(self, x: Tensor, causal: bool) -> Tensor:
        if self.pre:
            x = x + self.attention(self.ln1(x), causal)
            return x + self.mlp(self.ln2(x))
        x = self.ln1(x + self.attention(x, causal))
        return self.ln2(x + self.mlp(x))


def attention(style: str, width: int, heads: int, inner: int, into: bool, out: bool) -> nn.Module:
    if style == "multihead":
        return JointAttention(width, heads, bias=into or out, batch_first=True)
    return SeparateAttention(width, heads, inner, into, out)


class CharGPT(nn.Module):
    """Token and position tables, blocks, norm, head."""

    def __init__(self, config: CharGPTConfig, style: str) -> None:
        super().__init__()
        d = config.width
        self.token = nn.Embedding(config.vocabulary, d)
        self.position = nn.Embedding(config.context, d)
        self.blocks = nn.ModuleList(
            Block(
                attention(style, d, config.heads, d, config.input_bias, config.output_bias),
                MLP(d, config.hidden, config.activation),
                d,
                config.pre_norm,
            )
            for _ in range(config.layers)
        )
        self.final = nn.LayerNorm(d)
        self.head = nn.Linear(d, config.vocabulary, bias=not config.tied)
        if config.tied:
            self.head.weight = self.token.weight

    def forward(self, ids: Tensor) -> Tensor:
        x = self.token(ids) + self.position(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x, True)
        return self.head(self.final(x))


class ViT(nn.Module):
    """Patches, class token, positions, blocks, norm, read-out, head."""

    def __init__(self, config: ViTConfig, style: str) -> None:
        super().__init__()
        d = config.width
        self.patch = CONVOLUTIONS[len(config.spatial)](
            config.channels, d, config.kernel, stride=config.strides, padding=config.paddings
        )
        self.class_token = nn.Parameter(torch.zeros(1, d)) if config.pooling == "cls" else None
        self.position = nn.Parameter(torch.zeros(config.context, d))
        self.blocks = nn.ModuleList(
            Block(
                attention(style, d, config.heads, config.inner, config.input_bias, True),
                MLP(d, config.feed_forward, config.activation),
                d,
            )
            for _ in range(config.layers)
        )
        self.final = nn.LayerNorm(d)
        self.head = nn.Linear(d, config.classes)

    def forward(self, images: Tensor) -> Tensor:
        x = self.patch(images).flatten(2).transpose(1, 2)
        if self.class_token is not None:
            x = torch.cat([self.class_token.expand(len(x), 1, -1), x], dim=1)
        x = x + self.position
        for block in self.blocks:
            x = block(x, False)
        x = self.final(x)
        return self.head(x.mean(dim=1) if self.class_token is None else x[:, 0])


class FusedAttention(nn.Module):
    """One matrix for queries, keys and values; the scores masked by hand."""

    def __init__(self, width: int, heads: int, bias: bool) -> None:
        super().__init__()
        self.heads = heads
        self.c_attn = nn.Linear(width, 3 * width, bias=bias)
        self.c_proj = nn.Linear(width, width, bias=bias)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.c_attn(x).split(width, dim=2)
        )
        scores = q @ k.transpose(-2, -1) / math.sqrt(width // self.heads)
        weights = scores.masked_fill(~mask, -math.inf).softmax(dim=-1)
        return self.c_proj((weights @ v).transpose(1, 2).reshape(batch, length, width))


class FusedMLP(nn.Module):
    """c_fc, GELU by erf, c_proj."""

    def __init__(self, width: int, bias: bool) -> None:
        super().__init__()
        self.c_fc = nn.Linear(width, 4 * width, bias=bias)
        self.c_proj = nn.Linear(4 * width, width, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.c_proj(functional.gelu(self.c_fc(x)))


class FusedBlock(nn.Module):
    """A pre-norm block of the course GPT."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        d = config.width
        self.ln_1, self.ln_2 = (nn.LayerNorm(d, bias=config.bias) for _ in range(2))
        self.attn = FusedAttention(d, config.heads, config.bias)
        self.mlp = FusedMLP(d, config.bias)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x), mask)
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    """The course GPT: tied head, optional left padding."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        d = config.width
        self.wte, self.wpe = nn.Embedding(config.vocabulary, d), nn.Embedding(config.context, d)
        self.h = nn.ModuleList(FusedBlock(config) for _ in range(config.layers))
        self.ln_f = nn.LayerNorm(d, bias=config.bias)
        self.lm_head = nn.Linear(d, config.vocabulary, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(
        self, ids: Tensor, positions: Tensor | None = None, real: Tensor | None = None
    ) -> Tensor:
        length = ids.shape[1]
        mask = torch.ones(length, length, dtype=torch.bool).tril()[None, None]
        if real is not None:
            mask = mask & real[:, None, None, :] | torch.eye(length, dtype=torch.bool)
        places = torch.arange(length) if positions is None else positions
        x = self.wte(ids) + self.wpe(places)
        for block in self.h:
            x = block(x, mask)
        return self.lm_head(self.ln_f(x))
