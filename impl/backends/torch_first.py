"""First values of transformers: N(0, 0.02), zeros in biases, smaller ends of residual branches."""

from __future__ import annotations

import math

import torch
from torch import nn

from assay.impl.backends.torch_models_transformer import GPT

DEVIATION = 0.02


def initialise(module: nn.Module, seed: int) -> None:
    """Draw every parameter anew; the random state of the process stays as it is.

    In the course GPT the two maps that end residual branches start smaller by the root of their
    number, so that the sum of all of them keeps the deviation.
    """
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        module.apply(_first_values)
        if isinstance(module, GPT):
            for name, p in module.named_parameters():
                if name.endswith("c_proj.weight"):
                    nn.init.normal_(p, std=DEVIATION / math.sqrt(2 * len(module.h)))


def _first_values(part: nn.Module) -> None:
    if isinstance(part, nn.LayerNorm):
        part.reset_parameters()
    elif isinstance(part, nn.Linear | nn.Embedding):
        nn.init.normal_(part.weight, std=DEVIATION)
        if isinstance(part, nn.Linear) and part.bias is not None:
            nn.init.zeros_(part.bias)
