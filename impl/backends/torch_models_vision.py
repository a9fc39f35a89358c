"""Models of rows and images as torch modules: an MLP, a residual network, a vision transformer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from assay.impl.backends import torch_models_fields as rules
from assay.impl.backends.torch_models_state import Part, every, parts_of, same, under
from assay.impl.backends.torch_models_transformer import MLP as BlockMLP
from assay.impl.backends.torch_models_transformer import Block, SeparateAttention, Sight


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
        rules.refuse(
            *rules.not_whole(inputs=inputs, outputs=outputs, **rules.each("hidden", hidden)),
            *rules.not_among(tuple(rules.ACTIVATIONS), activation=activation),
            *rules.not_flags(shortcut=shortcut),
        )
        steps: list[nn.Module] = []
        for fan_in, fan_out in pairwise((inputs, *hidden, outputs)):
            steps += [nn.Linear(fan_in, fan_out), rules.Activation(activation)]
        self.layers = nn.Sequential(*steps[:-1])
        self.shortcut = nn.Linear(inputs, outputs) if shortcut else None

    def forward(self, x: Tensor) -> Tensor:
        """[B, I] -> [B, O]."""
        y = self.layers(x)
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
        radii = (1,) * len(spatial) if radius is None else radius
        rules.refuse(
            *rules.not_whole(channels=channels, hidden=hidden, classes=classes),
            *rules.not_whole(**rules.each("spatial", spatial)),
            *rules.not_among(tuple(rules.CONVOLUTIONS), axes=len(spatial)),
            *rules.not_per_axis(len(spatial), 0, radius=radii),
        )
        kind, kernel = rules.CONVOLUTIONS[len(spatial)], tuple(2 * r + 1 for r in radii)
        self.image = (channels, *spatial)
        self.stem = kind(channels, hidden, kernel, padding=radii)
        self.blocks = nn.Sequential(
            *(ResidualBlock(lambda: kind(hidden, hidden, kernel, padding=radii)) for _ in range(2))
        )
        self.head = nn.Linear(hidden, classes)

    def forward(self, x: Tensor) -> Tensor:
        """[B, C, *n] -> [B, V]."""
        check_image(x, self.image)
        return self.head(self.blocks(functional.relu(self.stem(x))).flatten(2).mean(dim=2))


def check_image(x: Tensor, image: tuple[int, ...]) -> None:
    """ValueError for an image of another size."""
    if tuple(x.shape[1:]) != image:
        raise ValueError(f"image {tuple(x.shape[1:])} must be {image}")


class ViT(nn.Module):
    """Patches, a class token before them where wanted, positions, blocks, norm, the mean of the
    tokens or the first one, head.
    """

    def __init__(
        self,
        channels: int = 3,
        spatial: tuple[int, ...] = (4, 4),
        width: int = 4,
        kernel: tuple[int, ...] = (2, 2),
        stride: tuple[int, ...] | None = None,
        padding: tuple[int, ...] | None = None,
        heads: int = 2,
        head_width: int = 2,
        feed_forward: int = 8,
        layers: int = 1,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        feed_forward_dropout: float = 0.0,
        activation: str = "gelu_tanh",
        input_bias: bool = False,
        pooling: str = "mean",
        classes: int = 10,
        *,
        explicit: bool = False,
    ) -> None:
        super().__init__()
        axes = len(spatial)
        strides = (1,) * axes if stride is None else stride
        paddings = (0,) * axes if padding is None else padding
        rules.refuse(
            *rules.not_whole(
                channels=channels, width=width, heads=heads, head_width=head_width,
                feed_forward=feed_forward, classes=classes, **rules.each("spatial", spatial),
            ),
            *rules.not_among(tuple(rules.CONVOLUTIONS), axes=axes),
            *rules.not_per_axis(axes, 1, kernel=kernel, stride=strides),
            *rules.not_per_axis(axes, 0, padding=paddings),
            *not_covered(kernel, spatial, paddings),
            *rules.not_whole(0, layers=layers),
            *rules.not_rates(
                dropout=dropout, attention_dropout=attention_dropout,
                feed_forward_dropout=feed_forward_dropout,
            ),
            *rules.not_among(tuple(rules.ACTIVATIONS), activation=activation),
            *rules.not_flags(input_bias=input_bias),
            *rules.not_among(("mean", "cls"), pooling=pooling),
        )  # fmt: skip
        self.image = (channels, *spatial)
        self.patch = rules.CONVOLUTIONS[axes](channels, width, kernel, strides, paddings)
        sizes = zip(spatial, paddings, kernel, strides, strict=True)
        patches = math.prod((n + 2 * p - k) // s + 1 for n, p, k, s in sizes)
        own = pooling == "cls"
        self.class_token = nn.Parameter(torch.zeros(1, width)) if own else None
        self.position = nn.Parameter(torch.zeros(patches + own, width))
        self.blocks = nn.ModuleList(
            Block(
                width,
                SeparateAttention(
                    width, heads, heads * head_width, input_bias=input_bias, output_bias=True,
                    explicit=explicit, dropout=attention_dropout,
                ),
                BlockMLP(width, feed_forward, activation, feed_forward_dropout),
                dropout,
            )
            for _ in range(layers)
        )  # fmt: skip
        self.final = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        """[B, C, *n] -> [B, V]."""
        check_image(x, self.image)
        x = self.patch(x).flatten(2).transpose(1, 2)
        if self.class_token is not None:
            x = torch.cat([self.class_token.expand(len(x), 1, -1), x], dim=1)
        x = x + self.position
        sight = Sight(x.shape[1], causal=False)
        for layer, block in enumerate(self.blocks):
            x = block(x, sight, layer)
        x = self.final(x)
        return self.head(x.mean(dim=1) if self.class_token is None else x[:, 0])

    def parts(self) -> Iterator[Part]:
        """Patches, tokens, positions, blocks, norm, head."""
        yield from under("patch", every(self.patch))
        if self.class_token is not None:
            yield same("class_token", self.class_token)
        yield same("position", self.position)
        for i, block in enumerate(self.blocks):
            yield from under(f"blocks.{i}", parts_of(block))
        yield from under("final", every(self.final))
        yield from under("head", every(self.head))


def not_covered(
    kernel: tuple[int, ...], spatial: tuple[int, ...], padding: tuple[int, ...]
) -> list[str]:
    """A reason when a patch is longer than the padded image."""
    if not len(kernel) == len(spatial) == len(padding):
        return []
    spans = [n + 2 * p for n, p in zip(spatial, padding, strict=True)]
    fits = all(k <= span for k, span in zip(kernel, spans, strict=True))
    return [] if fits else [f"kernel={kernel!r} is longer than the padded image {spans}"]
