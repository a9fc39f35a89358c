"""CharGPT against torch: logits, all gradients, causality, tying, exchange of state."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.spec.models.char_gpt import CharGPTConfig, layout
from assay.spec.models.exchange import from_torch, to_torch
from assay.spec.models.layout import expand
from assay.spec.models.networks import char_gpt as network
from tests.spec.model_agreement import (
    assert_model_agrees,
    assert_model_encloses,
    assert_one_step_equals_torchs,
    assert_state_round_trips,
    draw_params,
)
from tests.spec.torch_models.transformers import CharGPT

SMALL = CharGPTConfig(context=4, heads=2, width=4, feed_forward=3, layers=2, vocabulary=5)


@st.composite
def configs(draw: st.DrawFn, layers: int = 2) -> CharGPTConfig:
    heads = draw(st.sampled_from([1, 2]))
    return CharGPTConfig(
        context=draw(st.integers(1, 4)),
        heads=heads,
        width=heads * draw(st.integers(4 // heads, 6 // heads)),
        feed_forward=draw(st.sampled_from([None, 1, 3])),
        layers=draw(st.integers(0, layers)),
        dropout=draw(st.sampled_from([0.0, 0.1])),
        attention_dropout=draw(st.sampled_from([0.0, 0.1])),
        feed_forward_dropout=draw(st.sampled_from([0.0, 1.0])),
        vocabulary=draw(st.integers(1, 5)),
        activation=draw(st.sampled_from(["relu", "gelu", "gelu_tanh", "silu", "tanh", "sigmoid"])),
        input_bias=draw(st.booleans()),
        output_bias=draw(st.booleans()),
        pre_norm=draw(st.booleans()),
        tied=draw(st.booleans()),
    )


def draw_ids(config: CharGPTConfig, seed: int, batch: int = 2) -> np.ndarray:
    rng = np.random.default_rng(seed)
    length = int(rng.integers(1, config.context + 1))
    return rng.integers(0, config.vocabulary, (batch, length))


@given(config=configs(), style=st.sampled_from(["linear", "multihead"]), seed=st.integers(0, 999))
@settings(max_examples=150)
def test_logits_and_gradients_equal_torchs_in_float64(
    config: CharGPTConfig, style: str, seed: int
) -> None:
    # nn.MultiheadAttention has all biases or none: those that the configuration lacks stay 0.
    lacking = (() if config.input_bias else ("in_proj_bias",)) + (
        () if config.output_bias else ("out_proj.bias",)
    )
    assert_model_agrees(
        "char_gpt", network, config, draw_ids(config, seed), CharGPT(config, style),
        seed=seed, attention=style, scale=0.2, unheld=lacking,
    )  # fmt: skip


@given(config=configs(layers=1), seed=st.integers(0, 999))
@settings(max_examples=50)
def test_logits_and_gradients_equal_torchs_in_float32(config: CharGPTConfig, seed: int) -> None:
    assert_model_agrees(
        "char_gpt", network, config, draw_ids(config, seed), CharGPT(config, "linear"),
        seed=seed, dtype="float32", scale=0.1,
    )  # fmt: skip


@given(config=configs())
@settings(max_examples=50)
def test_the_network_reads_every_trained_parameter_of_the_layout_in_its_order(
    config: CharGPTConfig,
) -> None:
    names = tuple(p.name for p in expand(layout(config)) if p.trainable)
    assert network.network(config).names == names


@given(config=configs(), style=st.sampled_from(["linear", "multihead"]))
@settings(max_examples=50)
def test_state_to_torch_and_back_is_the_same_bits(config: CharGPTConfig, style: str) -> None:
    assert_state_round_trips("char_gpt", config, CharGPT(config, style), style)


def test_the_model_runs_on_balls_that_enclose_its_values() -> None:
    config = replace(SMALL, layers=1, activation="gelu_tanh", tied=True)
    assert_model_encloses("char_gpt", network, config, draw_ids(config, 1))


@given(config=configs(), seed=st.integers(0, 999))
@settings(max_examples=50)
def test_later_tokens_change_no_earlier_logit_and_a_prefix_alone_gives_the_prefix(
    config: CharGPTConfig, seed: int
) -> None:
    params, ids = draw_params("char_gpt", config, seed), draw_ids(config, seed)
    whole, cut = network.forward(config, params, ids), ids.shape[1] // 2
    other = ids.copy()
    other[:, cut + 1 :] = (other[:, cut + 1 :] + 1) % config.vocabulary
    assert np.array_equal(network.forward(config, params, other)[:, : cut + 1], whole[:, : cut + 1])
    prefix = network.forward(config, params, ids[:, : cut + 1])
    np.testing.assert_allclose(prefix, whole[:, : cut + 1], atol=1e-10)


@given(config=configs(), seed=st.integers(0, 999))
@settings(max_examples=50)
def test_a_sequence_alone_gives_what_it_gives_in_a_batch(config: CharGPTConfig, seed: int) -> None:
    params, ids = draw_params("char_gpt", config, seed), draw_ids(config, seed, batch=3)
    whole = network.forward(config, params, ids)
    for b in range(3):
        alone = network.forward(config, params, ids[b : b + 1])
        np.testing.assert_allclose(alone[0], whole[b], atol=1e-10)


def test_a_tied_gradient_is_that_of_the_lookup_plus_that_of_the_head() -> None:
    tied, untied = replace(SMALL, tied=True), SMALL
    params, ids = draw_params("char_gpt", tied, 7), draw_ids(tied, 7)
    apart = {**params, "head.weight": params["token"], "head.bias": np.zeros(SMALL.vocabulary)}
    logits = network.forward(tied, params, ids)
    assert np.array_equal(network.forward(untied, apart, ids), logits)
    cotangent = np.random.default_rng(8).normal(size=logits.shape)
    together = network.backward(tied, params, ids, cotangent)
    uses = network.backward(untied, apart, ids, cotangent)
    assert all(np.abs(uses[n]).max() > 0.01 for n in ("token", "head.weight"))
    np.testing.assert_allclose(together["token"], uses["token"] + uses["head.weight"], atol=1e-13)


def test_stored_dropout_rates_change_nothing_in_evaluation() -> None:
    dropped = replace(SMALL, dropout=0.5, attention_dropout=1.0, feed_forward_dropout=0.25)
    params, ids = draw_params("char_gpt", dropped, 9), draw_ids(dropped, 9)
    kept = {n: p for n, p in params.items() if p.shape}
    assert len(params) - len(kept) == 4 * SMALL.layers
    want = network.forward(SMALL, kept, ids)
    assert np.array_equal(network.forward(dropped, params, ids), want)


def test_a_sequence_longer_than_the_context_is_rejected_with_both_lengths() -> None:
    with pytest.raises(ValueError, match="length=5 exceeds the 4 positions of position"):
        network.forward(SMALL, draw_params("char_gpt", SMALL, 1), np.zeros((1, 5), dtype=int))


def test_one_adamw_step_on_the_token_loss_equals_torchs() -> None:
    config = replace(SMALL, tied=True, activation="gelu_tanh")
    assert_one_step_equals_torchs("char_gpt", network, config, CharGPT(config, "linear"))


def test_a_state_that_does_not_fit_is_refused_with_every_name() -> None:
    params = draw_params("char_gpt", SMALL, 1)
    wrong: dict[str, Any] = {**params, "tail": np.zeros(2), "position": np.zeros((4, 5))}
    del wrong["head.bias"]
    with pytest.raises(ValueError, match="state of char_gpt does not fit") as caught:
        to_torch("char_gpt", SMALL, wrong)
    assert str(caught.value).splitlines()[1:] == [
        "head.bias is missing; valid: shape (5,)",
        "tail is unknown; valid: leave it out",
        "position has shape (4, 5); valid: (4, 4)",
    ]
    state = to_torch("char_gpt", SMALL, params)
    state["blocks.0.attention.key.weight"] = np.zeros((4, 3))
    with pytest.raises(ValueError, match=r"key.weight has shape \(4, 3\); valid: \(4, 4\)"):
        from_torch("char_gpt", SMALL, state)


def test_values_that_no_parameter_can_hold_are_refused_with_every_name() -> None:
    config = replace(SMALL, tied=True)
    params = draw_params("char_gpt", config, 1)
    state = to_torch("char_gpt", config, params, attention="multihead")
    state["blocks.1.attention.in_proj_bias"] = np.ones(12)
    state["head.weight"] = state["head.weight"] + 1
    with pytest.raises(ValueError, match="torch state of char_gpt") as caught:
        from_torch("char_gpt", config, state, attention="multihead")
    assert str(caught.value).splitlines()[1:] == [
        "head.weight must be one array under both names, but they differ",
        "blocks.1.attention.in_proj_bias must be 0 everywhere: no parameter here holds it",
    ]


def test_an_unknown_model_is_refused_with_those_that_exist() -> None:
    with pytest.raises(ValueError, match="model='bert' is unknown; valid: char_gpt, fno, gpt"):
        to_torch("bert", SMALL, {})


def _worse(config: CharGPTConfig) -> None:
    """Agreement of the spec at SMALL with a torch module of another configuration."""
    ids = np.random.default_rng(1).integers(0, 5, (2, 4))
    assert_model_agrees("char_gpt", network, SMALL, ids, CharGPT(config, "linear"), seed=1)


def test_agreement_is_quiet_on_the_right_module_and_notices_small_faults() -> None:
    _worse(SMALL)
    exact = replace(SMALL, activation="gelu")
    for config in (replace(SMALL, pre_norm=False), replace(SMALL, heads=1), exact):
        with pytest.raises(AssertionError, match=r"error .* x bound"):
            _worse(config)
    # The two forms of GELU differ by less than 5e-4.
    ids = np.random.default_rng(1).integers(0, 5, (2, 4))
    formed = replace(SMALL, activation="gelu_tanh")
    with pytest.raises(AssertionError, match=r"error .* x bound"):
        assert_model_agrees("char_gpt", network, formed, ids, CharGPT(exact, "linear"), seed=1)


def test_agreement_notices_an_epsilon_of_another_size() -> None:
    module = CharGPT(SMALL, "linear")
    module.final.eps = 1e-6
    ids = np.random.default_rng(1).integers(0, 5, (2, 4))
    with pytest.raises(AssertionError, match=r"error .* x bound"):
        assert_model_agrees("char_gpt", network, SMALL, ids, module, seed=1)
