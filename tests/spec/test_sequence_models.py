"""Recurrent and state-space models: streaming, prefixes, exchange of state, one optimizer step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from assay.spec.models.exchange import TABLES
from assay.spec.models.layout import expand
from assay.spec.models.networks.catalogue import NETWORKS
from assay.spec.models.networks.stream import one_hot
from tests.spec.model_agreement import (
    assert_model_agrees,
    assert_model_encloses,
    assert_one_step_equals_torchs,
    assert_state_round_trips,
    draw_params,
)
from tests.spec.sequence_models import EVERY, MODELS, UNHELD, configuration, draw_inputs


@EVERY
@given(seed=st.integers(0, 9999))
@settings(max_examples=30)
def test_networks_read_the_layout_in_its_order_and_state_round_trips(name: str, seed: int) -> None:
    model, config = MODELS[name], configuration(name, seed, layers=3)
    names = tuple(p.name for p in expand(model.layout(config)))
    assert model.network.network(config).names == names
    assert_state_round_trips(name, config, model.module(config))


@EVERY
@given(seed=st.integers(0, 9999), steps=st.integers(0, 5), cut=st.integers(0, 5))
@settings(max_examples=50)
def test_a_chunk_from_the_states_of_the_one_before_continues_the_whole(
    name: str, seed: int, steps: int, cut: int
) -> None:
    network, config = MODELS[name].network, configuration(name, seed)
    params, x = draw_params(name, config, seed), draw_inputs(config, seed, steps)
    cut = min(cut, steps)
    whole, last = network.run(config, params, x)
    np.testing.assert_allclose(network.forward(config, params, x), whole, atol=1e-14)
    first, states = network.run(config, params, x[:, :cut])
    second, after = network.run(config, params, x[:, cut:], states)
    np.testing.assert_allclose(np.concatenate([first, second], axis=1), whole, atol=1e-12)
    for a, b in zip(after, last, strict=True):
        pairs = zip(a, b, strict=True) if isinstance(a, tuple) else [(a, b)]
        for one, other in pairs:
            np.testing.assert_allclose(one, other, atol=1e-12)


@pytest.mark.parametrize(("name", "part"), [("lstm_lm", 0), ("lstm_lm", 1), ("mamba_lm", 0),
                                            ("mamba_lm", 1), ("rnn_lm", None)])  # fmt: skip
def test_a_chunk_without_a_part_of_the_state_differs(name: str, part: int | None) -> None:
    network, config = MODELS[name].network, MODELS[name].config(vocabulary=3, hidden=3)
    params, x = draw_params(name, config, 1), draw_inputs(config, 2, 5)
    whole, _ = network.run(config, params, x)
    _, (state,) = network.run(config, params, x[:, :3])
    if part is None:
        broken = np.zeros_like(state)
    else:
        parts = [np.zeros_like(p) if i == part else p for i, p in enumerate(state)]
        broken = type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)
    rest, _ = network.run(config, params, x[:, 3:], [broken])
    assert np.abs(rest - whole[:, 3:]).max() > 1e-4
    right, _ = network.run(config, params, x[:, 3:], [state])
    assert np.abs(right - whole[:, 3:]).max() < 1e-12


@EVERY
@given(seed=st.integers(0, 9999))
@settings(max_examples=30)
def test_later_inputs_change_no_earlier_output_and_rows_are_independent(
    name: str, seed: int
) -> None:
    network, config = MODELS[name].network, configuration(name, seed)
    params, x = draw_params(name, config, seed), draw_inputs(config, seed, 4, batch=3)
    whole = network.forward(config, params, x)
    later = x.copy()
    later[:, 2:] += 1
    np.testing.assert_allclose(
        network.forward(config, params, later)[:, :2], whole[:, :2], atol=1e-14
    )
    for b in range(3):
        alone = network.forward(config, params, x[b : b + 1])[0]
        np.testing.assert_allclose(alone, whole[b], atol=1e-13)


@EVERY
def test_the_model_runs_on_balls_that_enclose_its_values(name: str) -> None:
    config = configuration(name, 5)
    inputs = draw_inputs(config, 6, 2, batch=1)
    assert_model_encloses(name, MODELS[name].network, config, inputs)


@pytest.mark.parametrize("name", ["rnn_lm", "lstm_lm", "mamba_lm"])
def test_one_adamw_step_on_the_token_loss_equals_torchs(name: str) -> None:
    model = MODELS[name]
    config = model.config(vocabulary=4, hidden=3, layers=2, context=5)
    module: nn.Module = model.module(config)
    assert_one_step_equals_torchs(
        name, model.network, config, module, read=lambda ids: one_hot(ids, 4)
    )


@pytest.mark.parametrize("name", ["lstm_lm", "mamba_lm"])
def test_agreement_notices_gates_or_taps_in_another_order(name: str) -> None:
    config = MODELS[name].config(vocabulary=3, hidden=2)
    inputs = draw_inputs(config, 2, 3)
    module = MODELS[name].module(config)
    call: dict[str, Any] = {"seed": 1, "unheld": UNHELD}
    assert_model_agrees(name, MODELS[name].network, config, inputs, module, **call)
    if name == "lstm_lm":
        right = module.lstm.forward

        def swapped(x: torch.Tensor) -> Any:
            for part in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0"):
                p = getattr(module.lstm, part)
                i, f, g, o = p.data.chunk(4)
                p.data = torch.cat([f, i, g, o])
            return right(x)

        module.lstm.forward = swapped
    else:
        conv = module.layers[0].conv1d
        conv.register_forward_pre_hook(
            lambda m, _: setattr(m.weight, "data", m.weight.data.flip(-1))
        )
    with pytest.raises(AssertionError, match=r"error .* x bound"):
        assert_model_agrees(name, MODELS[name].network, config, inputs, module, **call)


def test_one_catalogue_of_networks_has_every_model_whose_state_can_be_exchanged() -> None:
    assert set(NETWORKS) == set(TABLES)
    for name, model in MODELS.items():
        assert NETWORKS[name].forward is model.network.forward
