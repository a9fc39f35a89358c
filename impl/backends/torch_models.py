"""torch.models: an MLP, a residual network, a GPT and recurrent language models, whose parameters
are cut from one vector, in the order of the state.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

from assay.impl.backends import torch_recurrent_models
from assay.impl.contract import Contract
from assay.impl.protocol import implements
from assay.impl.torch_backend import TorchBackend

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "silu": functional.silu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
}
CONVOLUTIONS: dict[int, Any] = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}


class MLP(nn.Module):
    """Linear maps with an activation between, and a linear shortcut where wanted."""

    def __init__(
        self,
        inputs: int = 3,
        hidden: tuple[int, ...] = (5,),
        outputs: int = 2,
        activation: str = "relu",
        shortcut: bool = False,
    ) -> None:
        super().__init__()
        wrong = _not_whole(inputs=inputs, outputs=outputs, **_each("hidden", hidden))
        _refuse(*wrong, *_not_among(tuple(ACTIVATIONS), activation=activation))
        widths = (inputs, *hidden, outputs)
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))
        self.shortcut = nn.Linear(inputs, outputs) if shortcut else None
        self.activation = ACTIVATIONS[activation]

    def forward(self, x: Tensor) -> Tensor:
        """[B, I] -> [B, O]."""
        y = x
        for i, layer in enumerate(self.layers):
            y = layer(self.activation(y) if i else y)
        return y if self.shortcut is None else y + self.shortcut(x)


class ResidualBlock(nn.Module):
    """x + conv(ReLU(conv x)), then ReLU."""

    def __init__(self, convolution: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.conv1, self.conv2 = convolution(), convolution()

    def forward(self, x: Tensor) -> Tensor:
        """The shape of x."""
        return functional.relu(x + self.conv2(functional.relu(self.conv1(x))))


class ResNet(nn.Module):
    """Stem, two blocks, global mean, head."""

    def __init__(
        self,
        channels: int = 3,
        spatial: tuple[int, ...] = (8, 8),
        hidden: int = 4,
        radius: tuple[int, ...] | None = None,
        classes: int = 10,
    ) -> None:
        super().__init__()
        wrong = _not_whole(channels=channels, hidden=hidden, classes=classes)
        wrong += _not_whole(**_each("spatial", spatial))
        wrong += _not_among(tuple(CONVOLUTIONS), axes=len(spatial))
        radii = (1,) * len(spatial) if radius is None else radius
        if len(radii) != len(spatial) or any(r < 0 for r in radii):
            wrong.append(f"radius={radius!r} must have one entry of 0 or more for each axis")
        _refuse(*wrong)
        kind, kernel = CONVOLUTIONS[len(spatial)], tuple(2 * r + 1 for r in radii)
        self.image = (channels, *spatial)
        self.stem = kind(channels, hidden, kernel, padding=radii)
        self.blocks = nn.Sequential(
            *(ResidualBlock(lambda: kind(hidden, hidden, kernel, padding=radii)) for _ in range(2))
        )
        self.head = nn.Linear(hidden, classes)

    def forward(self, x: Tensor) -> Tensor:
        """[B, C, *n] -> [B, V]."""
        if tuple(x.shape[1:]) != self.image:
            raise ValueError(f"image {tuple(x.shape[1:])} must be {self.image}")
        return self.head(self.blocks(functional.relu(self.stem(x))).flatten(2).mean(dim=2))


class FusedAttention(nn.Module):
    """One matrix for queries, keys and values; a fused kernel, or explicit scores."""

    def __init__(self, width: int, heads: int, bias: bool, explicit: bool) -> None:
        super().__init__()
        self.heads, self.explicit = heads, explicit
        self.c_attn = nn.Linear(width, 3 * width, bias=bias)
        self.c_proj = nn.Linear(width, width, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """The shape of x [B, T, D]."""
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in self.c_attn(x).chunk(3, dim=2)
        )
        if self.explicit:
            future = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool, device=x.device).triu(1)
            scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[3])
            y = scores.masked_fill(future, -math.inf).softmax(dim=-1) @ v
        else:
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
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


class Block(nn.Module):
    """Attention and MLP, each after a norm and added to what came in."""

    def __init__(self, width: int, heads: int, bias: bool, explicit: bool) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(width, bias=bias)
        self.attn = FusedAttention(width, heads, bias, explicit)
        self.ln_2 = nn.LayerNorm(width, bias=bias)
        self.mlp = FusedMLP(width, bias)

    def forward(self, x: Tensor) -> Tensor:
        """The shape of x."""
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    """The token table is the head as well. Dropout is not part of inference."""

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
        wrong = _not_whole(
            vocabulary=vocabulary, context=context, layers=layers, heads=heads, width=width
        )
        if heads > 0 and width > 0 and width % heads:
            wrong.append(f"heads={heads} does not divide width={width}")
        if not 0 <= dropout < 1:
            wrong.append(f"dropout={dropout!r} must lie in [0, 1)")
        _refuse(*wrong)
        self.context = context
        self.wte, self.wpe = _table(vocabulary, width), _table(context, width)
        self.h = nn.ModuleList(Block(width, heads, bias, explicit) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width, bias=bias)

    def forward(self, ids: Tensor) -> Tensor:
        """[B, T] -> logits [B, T, V]."""
        if ids.shape[1] > self.context:
            raise ValueError(f"tokens={ids.shape[1]} exceed context={self.context}")
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1], device=ids.device))
        for block in self.h:
            x = block(x)
        return functional.linear(self.ln_f(x), self.wte.weight)


def _table(rows: int, width: int) -> nn.Embedding:
    """Without first values: to draw them on the device "meta" takes seconds the first time."""
    return nn.Embedding.from_pretrained(torch.empty(rows, width), freeze=False)


def _each(name: str, sizes: tuple[Any, ...]) -> dict[str, Any]:
    return {f"{name}[{i}]": n for i, n in enumerate(sizes)}


def _not_whole(**sizes: Any) -> list[str]:
    wrong = {n: v for n, v in sizes.items() if type(v) is not int or v < 1}
    return [f"{n}={v!r} must be a whole number of at least 1" for n, v in wrong.items()]


def _not_among(valid: tuple[Any, ...], **given: Any) -> list[str]:
    wrong = {n: v for n, v in given.items() if v not in valid}
    return [f"{n}={v!r} is unknown; valid: {', '.join(map(str, valid))}" for n, v in wrong.items()]


def _refuse(*reasons: str) -> None:
    if reasons:
        raise ValueError("; ".join(reasons))


def fields(config: str) -> dict[str, Any]:
    """The fields that a configuration sets."""
    given = json.loads(config or "{}")
    return {n: tuple(x) if isinstance(x, list) else x for n, x in given.items()}


def run(make: Callable[..., nn.Module], config: dict[str, Any], state: Tensor, x: Tensor) -> Tensor:
    """The module of a configuration, on parameters that are cut from ``state``.

    It is made without memory: its own first values would never be read.
    """
    with torch.device("meta"):
        module = make(**config)
    parameters, start = {}, 0
    for name, p in module.named_parameters():
        parameters[name] = state[start : start + p.numel()].reshape(p.shape)
        start += p.numel()
    if start != state.shape[0]:
        raise ValueError(f"state has {state.shape[0]} numbers; the model has {start}")
    found: Tensor = functional_call(module, parameters, (x,), strict=True)
    return found


class TorchModels(TorchBackend):
    """Attention of the GPT by a fused kernel or by explicit scores, as the mode says."""

    contract = Contract(
        name="torch.models",
        dtypes=("float64",),
        provider="ATen",
        modes=("fused", "explicit"),
        requires=("torch",),
    )

    @implements("mlp")
    def mlp(self, state: Tensor, x: Tensor, *, config: str) -> Tensor:
        """[B, I] -> [B, O]."""
        return run(MLP, fields(config), state, x)

    @implements("resnet")
    def resnet(self, state: Tensor, x: Tensor, *, config: str) -> Tensor:
        """[B, C, *n] -> [B, V]."""
        return run(ResNet, fields(config), state, x)

    @implements("rnn_lm")
    def rnn_lm(self, state: Tensor, x: Tensor, *, config: str) -> Tensor:
        """[B, T, V] -> [B, T, V]."""
        return torch_recurrent_models.run("rnn", config, state, x)

    @implements("lstm_lm")
    def lstm_lm(self, state: Tensor, x: Tensor, *, config: str) -> Tensor:
        """[B, T, V] -> [B, T, V]."""
        return torch_recurrent_models.run("lstm", config, state, x)

    @implements("gpt")
    def gpt(self, state: Tensor, ids: Tensor, *, config: str) -> Tensor:
        """[B, T] -> [B, T, V]."""
        return run(GPT, {**fields(config), "explicit": self.mode == "explicit"}, state, ids)
