"""The models and their presets."""

from __future__ import annotations

from dataclasses import replace

from assay.spec.models import (
    char_gpt,
    fno,
    gpt,
    lstm_lm,
    lstm_regression,
    mamba_lm,
    mlp,
    resnet,
    rnn_lm,
    vit,
)
from assay.spec.models.char_gpt import CharGPTConfig
from assay.spec.models.fno import FNOConfig
from assay.spec.models.gpt import GPTConfig
from assay.spec.models.lstm_lm import LSTMLanguageModelConfig
from assay.spec.models.lstm_regression import LSTMRegressionConfig
from assay.spec.models.mamba_lm import MambaLanguageModelConfig
from assay.spec.models.mlp import MLPConfig
from assay.spec.models.model import Model, Preset
from assay.spec.models.resnet import ResNetConfig
from assay.spec.models.rnn_lm import RNNLanguageModelConfig
from assay.spec.models.transformer import transformer_extras
from assay.spec.models.vit import ViTConfig

_KARPATHY = CharGPTConfig(context=256, heads=6, width=384, layers=6, dropout=0.2)
_CIFAR = ViTConfig(
    spatial=(32, 32),
    width=64,
    kernel=(4, 4),
    stride=(4, 4),
    heads=4,
    head_width=16,
    feed_forward=128,
    layers=2,
    pooling="cls",
)
_PATCH_5 = replace(_CIFAR, kernel=(5, 5), stride=(5, 5))
_WIDE = FNOConfig(spatial=(64,), modes=(12,), width=32, layers=4)

MODELS: tuple[Model, ...] = (
    Model(
        "mlp",
        "multilayer perceptron, with a linear shortcut where wanted",
        MLPConfig,
        mlp.layout,
        mlp.terms,
        mlp.steps,
        (
            Preset("smoke", "3 to 5 to 2", MLPConfig()),
            Preset(
                "branches",
                "32 to 8 twice, added",
                MLPConfig(inputs=32, hidden=(), outputs=8, shortcut=True),
            ),
        ),
    ),
    Model(
        "resnet",
        "residual network in any number of dimensions, without norms",
        ResNetConfig,
        resnet.layout,
        resnet.terms,
        resnet.steps,
        (
            Preset("smoke", "3 x 8 x 8 images, 4 channels", ResNetConfig()),
            Preset("cifar", "3 x 32 x 32, 16 channels", ResNetConfig(spatial=(32, 32), hidden=16)),
        ),
    ),
    Model(
        "vit",
        "vision transformer",
        ViTConfig,
        vit.layout,
        vit.terms,
        vit.steps,
        (
            Preset(
                "smoke",
                "3 x 4 x 4 crops, patches of 2",
                ViTConfig(stride=(2, 2), layers=2, pooling="cls"),
            ),
            Preset("cifar", "3 x 32 x 32, patches of 4", _CIFAR),
            Preset("cifar_patch5", "patches of 5, which leave 2 pixels out", _PATCH_5),
        ),
    ),
    Model(
        "char_gpt",
        "causal transformer over characters",
        CharGPTConfig,
        char_gpt.layout,
        char_gpt.terms,
        char_gpt.steps,
        (
            Preset("smoke", "seconds on a laptop", CharGPTConfig()),
            Preset("karpathy", "6 layers of width 384, dropout 0.2", _KARPATHY),
        ),
        char_gpt.decoding_state,
        transformer_extras,
    ),
    Model(
        "gpt",
        "the course GPT: tied head, fused queries, keys and values",
        GPTConfig,
        gpt.layout,
        gpt.terms,
        gpt.steps,
        (
            Preset("course", "4 layers of width 128", GPTConfig()),
            Preset("gpt2", "GPT-2 small", GPTConfig(50257, 1024, 12, 12, 768)),
            Preset("gpt3", "GPT-3, dense attention", GPTConfig(50257, 2048, 96, 96, 12288)),
        ),
        gpt.decoding_state,
        transformer_extras,
    ),
    Model(
        "rnn_lm",
        "recurrent language model over one-hot symbols",
        RNNLanguageModelConfig,
        rnn_lm.layout,
        rnn_lm.terms,
        rnn_lm.steps,
        (Preset("smoke", "one layer of 32", RNNLanguageModelConfig()),),
        rnn_lm.decoding_state,
    ),
    Model(
        "lstm_lm",
        "LSTM language model over one-hot symbols",
        LSTMLanguageModelConfig,
        lstm_lm.layout,
        lstm_lm.terms,
        lstm_lm.steps,
        (Preset("smoke", "one layer of 32", LSTMLanguageModelConfig()),),
        lstm_lm.decoding_state,
    ),
    Model(
        "lstm_regression",
        "LSTM from a sequence of numbers to a sequence of numbers",
        LSTMRegressionConfig,
        lstm_regression.layout,
        lstm_regression.terms,
        lstm_regression.steps,
        (Preset("smoke", "one layer of 16", LSTMRegressionConfig()),),
        lstm_regression.decoding_state,
    ),
    Model(
        "mamba_lm",
        "selective state-space language model over one-hot symbols",
        MambaLanguageModelConfig,
        mamba_lm.layout,
        mamba_lm.terms,
        mamba_lm.steps,
        (Preset("smoke", "one layer of 32, 16 states", MambaLanguageModelConfig()),),
        mamba_lm.decoding_state,
    ),
    Model(
        "fno",
        "Fourier neural operator, full spectrum or rfft",
        FNOConfig,
        fno.layout,
        fno.terms,
        fno.steps,
        (
            Preset("burgers", "32 points, width 8, 8 modes", FNOConfig()),
            Preset("burgers_rfft", "the same with rfft", FNOConfig(spectrum="rfft")),
            Preset("wide", "64 points, width 32, 4 layers", _WIDE),
            Preset("wide_rfft", "the same with rfft", replace(_WIDE, spectrum="rfft")),
        ),
        extras=fno.extras,
    ),
)


def model(name: str) -> Model:
    """The model of this name; KeyError names the valid ones.

    >>> model("gpt").presets[0].name
    'course'
    """
    for entry in MODELS:
        if entry.name == name:
            return entry
    raise KeyError(f"model {name!r} does not exist; valid: {', '.join(m.name for m in MODELS)}")
