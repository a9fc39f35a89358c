"""The torch module of every model, by the model's name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch import nn

from assay.impl.backends.torch_models_fields import fields
from assay.impl.backends.torch_models_operator import FNO
from assay.impl.backends.torch_models_sequence import Mamba, language, regression
from assay.impl.backends.torch_models_transformer import GPT, CharGPT
from assay.impl.backends.torch_models_vision import MLP, ResNet, ViT

MODULES: Mapping[str, Callable[..., nn.Module]] = {
    "mlp": MLP,
    "resnet": ResNet,
    "vit": ViT,
    "gpt": GPT,
    "char_gpt": CharGPT,
    "rnn_lm": partial(language, "rnn"),
    "lstm_lm": partial(language, "lstm"),
    "mamba_lm": Mamba,
    "lstm_regression": regression,
    "fno": FNO,
}
"""Called with the fields of a configuration by keyword."""

ONE_WAY = ("mlp", "resnet")
"""Models of which no part is a kernel that can be written out."""


def build(name: str, config: str, *, explicit: bool = False) -> nn.Module:
    """The module of a configuration, made without memory: its first values would never be read.

    ``explicit``: attention by scores, recurrences and scans step by step, transforms by matrices,
    in place of torch's kernels.
    """
    given = fields(config)
    if name not in ONE_WAY:
        given["explicit"] = explicit
    with torch.device("meta"):
        return MODULES[name](**given)
