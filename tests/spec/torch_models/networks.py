"""MLP, ResNet, the recurrent models and Mamba as one would write them in torch."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from assay.spec.models.mamba_lm import MambaLanguageModelConfig
from assay.spec.models.mlp import MLPConfig
from assay.spec.models.resnet import ResNetConfig
from tests.spec.torch_models.transformers import ACTIVATIONS, CONVOLUTIONS


class Activation(nn.Module):
    """A function as a module."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.function = ACTIVATIONS[name]

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


class MLP(nn.Module):
    """Linear layers with an activation between, and an optional shortcut."""

    def __init__(self, config: MLPConfig) -> None:
        super().__init__()
        steps: list[nn.Module] = []
        for fan_in, fan_out in pairwise(config.widths):
            steps += [nn.Linear(fan_in, fan_out), Activation(config.activation)]
        self.layers = nn.Sequential(*steps[:-1])
        self.shortcut = nn.Linear(config.inputs, config.outputs) if config.shortcut else None

    def forward(self, x: Tensor) -> Tensor:
        y = self.layers(x)
        return y if self.shortcut is None else y + self.shortcut(x)


class ResidualBlock(nn.Module):
    """x + conv(ReLU(conv x)), then ReLU."""

    def __init__(self, convolution: Any) -> None:
        super().__init__()
        self.conv1, self.conv2 = convolution(), convolution()

    def forward(self, x: Tensor) -> Tensor:
        return (x + self.conv2(self.conv1(x).relu())).relu()


class ResNet(nn.Module):
    """Stem, two blocks, global mean, head."""

    def __init__(self, config: ResNetConfig) -> None:
        super().__init__()
        kind, w = CONVOLUTIONS[len(config.spatial)], config.hidden
        self.stem = kind(config.channels, w, config.kernel, padding=config.radii)
        self.blocks = nn.Sequential(
            *(
                ResidualBlock(lambda: kind(w, w, config.kernel, padding=config.radii))
                for _ in range(2)
            )
        )
        self.head = nn.Linear(w, config.classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.stem(x).relu()).flatten(2).mean(dim=2))


class Recurrent(nn.Module):
    """nn.RNN or nn.LSTM and a linear head at every time."""

    def __init__(self, kind: str, inputs: int, hidden: int, outputs: int, layers: int) -> None:
        super().__init__()
        made = {"rnn": nn.RNN, "lstm": nn.LSTM}[kind]
        self.kind = kind
        setattr(self, kind, made(inputs, hidden, layers, batch_first=True))
        self.head = nn.Linear(hidden, outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(getattr(self, self.kind)(x)[0])


class SelectiveLayer(nn.Module):
    """A Mamba layer with a square projection of the step size, scanned by a plain loop."""

    def __init__(self, inputs: int, config: MambaLanguageModelConfig) -> None:
        super().__init__()
        e, n, k = config.inner, config.states, config.taps
        self.in_proj = nn.Linear(inputs, 2 * e, bias=False)
        self.conv1d = nn.Conv1d(e, e, k, groups=e, padding=k - 1)
        self.dt_proj = nn.Linear(e, e)
        self.A_log = nn.Parameter(torch.zeros(e, n))
        self.x_proj = nn.Linear(e, 2 * n, bias=False)
        self.D = nn.Parameter(torch.zeros(e))
        self.out_proj = nn.Linear(e, config.hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        inner, gate = self.in_proj(x).chunk(2, dim=-1)
        # Padding on both sides: the first T outputs are those that look back.
        u = self.conv1d(inner.transpose(1, 2))[..., : x.shape[1]].transpose(1, 2)
        u = functional.silu(u)
        delta = functional.softplus(self.dt_proj(u))
        b, c = self.x_proj(u).chunk(2, dim=-1)
        rate = -self.A_log.exp()
        h = torch.zeros(x.shape[0], *rate.shape, dtype=x.dtype)
        outputs = []
        for t in range(x.shape[1]):
            decay = (delta[:, t, :, None] * rate).exp()
            h = decay * h + (delta[:, t] * u[:, t])[..., None] * b[:, t, None]
            outputs.append((h * c[:, t, None]).sum(-1) + self.D * u[:, t])
        return self.out_proj(torch.stack(outputs, dim=1) * functional.silu(gate))


class Mamba(nn.Module):
    """Selective layers and a linear head at every time."""

    def __init__(self, config: MambaLanguageModelConfig) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *(
                SelectiveLayer(config.hidden if i else config.vocabulary, config)
                for i in range(config.layers)
            )
        )
        self.head = nn.Linear(config.hidden, config.vocabulary)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layers(x))
