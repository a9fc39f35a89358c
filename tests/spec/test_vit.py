"""ViT against torch: logits, all gradients, the class token's place, exchange of state."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.spec.layers.leaves import linear_layer
from assay.spec.models.exchange import to_torch
from assay.spec.models.layout import expand
from assay.spec.models.networks import vit as network
from assay.spec.models.networks.images import patch_layer
from assay.spec.models.networks.transformer import norm_at
from assay.spec.models.vit import ViTConfig, layout
from tests.spec.model_agreement import (
    assert_model_agrees,
    assert_model_encloses,
    assert_state_round_trips,
    draw_params,
)
from tests.spec.torch_models.transformers import ViT


@st.composite
def configs(draw: st.DrawFn, layers: int = 1) -> ViTConfig:
    axes = draw(st.integers(1, 3))
    per_axis = st.tuples(*[st.integers(1, 2)] * axes)
    kernel = draw(per_axis)
    heads, head_width = draw(st.sampled_from([(1, 2), (2, 2), (2, 1), (1, 5)]))
    return ViTConfig(
        channels=draw(st.integers(1, 2)),
        spatial=tuple(k + draw(st.integers(0, 2)) for k in kernel),
        width=draw(st.sampled_from([4, 5])),
        kernel=kernel,
        stride=draw(st.one_of(st.just(kernel), per_axis)),
        padding=draw(st.sampled_from([None, (0,) * axes])),
        heads=heads,
        head_width=head_width,
        feed_forward=draw(st.integers(1, 3)),
        layers=draw(st.integers(0, layers)),
        dropout=draw(st.sampled_from([0.0, 0.1])),
        activation=draw(st.sampled_from(["relu", "gelu", "gelu_tanh", "silu", "tanh", "sigmoid"])),
        input_bias=draw(st.booleans()),
        pooling=draw(st.sampled_from(["mean", "cls"])),
        classes=draw(st.integers(1, 3)),
    )


def draw_images(config: ViTConfig, seed: int, batch: int = 2) -> np.ndarray:
    shape = (batch, config.channels, *config.spatial)
    return np.random.default_rng(seed).normal(size=shape)


@given(config=configs(), seed=st.integers(0, 999), joint=st.booleans())
@settings(max_examples=160)
def test_logits_and_gradients_equal_torchs_in_float64(
    config: ViTConfig, seed: int, joint: bool
) -> None:
    style = "multihead" if joint and config.inner == config.width else "linear"
    assert_model_agrees(
        "vit", network, config, draw_images(config, seed), ViT(config, style), seed=seed,
        attention=style, unheld=() if config.input_bias else ("in_proj_bias",),
    )  # fmt: skip


@given(config=configs(), seed=st.integers(0, 999))
@settings(max_examples=40)
def test_logits_and_gradients_equal_torchs_in_float32(config: ViTConfig, seed: int) -> None:
    # Without patches of some size the first norm divides by next to nothing.
    assert_model_agrees(
        "vit", network, config, 4 * draw_images(config, seed), ViT(config, "linear"), seed=seed,
        dtype="float32", scale=0.2,
    )  # fmt: skip


@given(config=configs(layers=2))
@settings(max_examples=50)
def test_the_network_reads_every_trained_parameter_of_the_layout_in_its_order(
    config: ViTConfig,
) -> None:
    names = tuple(p.name for p in expand(layout(config)) if p.trainable)
    assert network.network(config).names == names


@given(config=configs(layers=2))
@settings(max_examples=50)
def test_state_to_torch_and_back_is_the_same_bits(config: ViTConfig) -> None:
    assert_state_round_trips("vit", config, ViT(config, "linear"))
    if config.inner == config.width:
        assert_state_round_trips("vit", config, ViT(config, "multihead"), "multihead")


def test_joint_projections_need_heads_that_fill_the_width() -> None:
    config = ViTConfig(heads=1, head_width=2, width=4)
    params = draw_params("vit", config, 0)
    with pytest.raises(ValueError, match=r"heads x head_width \(2\) = width=4"):
        to_torch("vit", config, params, attention="multihead")


def test_the_model_runs_on_balls_that_enclose_its_values() -> None:
    config = ViTConfig(channels=1, spatial=(2, 3), kernel=(2, 2), pooling="cls", classes=2)
    assert_model_encloses("vit", network, config, draw_images(config, 1, batch=1))


def test_the_class_token_stands_in_row_0_and_that_row_is_read_out() -> None:
    config = ViTConfig(channels=1, spatial=(2, 3), kernel=(1, 1), layers=0, pooling="cls")
    params, x = draw_params("vit", config, 2), draw_images(config, 2)
    tokens = patch_layer("patch", "class_token", (1, 1), (0, 0)).forward(params, x)
    assert tokens.shape == (2, 7, 4)
    assert (tokens[:, 0] == params["class_token"]).all()
    # Without blocks the read-out sees the class token and its position, and no patch.
    row = params["class_token"] + params["position"][:1]
    row = norm_at("final").forward(params, row)
    want = linear_layer("head.weight", "head.bias").forward(params, row)
    np.testing.assert_allclose(
        network.forward(config, params, x), np.repeat(want, 2, 0), atol=1e-14
    )


def test_an_image_alone_gives_what_it_gives_in_a_batch() -> None:
    config = ViTConfig(layers=2)
    params, x = draw_params("vit", config, 3), draw_images(config, 3, batch=3)
    whole = network.forward(config, params, x)
    for b in range(3):
        alone = network.forward(config, params, x[b : b + 1])[0]
        np.testing.assert_allclose(alone, whole[b], atol=1e-12)


def test_without_positions_the_mean_does_not_depend_on_the_order_of_the_patches() -> None:
    config = ViTConfig(channels=1, spatial=(4,), kernel=(1,), layers=2)
    params, x = draw_params("vit", config, 4), draw_images(config, 4)
    still = {**params, "position": 0 * params["position"]}
    shuffled = x[:, :, [2, 0, 3, 1]]
    a, b = (network.forward(config, still, y) for y in (x, shuffled))
    np.testing.assert_allclose(a, b, atol=1e-12)
    c, d = (network.forward(config, params, y) for y in (x, shuffled))
    assert np.abs(c - d).max() > 1e-3


def test_stored_dropout_rates_change_nothing_in_evaluation() -> None:
    config = ViTConfig(dropout=0.5)
    params, x = draw_params("vit", config, 5), draw_images(config, 5)
    kept = {n: p for n, p in params.items() if p.shape}
    want = network.forward(replace(config, dropout=0.0), kept, x)
    assert np.array_equal(network.forward(config, params, x), want)
