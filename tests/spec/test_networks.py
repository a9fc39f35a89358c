"""MLP and ResNet against torch: outputs, all gradients, exchange of state."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.spec.layers.layer import map_leading, residual
from assay.spec.layers.leaves import activation_layer
from assay.spec.layers.self_attention import split_heads
from assay.spec.models import mlp, resnet
from assay.spec.models.layout import expand
from assay.spec.models.mlp import MLPConfig
from assay.spec.models.networks import mlp as mlp_network
from assay.spec.models.networks import resnet as resnet_network
from assay.spec.models.resnet import ResNetConfig
from tests.spec.model_agreement import (
    assert_model_agrees,
    assert_model_encloses,
    assert_state_round_trips,
    draw_params,
)
from tests.spec.torch_models.networks import MLP, ResNet


@st.composite
def mlps(draw: st.DrawFn) -> MLPConfig:
    return MLPConfig(
        inputs=draw(st.integers(1, 4)),
        hidden=tuple(draw(st.lists(st.integers(1, 4), max_size=3))),
        outputs=draw(st.integers(1, 3)),
        activation=draw(st.sampled_from(["relu", "gelu", "gelu_tanh", "silu", "tanh", "sigmoid"])),
        shortcut=draw(st.booleans()),
    )


@st.composite
def resnets(draw: st.DrawFn) -> ResNetConfig:
    axes = draw(st.integers(1, 3))
    top = 4 if axes < 3 else 2
    return ResNetConfig(
        channels=draw(st.integers(1, 2)),
        spatial=tuple(draw(st.integers(1, top)) for _ in range(axes)),
        hidden=draw(st.integers(1, 3)),
        radius=draw(st.one_of(st.none(), st.tuples(*[st.integers(0, 1)] * axes))),
        classes=draw(st.integers(1, 3)),
    )


def draw_rows(config: MLPConfig, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(seed % 4, config.inputs))


def draw_images(config: ResNetConfig, seed: int, batch: int = 2) -> np.ndarray:
    shape = (batch, config.channels, *config.spatial)
    return np.random.default_rng(seed).normal(size=shape)


@given(config=mlps(), seed=st.integers(0, 999), dtype=st.sampled_from(["float64", "float32"]))
@settings(max_examples=250)
def test_mlp_and_its_gradients_equal_torchs(config: MLPConfig, seed: int, dtype: str) -> None:
    assert_model_agrees(
        "mlp", mlp_network, config, draw_rows(config, seed), MLP(config), seed=seed, dtype=dtype
    )


@given(config=resnets(), seed=st.integers(0, 999), dtype=st.sampled_from(["float64", "float32"]))
@settings(max_examples=200)
def test_resnet_and_its_gradients_equal_torchs(config: ResNetConfig, seed: int, dtype: str) -> None:
    assert_model_agrees(
        "resnet", resnet_network, config, draw_images(config, seed), ResNet(config), seed=seed,
        dtype=dtype,
    )  # fmt: skip


@given(config=mlps(), other=resnets())
@settings(max_examples=50)
def test_networks_read_the_layout_in_its_order_and_state_round_trips(
    config: MLPConfig, other: ResNetConfig
) -> None:
    pairs: list[tuple[str, Any, Any, Any, Any]] = [
        ("mlp", config, mlp, mlp_network, MLP(config)),
        ("resnet", other, resnet, resnet_network, ResNet(other)),
    ]
    for name, chosen, model, network, module in pairs:
        want = tuple(p.name for p in expand(model.layout(chosen)))
        assert network.network(chosen).names == want
        assert_state_round_trips(name, chosen, module)


def test_the_models_run_on_balls_that_enclose_their_values() -> None:
    deep = MLPConfig(hidden=(3, 2), activation="gelu", shortcut=True)
    assert_model_encloses("mlp", mlp_network, deep, draw_rows(deep, 3))
    small = ResNetConfig(channels=1, spatial=(2, 3), hidden=2, classes=2)
    assert_model_encloses("resnet", resnet_network, small, draw_images(small, 1, batch=1))


def test_an_mlp_over_leading_axes_is_the_mlp_mapped_over_them() -> None:
    config = MLPConfig()
    params = draw_params("mlp", config, 1)
    x = np.random.default_rng(2).normal(size=(4, 2, 3))
    net = mlp_network.network(config)
    mapped = map_leading(net, 2)
    np.testing.assert_allclose(mapped.forward(params, x), net.forward(params, x), atol=1e-14)
    g = np.random.default_rng(3).normal(size=(4, 2, 2))
    (a, of_a), (b, of_b) = mapped.backward(params, x, g), net.backward(params, x, g)
    assert a is not None
    assert b is not None
    np.testing.assert_allclose(a, b, atol=1e-14)
    assert set(of_a) == set(of_b)
    for name, gradient in of_a.items():
        np.testing.assert_allclose(gradient, of_b[name], atol=1e-13)


def test_a_resnet_keeps_extents_and_ends_in_classes_and_images_are_independent() -> None:
    config = ResNetConfig(channels=3, spatial=(4, 5), hidden=4, radius=(2, 1), classes=10)
    params, x = draw_params("resnet", config, 1), draw_images(config, 1, batch=3)
    whole = resnet_network.forward(config, params, x)
    assert whole.shape == (3, 10)
    for b in range(3):
        alone = resnet_network.forward(config, params, x[b : b + 1])[0]
        np.testing.assert_allclose(alone, whole[b], atol=1e-13)


def test_a_resnet_applies_relu_after_each_addition() -> None:
    # One channel, one pixel: stem gives 1, the first block adds -3, and the second adds 0 to relu.
    config = ResNetConfig(channels=1, spatial=(1,), hidden=1, radius=(0,), classes=1)
    params = {p.name: np.zeros(p.shape) for p in expand(resnet.layout(config))}
    params["stem.bias"] += 1
    params["block.0.conv2.bias"] -= 3
    params["head.weight"] += 1
    assert resnet_network.forward(config, params, np.zeros((1, 1, 1))).tolist() == [[0.0]]


GOLDEN: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "golden" / "joining.json").read_text()
)


def test_joined_layers_equal_worked_examples() -> None:
    by_name = {e["name"]: e for e in GOLDEN}
    entry = by_name["residual_relu"]
    x = np.array(entry["x"], dtype=float)
    assert residual(activation_layer("relu")).forward({}, x).tolist() == entry["expected"]
    entry = by_name["split_heads"]
    flat = np.array(entry["flat"], dtype=float).reshape(1, entry["length"], -1)
    assert split_heads(flat, entry["heads"]).ravel().tolist() == entry["expected"]
    assert all(len(e["origin"]) > 20 for e in GOLDEN)


def test_an_unknown_activation_and_heads_that_do_not_divide_are_refused_with_what_is_valid() -> (
    None
):
    with pytest.raises(ValueError, match=r"activation='swish' does not exist; valid: gelu, "):
        activation_layer("swish")
    for heads in (0, 3):
        with pytest.raises(ValueError, match=f"heads={heads} does not divide width=4"):
            split_heads(np.zeros((1, 2, 4)), heads)


def _fractions(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    exact = np.frompyfunc(Fraction, 1, 1)
    return {n: np.asarray(exact(a), dtype=object).reshape(a.shape) for n, a in arrays.items()}


@given(seed=st.integers(0, 999))
@settings(max_examples=20)
def test_networks_of_relu_run_exactly_on_fractions_and_floats_equal_them_where_nothing_is_rounded(
    seed: int,
) -> None:
    # Whole numbers and a mean over a power of two: float64 holds every value on the way.
    rng = np.random.default_rng(seed)
    deep = MLPConfig(hidden=(3, 2), shortcut=True)
    small = ResNetConfig(channels=1, spatial=(2, 2), hidden=2, classes=2)
    for model, network, config, shape in (
        (mlp, mlp_network, deep, (3, deep.inputs)),
        (resnet, resnet_network, small, (2, 1, 2, 2)),
    ):
        names: Any = expand(model.layout(config))
        params = {p.name: rng.integers(-3, 4, p.shape).astype(float) for p in names}
        x = rng.integers(-4, 5, shape).astype(float)
        y = network.forward(config, params, x)
        g = rng.integers(-2, 3, y.shape).astype(float)
        exact = _fractions({**params, "x": x, "g": g})
        held = {n: exact[n] for n in params}
        assert (network.forward(config, held, exact["x"]) == y).all()
        want = network.backward(config, params, x, g)
        got = network.backward(config, held, exact["x"], exact["g"])
        assert set(got) == set(want)
        for n, value in got.items():
            assert value.dtype == object
            assert (value == want[n]).all()
