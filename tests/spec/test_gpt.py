"""The course GPT against torch: logits, all gradients, left padding, tying, first loss, state."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.spec.arithmetic import Arithmetic
from assay.spec.attention import attention
from assay.spec.inexact import running_bound
from assay.spec.layers.self_attention import merge_heads, split_heads
from assay.spec.models.gpt import GPTConfig, layout
from assay.spec.models.layout import expand, initialise
from assay.spec.models.networks import gpt as network
from assay.spec.models.networks.gpt import decode, empty_cache
from assay.spec.models.networks.loss import next_tokens, token_loss
from tests.spec.model_agreement import (
    assert_model_agrees,
    assert_model_encloses,
    assert_one_step_equals_torchs,
    assert_state_round_trips,
    draw_params,
)
from tests.spec.torch_models.transformers import GPT

SMALL = GPTConfig(vocabulary=5, context=5, layers=2, heads=2, width=4)


@st.composite
def configs(draw: st.DrawFn, layers: int = 2) -> GPTConfig:
    heads = draw(st.sampled_from([1, 2]))
    return GPTConfig(
        vocabulary=draw(st.integers(1, 5)),
        context=draw(st.integers(1, 4)),
        layers=draw(st.integers(1, layers)),
        heads=heads,
        width=heads * draw(st.integers(4 // heads, 6 // heads)),
        bias=draw(st.booleans()),
    )


def draw_ids(config: GPTConfig, seed: int, batch: int = 2) -> np.ndarray:
    rng = np.random.default_rng(seed)
    length = int(rng.integers(1, config.context + 1))
    return rng.integers(0, config.vocabulary, (batch, length))


@given(config=configs(), seed=st.integers(0, 999), padded=st.booleans())
@settings(max_examples=150)
def test_logits_and_gradients_equal_torchs_in_float64(
    config: GPTConfig, seed: int, padded: bool
) -> None:
    ids = draw_ids(config, seed)
    spec_options, torch_options = {}, {}
    if padded:
        pads = np.random.default_rng(seed).integers(0, ids.shape[1], len(ids))
        place = np.arange(ids.shape[1]) - pads[:, None]
        spec_options = {"pads": pads}
        torch_options = {
            "positions": torch.tensor(np.where(place < 0, 0, place)),
            "real": torch.tensor(place >= 0),
        }
    assert_model_agrees(
        "gpt", network, config, ids, GPT(config), seed=seed, scale=0.2,
        spec_options=spec_options, torch_options=torch_options,
    )  # fmt: skip


@given(config=configs(layers=1), seed=st.integers(0, 999))
@settings(max_examples=50)
def test_logits_and_gradients_equal_torchs_in_float32(config: GPTConfig, seed: int) -> None:
    ids = draw_ids(config, seed)
    assert_model_agrees(
        "gpt", network, config, ids, GPT(config), seed=seed, dtype="float32", scale=0.1
    )


@given(config=configs())
@settings(max_examples=50)
def test_the_network_reads_every_parameter_of_the_layout_in_its_order(config: GPTConfig) -> None:
    assert network.network(config).names == tuple(p.name for p in expand(layout(config)))


@given(config=configs())
@settings(max_examples=50)
def test_state_to_torch_and_back_is_the_same_bits(config: GPTConfig) -> None:
    assert_state_round_trips("gpt", config, GPT(config))


def test_the_model_runs_on_balls_that_enclose_its_values() -> None:
    assert_model_encloses("gpt", network, replace(SMALL, layers=1), np.array([[0, 3, 1]]))


@given(config=configs(), seed=st.integers(0, 999))
@settings(max_examples=50)
def test_later_tokens_change_no_earlier_logit_and_a_prefix_alone_gives_the_prefix(
    config: GPTConfig, seed: int
) -> None:
    params, ids = draw_params("gpt", config, seed), draw_ids(config, seed)
    whole, cut = network.forward(config, params, ids), ids.shape[1] // 2
    other = ids.copy()
    other[:, cut + 1 :] = (other[:, cut + 1 :] + 1) % config.vocabulary
    assert np.array_equal(network.forward(config, params, other)[:, : cut + 1], whole[:, : cut + 1])
    prefix = network.forward(config, params, ids[:, : cut + 1])
    np.testing.assert_allclose(prefix, whole[:, : cut + 1], atol=1e-10)


def test_heads_that_are_cut_by_a_reshape_alone_mix_tokens() -> None:
    # What the prefix law is there to catch: [B, T, F] viewed as [B, H, T, D] without a swap.
    x = np.random.default_rng(1).normal(size=(1, 4, 6))
    later = x.copy()
    later[:, 3] += 1
    right = [merge_heads(attention(*[split_heads(y, 2)] * 3, causal=True)) for y in (x, later)]
    assert np.array_equal(right[0][:, :3], right[1][:, :3])
    cut = [y.reshape(1, 2, 4, 3) for y in (x, later)]
    wrong = [merge_heads(attention(y, y, y, causal=True)) for y in cut]
    assert np.abs(wrong[0] - wrong[1])[:, :3].max() > 1e-3


@given(config=configs(), seed=st.integers(0, 999))
@settings(max_examples=50)
def test_a_left_padded_prompt_gives_the_logits_of_the_prompt_alone_whatever_the_padding_holds(
    config: GPTConfig, seed: int
) -> None:
    params, ids = draw_params("gpt", config, seed), draw_ids(config, seed, batch=3)
    width = ids.shape[1]
    pads = np.random.default_rng(seed).integers(0, width, 3)
    padded = network.forward(config, params, ids, pads=pads)
    assert np.isfinite(padded).all()
    for b, pad in enumerate(pads):
        alone = network.forward(config, params, ids[b : b + 1, pad:])
        np.testing.assert_allclose(padded[b, pad:], alone[0], atol=1e-10)


def test_a_tied_gradient_is_that_of_the_lookup_plus_that_of_the_head() -> None:
    params, ids = draw_params("gpt", SMALL, 7), np.array([[0, 3, 1, 4]])
    net = network.network(SMALL)
    cotangent = np.random.default_rng(8).normal(size=(1, 4, 5))
    whole = network.backward(SMALL, params, ids, cotangent)["token"]
    # By central differences of one use at a time, in extended precision.
    wide = {n: p.astype(np.longdouble) for n, p in params.items()}
    step = np.longdouble(2.0) ** -20
    for place in np.ndindex(*params["token"].shape):
        slope = np.longdouble(0.0)
        for sign in (1, -1):
            moved = {**wide, "token": wide["token"].copy()}
            moved["token"][place] += sign * step
            slope += sign * (net.forward(moved, ids) * cotangent).sum()
        assert abs(slope / (2 * step) - whole[place]) < 1e-8


def test_a_sequence_longer_than_the_context_is_rejected() -> None:
    with pytest.raises(ValueError, match="length=6 exceeds the 5 positions"):
        network.forward(SMALL, draw_params("gpt", SMALL, 1), np.zeros((1, 6), dtype=int))


def test_one_adamw_step_on_the_token_loss_equals_torchs() -> None:
    assert_one_step_equals_torchs("gpt", network, SMALL, GPT(SMALL))


def test_the_first_loss_is_about_the_log_of_the_vocabulary_and_needs_the_small_tables() -> None:
    config = GPTConfig(layers=1, context=32)
    ids, targets = next_tokens(np.random.default_rng(0).integers(0, 512, (8, 33)))
    params = initialise(layout(config), np.random.default_rng(1))
    loss = token_loss(network.forward(config, params, ids), targets)
    assert abs(loss - math.log(512)) < 0.1
    # Deviation 0.02 sqrt(128) of a logit adds half its square.
    assert abs(loss - (math.log(512) + 0.02**2 * 128 / 2)) < 0.03
    # A token that predicts itself is cheaper through the tied head.
    assert token_loss(network.forward(config, params, ids), ids) < loss - 0.5
    large = {**params, "token": params["token"] / 0.02}
    assert token_loss(network.forward(config, large, ids), targets) > 20


@given(config=configs(), seed=st.integers(0, 999), padded=st.booleans())
@settings(max_examples=100)
def test_decoding_any_cut_into_chunks_equals_recomputing_and_the_length_grows_once_a_step(
    config: GPTConfig, seed: int, padded: bool
) -> None:
    rng = np.random.default_rng(seed)
    params, ids = draw_params("gpt", config, seed), draw_ids(config, seed)
    pads = rng.integers(0, ids.shape[1], len(ids)) if padded else None
    whole = network.forward(config, params, ids, pads=pads)
    cache, start, rows = empty_cache(config, len(ids)), 0, []
    while start < ids.shape[1]:
        tokens = int(rng.integers(1, ids.shape[1] - start + 1))
        chunk = ids[:, start : start + tokens]
        logits, cache = decode(config, params, chunk, cache, pads=pads)
        start += tokens
        assert cache.length == start
        rows.append(logits)
    np.testing.assert_allclose(np.concatenate(rows, axis=1), whole, atol=1e-10)


def test_a_chunk_beyond_the_context_is_refused_and_the_cache_is_as_it_was() -> None:
    params, ids = draw_params("gpt", SMALL, 1), np.array([[0, 3, 1]])
    _, cache = decode(SMALL, params, ids, empty_cache(SMALL, 1))
    before = cache.k.copy()
    with pytest.raises(ValueError, match="length=3 \\+ tokens=3 exceeds context=5; valid: 2 more"):
        decode(SMALL, params, np.array([[99, 99, 99]]), cache)
    assert cache.length == 3
    assert np.array_equal(cache.k, before)
    logits, cache = decode(SMALL, params, ids[:, :2], cache)
    assert cache.length == 5
    whole = network.forward(SMALL, params, np.concatenate([ids, ids[:, :2]], axis=1))
    np.testing.assert_allclose(logits, whole[:, 3:], atol=1e-12)


def test_decoding_runs_on_arrays_that_carry_errors() -> None:
    params, ids = draw_params("gpt", SMALL, 2, 0.1), np.array([[0, 3, 1]])

    def evaluate(held: Mapping[str, Any]) -> dict[str, np.ndarray]:
        _, cache = decode(SMALL, held, ids[:, :2], empty_cache(SMALL, 1))
        return {"y": decode(SMALL, held, ids[:, 2:], cache)[0]}

    bound = running_bound(evaluate, params, Arithmetic("float32", "float32", "float32"))["y"]
    assert 0 < bound.max() < 1e-3
