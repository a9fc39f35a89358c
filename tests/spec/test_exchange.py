"""Exchange of state with torch: what is easily lost on the way there and back."""

from __future__ import annotations

import numpy as np
import pytest

from assay.spec.models import char_gpt
from assay.spec.models.char_gpt import CharGPTConfig
from assay.spec.models.exchange import from_torch, to_torch
from assay.spec.models.layout import expand
from assay.spec.models.mlp import MLPConfig
from assay.spec.models.rnn_lm import RNNLanguageModelConfig

TIED = CharGPTConfig(3, 1, 2, layers=1, vocabulary=4, tied=True, dropout=0.5)


def tied_params(dtype: type) -> dict[str, np.ndarray]:
    return {p.name: np.ones(p.shape, dtype=dtype) for p in expand(char_gpt.layout(TIED))}


def test_negative_zero_of_a_recurrent_bias_comes_back_with_its_sign() -> None:
    config = RNNLanguageModelConfig(2, 1)
    params = {
        "cell.0.weight": np.ones((1, 3)),
        "cell.0.bias": np.array([-0.0]),
        "head.weight": np.ones((2, 1)),
        "head.bias": np.zeros(2),
    }
    found = from_torch("rnn_lm", config, to_torch("rnn_lm", config, params))
    assert np.signbit(found["cell.0.bias"]).all()


def test_two_recurrent_biases_are_added_on_the_way_back() -> None:
    config = RNNLanguageModelConfig(2, 1)
    state = {
        "rnn.weight_ih_l0": np.ones((1, 2)),
        "rnn.weight_hh_l0": np.ones((1, 1)),
        "rnn.bias_ih_l0": np.array([0.25]),
        "rnn.bias_hh_l0": np.array([0.5]),
        "head.weight": np.ones((2, 1)),
        "head.bias": np.zeros(2),
    }
    assert from_torch("rnn_lm", config, state)["cell.0.bias"].tolist() == [0.75]


def test_nan_in_a_tied_table_is_no_difference_between_its_two_names() -> None:
    params = tied_params(np.float64)
    params["token"][0, 0] = np.nan
    state = {n: x.copy() for n, x in to_torch("char_gpt", TIED, params).items()}
    assert np.isnan(from_torch("char_gpt", TIED, state)["token"][0, 0])
    state["head.weight"][1, 1] = 7.0
    with pytest.raises(ValueError, match="must be one array under both names"):
        from_torch("char_gpt", TIED, state)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_stored_rates_have_the_format_of_the_other_parameters(dtype: type) -> None:
    found = from_torch("char_gpt", TIED, to_torch("char_gpt", TIED, tied_params(dtype)))
    assert {x.dtype for x in found.values()} == {np.dtype(dtype)}
    assert found["block.0.dropout1"] == 0.5


def test_a_network_without_rates_keeps_every_array() -> None:
    config = MLPConfig()
    params = {"layer.0.weight": np.ones((5, 3)), "layer.0.bias": np.ones(5)}
    params |= {"layer.1.weight": np.ones((2, 5)), "layer.1.bias": np.ones(2)}
    assert list(from_torch("mlp", config, to_torch("mlp", config, params))) == list(params)
