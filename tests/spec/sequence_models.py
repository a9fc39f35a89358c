"""The models that run over time, how their cases are drawn, and how they are held against torch."""

from __future__ import annotations

from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

from assay.spec.models import lstm_lm, lstm_regression, mamba_lm, rnn_lm
from assay.spec.models.networks import lstm_lm as lstm_lm_network
from assay.spec.models.networks import lstm_regression as lstm_regression_network
from assay.spec.models.networks import mamba_lm as mamba_lm_network
from assay.spec.models.networks import rnn_lm as rnn_lm_network
from assay.spec.models.networks.stream import one_hot
from tests.spec.model_agreement import assert_model_agrees
from tests.spec.torch_models.networks import Mamba, Recurrent


class Model(NamedTuple):
    """A model, its network, and how a configuration and a torch module of it are made."""

    name: str
    layout: Any
    network: ModuleType
    config: Any
    module: Any


MODELS: dict[str, Model] = {
    "rnn_lm": Model(
        "rnn_lm",
        rnn_lm.layout,
        rnn_lm_network,
        rnn_lm.RNNLanguageModelConfig,
        lambda c: Recurrent("rnn", c.vocabulary, c.hidden, c.vocabulary, c.layers),
    ),
    "lstm_lm": Model(
        "lstm_lm",
        lstm_lm.layout,
        lstm_lm_network,
        lstm_lm.LSTMLanguageModelConfig,
        lambda c: Recurrent("lstm", c.vocabulary, c.hidden, c.vocabulary, c.layers),
    ),
    "lstm_regression": Model(
        "lstm_regression",
        lstm_regression.layout,
        lstm_regression_network,
        lstm_regression.LSTMRegressionConfig,
        lambda c: Recurrent("lstm", c.inputs, c.hidden, c.outputs, c.layers),
    ),
    "mamba_lm": Model(
        "mamba_lm", mamba_lm.layout, mamba_lm_network, mamba_lm.MambaLanguageModelConfig, Mamba
    ),
}
EVERY = pytest.mark.parametrize("name", sorted(MODELS))
UNHELD = ("bias_hh_l0", "bias_hh_l1", "bias_hh_l2")


def configuration(name: str, seed: int, layers: int = 2) -> Any:
    rng = np.random.default_rng(seed)
    sizes = {"hidden": int(rng.integers(1, 4)), "layers": 1 + (seed % 3 == 0) * (layers - 1)}
    sizes["context"] = 4
    if name == "lstm_regression":
        sizes |= {"inputs": int(rng.integers(1, 4)), "outputs": int(rng.integers(1, 4))}
    else:
        sizes["vocabulary"] = int(rng.integers(1, 5))
    if name == "mamba_lm":
        sizes |= {
            "expansion": int(rng.integers(1, 3)),
            "states": int(rng.integers(1, 4)),
            "taps": int(rng.integers(1, 5)),
        }
    return MODELS[name].config(**sizes)


def draw_inputs(config: Any, seed: int, steps: int, batch: int = 2) -> np.ndarray:
    """One-hot symbols for language models in half of the cases; any vectors otherwise."""
    rng = np.random.default_rng(seed)
    if hasattr(config, "vocabulary") and seed % 2:
        return one_hot(rng.integers(0, config.vocabulary, (batch, steps)), config.vocabulary)
    width = config.vocabulary if hasattr(config, "vocabulary") else config.inputs
    return rng.normal(size=(batch, steps, width))


def assert_equals_torchs(name: str, seed: int, steps: int, dtype: str) -> None:
    """Outputs and all gradients of one drawn configuration."""
    model, config = MODELS[name], configuration(name, seed)
    assert_model_agrees(
        name, model.network, config, draw_inputs(config, seed, steps), model.module(config),
        seed=seed, dtype=dtype, scale=0.3 if dtype == "float64" else 0.2, unheld=UNHELD,
    )  # fmt: skip
