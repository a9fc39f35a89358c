"""The Fourier neural operator against torch's fast transforms: outputs, all gradients, state."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.spec.models.fno import FNOConfig, layout
from assay.spec.models.layout import expand
from assay.spec.models.networks import fno as network
from tests.spec.model_agreement import (
    assert_model_agrees,
    assert_model_encloses,
    assert_state_round_trips,
    draw_params,
)
from tests.spec.torch_models.operators import FNO


@st.composite
def configs(draw: st.DrawFn) -> FNOConfig:
    spectrum = draw(st.sampled_from(["full", "rfft"]))
    axes = draw(st.integers(1, 3)) if spectrum == "full" else 1
    top = {1: 7, 2: 4, 3: 3}[axes]
    spatial = tuple(draw(st.integers(1, top)) for _ in range(axes))
    most = [n + 1 if spectrum == "full" else n // 2 + 1 for n in spatial]
    return FNOConfig(
        spatial=spatial,
        modes=tuple(draw(st.integers(0 if spectrum == "full" else 1, m)) for m in most),
        width=draw(st.integers(1, 3)),
        layers=draw(st.integers(0, 2)),
        spectrum=spectrum,
        transform=draw(st.sampled_from(["per_axis", "dense"])),
        activation=draw(st.sampled_from([None, "gelu", "silu"])),
    )


def draw_fields(config: FNOConfig, seed: int, batch: int = 2) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(batch, *config.spatial, 1))


@given(config=configs(), seed=st.integers(0, 999), single=st.booleans())
@settings(max_examples=200)
def test_outputs_and_gradients_equal_torchs(config: FNOConfig, seed: int, single: bool) -> None:
    assert_model_agrees(
        "fno", network, config, draw_fields(config, seed), FNO(config), seed=seed,
        dtype="float32" if single else "float64",
    )  # fmt: skip


@given(config=configs())
@settings(max_examples=50)
def test_the_network_reads_the_layout_in_its_order_and_state_round_trips(
    config: FNOConfig,
) -> None:
    assert network.network(config).names == tuple(p.name for p in expand(layout(config)))
    assert_state_round_trips("fno", config, FNO(config))


@pytest.mark.parametrize("spectrum", ["full", "rfft"])
def test_the_model_runs_on_balls_that_enclose_its_values(spectrum: str) -> None:
    config = FNOConfig(spatial=(5,), modes=(2,), width=2, spectrum=spectrum)
    assert_model_encloses("fno", network, config, draw_fields(config, 1, batch=1))


def test_weights_of_discarded_frequencies_get_a_gradient_of_exactly_zero() -> None:
    config = FNOConfig(spatial=(8,), modes=(2,), width=2)
    params, x = draw_params("fno", config, 1), draw_fields(config, 1)
    found = network.backward(config, params, x, np.random.default_rng(2).normal(size=x.shape))
    dead = [k for k in range(8) if not (k < 2 or k >= 6)]
    for part in ("real", "imaginary"):
        gradient = found[f"block.0.spectral.{part}"]
        assert (gradient[dead] == 0).all()
        assert (gradient[[0, 1, 6, 7]] != 0).any()


def test_imaginary_weights_of_the_constant_and_the_nyquist_bin_get_exactly_zero() -> None:
    config = FNOConfig((6,), (4,), width=2, spectrum="rfft", activation="tanh")
    params, x = draw_params("fno", config, 1), draw_fields(config, 1)
    cotangent = np.random.default_rng(2).normal(size=x.shape)
    gradient = network.backward(config, params, x, cotangent)["block.0.spectral.imaginary"]
    assert (gradient[[0, 3]] == 0).all()
    assert (gradient[[1, 2]] != 0).any()


def test_shifting_a_periodic_field_shifts_the_output() -> None:
    config = FNOConfig(spatial=(3, 4), modes=(1, 2), width=2, layers=2)
    params, x = draw_params("fno", config, 2), draw_fields(config, 2)
    moved = network.forward(config, params, np.roll(x, (1, 2), axis=(1, 2)))
    want = np.roll(network.forward(config, params, x), (1, 2), axis=(1, 2))
    np.testing.assert_allclose(moved, want, atol=1e-13)
    dense = replace(config, transform="dense")
    assert np.array_equal(network.forward(dense, params, x), network.forward(config, params, x))


def test_a_field_alone_gives_what_it_gives_in_a_batch() -> None:
    config = FNOConfig(spatial=(6,), modes=(2,), width=3, layers=2)
    params, x = draw_params("fno", config, 3), draw_fields(config, 3, batch=3)
    whole = network.forward(config, params, x)
    for b in range(3):
        alone = network.forward(config, params, x[b : b + 1])[0]
        np.testing.assert_allclose(alone, whole[b], atol=1e-13)
