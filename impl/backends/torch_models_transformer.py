"""Causal transformers as torch modules: the course GPT, and CharGPT with all of its options."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from assay.impl.backends import torch_models_fields as rules
from assay.impl.backends.torch_models_cache import Cache
from assay.impl.backends.torch_models_state import Part, every, parts_of, rate, same, turned, under

Keep = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""Writes keys and values of a chunk, and gives all up to its end."""


class Sight:
    """What the queries of one pass see, and what is done with its keys and values.

    causal   each token sees those before it
    cache    where keys and values of earlier chunks are; the mask is then its affair
    """

    def __init__(self, tokens: int, *, causal: bool, cache: Cache | None = None) -> None:
        self.cache = cache
        self.mask = None if cache is None else cache.visible(tokens)
        self.causal = causal and cache is None

    def keep(self, layer: int) -> Keep | None:
        """How one layer keeps its keys and values."""
        return None if self.cache is None else partial(self.cache.keep, layer)


def attend(
    q: Tensor, k: Tensor, v: Tensor, sight: Sight, *, explicit: bool, dropout: float = 0.0
) -> Tensor:
    """Attention [B, H, T, Dh] by a fused kernel, or by explicit scores."""
    if not explicit:
        return functional.scaled_dot_product_attention(
            q, k, v, sight.mask, dropout, is_causal=sight.causal
        )
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[3])
    if sight.causal:
        future = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(future, -math.inf)
    elif sight.mask is not None:
        scores = scores.masked_fill(~sight.mask, -math.inf)
    return functional.dropout(scores.softmax(dim=-1), dropout) @ v


def into_heads(x: Tensor, heads: int) -> Tensor:
    """[B, T, H Dh] -> [B, H, T, Dh]: the head is the slow index of a feature."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


class FusedAttention(nn.Module):
    """One matrix for queries, keys and values."""

    def __init__(self, width: int, heads: int, bias: bool, explicit: bool, dropout: float) -> None:
        super().__init__()
        self.heads, self.explicit, self.dropout = heads, explicit, dropout
        self.c_attn = nn.Linear(width, 3 * width, bias=bias)
        self.c_proj = nn.Linear(width, width, bias=bias)

    def forward(self, x: Tensor, sight: Sight, layer: int) -> Tensor:
        """The shape of x [B, T, D]."""
        q, k, v = (into_heads(part, self.heads) for part in self.c_attn(x).chunk(3, dim=2))
        keep = sight.keep(layer)
        k, v = keep(k, v) if keep else (k, v)
        dropped = self.dropout if self.training else 0.0
        y = attend(q, k, v, sight, explicit=self.explicit, dropout=dropped)
        return self.c_proj(y.transpose(1, 2).flatten(2))


class FusedMLP(nn.Module):
    """c_fc, GELU by erf, c_proj."""

    def __init__(self, width: int, bias: bool) -> None:
        super().__init__()
        self.c_fc = nn.Linear(width, 4 * width, bias=bias)
        self.c_proj = nn.Linear(4 * width, width, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """The shape of x."""
        return self.c_proj(functional.gelu(self.c_fc(x)))


class FusedBlock(nn.Module):
    """Attention and MLP, each after a norm and added to what came in."""

    def __init__(self, width: int, heads: int, bias: bool, explicit: bool, dropout: float) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(width, bias=bias)
        self.attn = FusedAttention(width, heads, bias, explicit, dropout)
        self.ln_2 = nn.LayerNorm(width, bias=bias)
        self.mlp = FusedMLP(width, bias)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor, sight: Sight, layer: int) -> Tensor:
        """The shape of x."""
        x = x + self.drop(self.attn(self.ln_1(x), sight, layer))
        return x + self.drop(self.mlp(self.ln_2(x)))


class GPT(nn.Module):
    """The course GPT: the token table is the head as well."""

    def __init__(
        self,
        vocabulary: int = 512,
        context: int = 128,
        layers: int = 4,
        heads: int = 4,
        width: int = 128,
        dropout: float = 0.0,
        bias: bool = True,
        *,
        explicit: bool = False,
    ) -> None:
        super().__init__()
        wrong = rules.not_whole(
            vocabulary=vocabulary, context=context, layers=layers, heads=heads, width=width
        )
        wrong += rules.not_dividing(heads=heads, width=width) + rules.not_flags(bias=bias)
        if not 0 <= dropout < 1:
            wrong.append(f"dropout={dropout!r} must lie in [0, 1)")
        rules.refuse(*wrong)
        self.context, self.heads, self.width = context, heads, width
        self.wte, self.wpe = rules.table(vocabulary, width), rules.table(context, width)
        self.drop = nn.Dropout(dropout)
        self.h = nn.ModuleList(
            FusedBlock(width, heads, bias, explicit, dropout) for _ in range(layers)
        )
        self.ln_f = nn.LayerNorm(width, bias=bias)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, ids: Tensor, cache: Cache | None = None) -> Tensor:
        """[B, T] -> logits [B, T, V]; behind what the cache holds, and it holds these as well."""
        places, sight = places_of(ids, cache, self.context)
        x = self.drop(self.wte(ids) + self.wpe(places))
        for layer, block in enumerate(self.h):
            x = block(x, sight, layer)
        if cache is not None:
            cache.advance(ids.shape[1])
        return self.lm_head(self.ln_f(x))

    def _apply(self, fn: Any, recurse: bool = True) -> GPT:
        """One table still, where a conversion makes new parameters."""
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self.lm_head.weight = self.wte.weight
        return self


def places_of(ids: Tensor, cache: Cache | None, context: int) -> tuple[Tensor, Sight]:
    """Positions of a chunk, and what it sees. ValueError beyond the context, before any lookup."""
    tokens, before = ids.shape[1], 0 if cache is None else cache.length
    if before + tokens > context:
        raise ValueError(f"tokens={tokens} after {before} exceed context={context}")
    sight = Sight(tokens, causal=True, cache=cache)
    if cache is not None:
        return cache.positions(tokens), sight
    return torch.arange(tokens, device=ids.device), sight


class SeparateAttention(nn.Module):
    """A matrix each for queries, keys, values and outputs."""

    def __init__(
        self,
        width: int,
        heads: int,
        inner: int,
        *,
        input_bias: bool,
        output_bias: bool,
        explicit: bool,
        dropout: float,
    ) -> None:
        super().__init__()
        self.heads, self.explicit, self.dropout = heads, explicit, dropout
        self.query, self.key, self.value = (
            nn.Linear(width, inner, bias=input_bias) for _ in range(3)
        )
        self.output = nn.Linear(inner, width, bias=output_bias)

    def forward(self, x: Tensor, sight: Sight, layer: int) -> Tensor:
        """The shape of x [B, T, D]."""
        q, k, v = (into_heads(part(x), self.heads) for part in (self.query, self.key, self.value))
        keep = sight.keep(layer)
        k, v = keep(k, v) if keep else (k, v)
        dropped = self.dropout if self.training else 0.0
        y = attend(q, k, v, sight, explicit=self.explicit, dropout=dropped)
        return self.output(y.transpose(1, 2).flatten(2))

    def parts(self) -> Iterator[Part]:
        """Matrices in-by-out, then the biases, then the rate."""
        maps = {n: getattr(self, n) for n in ("query", "key", "value", "output")}
        yield from (turned(f"{n}.weight", x.weight) for n, x in maps.items())
        yield from (same(f"{n}.bias", x.bias) for n, x in maps.items() if x.bias is not None)
        yield from rate(self.dropout)


class MLP(nn.Module):
    """up, activation, dropout, down."""

    def __init__(self, width: int, hidden: int, activation: str, dropout: float) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.activation, self.dropout = rules.ACTIVATIONS[activation], nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """The shape of x."""
        return self.down(self.dropout(self.activation(self.up(x))))

    def parts(self) -> Iterator[Part]:
        """Up, the rate, down."""
        yield from under("up", every(self.up))
        yield from rate(self.dropout.p)
        yield from under("down", every(self.down))


class Block(nn.Module):
    """Two residual branches, each with its norm before it or, post-norm, after the addition."""

    def __init__(
        self, width: int, attention: SeparateAttention, mlp: MLP, dropout: float, pre: bool = True
    ) -> None:
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.mlp = attention, mlp
        self.dropout, self.pre = nn.Dropout(dropout), pre

    def forward(self, x: Tensor, sight: Sight, layer: int) -> Tensor:
        """The shape of x."""
        if self.pre:
            x = x + self.dropout(self.attention(self.ln1(x), sight, layer))
            return x + self.dropout(self.mlp(self.ln2(x)))
        x = self.ln1(x + self.dropout(self.attention(x, sight, layer)))
        return self.ln2(x + self.dropout(self.mlp(x)))

    def parts(self) -> Iterator[Part]:
        """A norm stands before its branch, or behind it; each branch ends with its rate."""
        for norm, branch in (("ln1", "attention"), ("ln2", "mlp")):
            scale = list(under(norm, every(getattr(self, norm))))
            body = [*under(branch, getattr(self, branch).parts()), *rate(self.dropout.p)]
            yield from [*scale, *body] if self.pre else [*body, *scale]


class CharGPT(nn.Module):
    """Token and position tables, blocks, norm, head; the head is the token table when tied."""

    def __init__(
        self,
        context: int = 16,
        heads: int = 4,
        width: int = 32,
        feed_forward: int | None = None,
        layers: int = 2,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        feed_forward_dropout: float = 0.0,
        vocabulary: int = 65,
        activation: str = "relu",
        input_bias: bool = False,
        output_bias: bool = True,
        pre_norm: bool = True,
        tied: bool = False,
        initialisation: str = "normal",
        *,
        explicit: bool = False,
    ) -> None:
        super().__init__()
        hidden = 4 * width if feed_forward is None else feed_forward
        flags = {"input_bias": input_bias, "output_bias": output_bias}
        rules.refuse(
            *rules.not_whole(context=context, heads=heads, width=width, vocabulary=vocabulary),
            *rules.not_whole(**({} if feed_forward is None else {"feed_forward": feed_forward})),
            *rules.not_dividing(heads=heads, width=width),
            *rules.not_whole(0, layers=layers),
            *rules.not_rates(
                dropout=dropout,
                attention_dropout=attention_dropout,
                feed_forward_dropout=feed_forward_dropout,
            ),
            *rules.not_among(tuple(rules.ACTIVATIONS), activation=activation),
            *rules.not_among(("normal", "glorot"), initialisation=initialisation),
            *rules.not_flags(**flags, pre_norm=pre_norm, tied=tied),
        )
        self.context, self.heads, self.width = context, heads, width
        self.token, self.position = rules.table(vocabulary, width), rules.table(context, width)
        self.blocks = nn.ModuleList(
            Block(
                width,
                SeparateAttention(
                    width, heads, width, **flags, explicit=explicit, dropout=attention_dropout
                ),
                MLP(width, hidden, activation, feed_forward_dropout),
                dropout,
                pre_norm,
            )
            for _ in range(layers)
        )
        self.final = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=not tied)
        self.tied = tied
        self.tie()

    def tie(self) -> None:
        """Make the token table the head where it is to be."""
        if self.tied:
            self.head.weight = self.token.weight

    def forward(self, ids: Tensor, cache: Cache | None = None) -> Tensor:
        """[B, T] -> logits [B, T, V]; behind what the cache holds, and it holds these as well."""
        places, sight = places_of(ids, cache, self.context)
        x = self.token(ids) + self.position(places)
        for layer, block in enumerate(self.blocks):
            x = block(x, sight, layer)
        if cache is not None:
            cache.advance(ids.shape[1])
        return self.head(self.final(x))

    def _apply(self, fn: Any, recurse: bool = True) -> CharGPT:
        """One table still, where a conversion makes new parameters."""
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self.tie()
        return self

    def parts(self) -> Iterator[Part]:
        """Tables, blocks, norm, and the head unless it is the token table."""
        yield same("token.weight", self.token.weight)
        yield same("position.weight", self.position.weight)
        for i, block in enumerate(self.blocks):
            yield from under(f"blocks.{i}", parts_of(block))
        yield from under("final", every(self.final))
        if not self.tied:
            yield from under("head", every(self.head))
