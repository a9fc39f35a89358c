"""Costs: worked examples, torch's own counters, closed forms."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import sympy
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from assay.spec.models import char_gpt, fno, gpt, mlp, resnet, vit
from assay.spec.models.catalogue import MODELS, model
from assay.spec.models.char_gpt import CharGPTConfig
from assay.spec.models.costs import (
    Kind,
    Step,
    activation_scalars,
    cache_scalars,
    forward_flops,
    training_flops,
    transform_flops,
    transformer_training_flops,
)
from assay.spec.models.gpt import GPTConfig
from assay.spec.models.layout import Section, expand
from assay.spec.models.model import Model
from assay.spec.models.summary import figures
from assay.spec.models.vit import ViTConfig
from assay.spec.spectral.bands import band_mask
from tests.spec.model_cases import configs

COSTS = next(
    entry
    for entry in json.loads((Path(__file__).parents[1] / "golden" / "models.json").read_text())
    if entry["kind"] == "costs"
)


# -- Worked examples


def test_training_the_course_gpt_costs_the_worked_example() -> None:
    steps = gpt.steps(GPTConfig(), COSTS["batch"], COSTS["length"])
    assert training_flops(steps) == COSTS["training"] == 1_409_286_144
    assert training_flops(steps, "attention") == COSTS["attention"] == 100_663_296
    assert training_flops(steps, "matrix") == COSTS["matrices"] == COSTS["training"] - 100_663_296
    tokens = COSTS["batch"] * COSTS["length"]
    assert COSTS["matrices"] == 6 * COSTS["matrix_weights"] * tokens


def test_weights_of_matrix_products_are_all_but_positions_norms_and_biases() -> None:
    every = expand(gpt.layout(GPTConfig()))
    found = sum(p.size for p in every if len(p.shape) == 2 and p.group != "position")
    assert found == COSTS["matrix_weights"] == 851_968


def test_a_cache_and_a_score_matrix_have_the_sizes_of_the_worked_example() -> None:
    assert 4 * gpt.decoding_state(GPTConfig()) == COSTS["cache_bytes"] == 524_288
    steps = {s.name: s for s in gpt.steps(GPTConfig(), 8)}
    assert math.prod(steps["block.attention.scores"].writes) == COSTS["scores_8_128"] == 524_288


def test_gpt2_small_keeps_36_mebibytes_of_cache_in_two_bytes_each() -> None:
    config: Any = model("gpt").preset("gpt2").config
    assert 2 * gpt.decoding_state(config) == 36 * 2**20


def test_from_smoke_to_karpathy_the_count_grows_359_times_and_a_score_matrix_256() -> None:
    found = model("char_gpt")
    small, large = (
        {f.name: f.value for f in figures(found, found.preset(name).config)}
        for name in ("smoke", "karpathy")
    )
    assert large["trainable parameters"] // small["trainable parameters"] == 359
    assert large["score matrix of one head"] == 256 * small["score matrix of one head"]


def test_residual_projections_start_at_the_deviation_of_the_worked_example() -> None:
    first = {p.name: p.init for p in expand(gpt.layout(GPTConfig()))}
    found: Any = first["block.0.mlp.down.weight"]
    assert found.deviation == pytest.approx(COSTS["residual_std"], rel=1e-15)


# -- Closed forms


@pytest.mark.parametrize("entry", [model("char_gpt"), model("gpt")], ids=lambda m: m.name)
def test_training_costs_6_n_and_12_l_t_d_a_token(entry: Model) -> None:
    @settings(max_examples=200)
    @given(configs(entry), st.integers(1, 5))
    def check(config: Any, batch: int) -> None:
        found = {f.name: f.value for f in figures(entry, config, batch)}
        rule = found["6 N + 12 L T D per token"]
        steps = entry.steps(config, batch)
        assert training_flops(steps) == rule * batch * config.context
        assert 3 * forward_flops(steps) == training_flops(steps)
        groups = ("embedding", "position") if entry.name == "char_gpt" else ("position",)
        tied = config.vocabulary * config.width if getattr(config, "tied", False) else 0
        matrices = [
            (s, p)
            for s in entry.layout(config)
            for p in s.parameters
            if len(p.shape) == 2 and p.group not in groups
        ]
        weights = sum(s.times * p.size for s, p in matrices) + tied
        assert found["weights in matrix products, N"] == weights

    check()


def test_the_rule_of_6_n_holds_for_symbols() -> None:
    names = "width feed_forward layers vocabulary context batch"
    width, hidden, layers, vocabulary, context, batch = sympy.symbols(
        names, integer=True, positive=True
    )
    config = CharGPTConfig.unchecked(
        width=width,
        feed_forward=hidden,
        layers=layers,
        vocabulary=vocabulary,
        context=context,
        heads=1,
    )
    weights = layers * (4 * width**2 + 2 * width * hidden) + vocabulary * width
    rule = transformer_training_flops(weights, layers, context, width)
    got = training_flops(char_gpt.steps(config, batch))
    assert sympy.expand(got - batch * context * rule) == 0
    assert char_gpt.decoding_state(config, batch) == cache_scalars(layers, batch, context, width)


# -- torch's own counter


def counted(run: Callable[[], torch.Tensor], *kinds: str) -> int:
    """What torch counts for a forward and a backward pass."""
    with FlopCounterMode(display=False) as counter:
        run().sum().backward()
    by_kind = {str(op): n for op, n in counter.get_flop_counts()["Global"].items()}
    return sum(n for op, n in by_kind.items() if not kinds or any(k in op for k in kinds))


def weights(layout: tuple[Section, ...]) -> dict[str, torch.Tensor]:
    return {p.name: torch.ones(p.shape, requires_grad=p.trainable) for p in expand(layout)}


def linear(w: dict[str, torch.Tensor], name: str, x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.linear(x, w[f"{name}.weight"], w[f"{name}.bias"])


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, heads: int) -> torch.Tensor:
    def split(x: torch.Tensor) -> torch.Tensor:
        return x.view(*x.shape[:2], heads, -1).transpose(1, 2)

    scores = split(q) @ split(k).transpose(-1, -2)
    return (torch.softmax(scores, -1) @ split(v)).transpose(1, 2).flatten(2)


@pytest.mark.parametrize(("batch", "length"), [(4, 64), (2, 7)])
def test_the_course_gpt_costs_what_torch_counts(batch: int, length: int) -> None:
    config = GPTConfig()
    w = weights(gpt.layout(config))

    def run() -> torch.Tensor:
        x = w["token"][torch.zeros(batch, length, dtype=torch.int64)] + w["position"][:length]
        for i in range(config.layers):
            b = f"block.{i}"
            q, k, v = linear(w, f"{b}.attention.qkv", x).chunk(3, dim=-1)
            x = x + linear(w, f"{b}.attention.output", attend(q, k, v, config.heads))
            x = x + linear(w, f"{b}.mlp.down", linear(w, f"{b}.mlp.up", x).relu())
        return x @ w["token"].T

    steps = gpt.steps(config, batch, length)
    assert counted(run) == training_flops(steps)
    assert counted(run, "bmm") == training_flops(steps, "attention")


@pytest.mark.parametrize("preset", ["smoke", "cifar_patch5"])
def test_a_vision_transformer_costs_what_torch_counts(preset: str) -> None:
    config = model("vit").preset(preset).config
    assert isinstance(config, ViTConfig)
    w = weights(vit.layout(config))

    def run() -> torch.Tensor:
        images = torch.ones(2, config.channels, *config.spatial)
        patches = torch.nn.functional.conv2d(
            images, w["patch.weight"], w["patch.bias"], stride=config.strides
        )
        tokens = patches.flatten(2).transpose(1, 2)
        x = torch.cat([w["class_token"].expand(2, 1, -1), tokens], dim=1) + w["position"]
        for i in range(config.layers):
            b = f"block.{i}"
            q, k, v = (x @ w[f"{b}.attention.{n}"] for n in ("query", "key", "value"))
            x = x + attend(q, k, v, config.heads) @ w[f"{b}.attention.output"]
            x = x + linear(w, f"{b}.mlp.down", linear(w, f"{b}.mlp.up", x).relu())
        return linear(w, "head", x[:, 0])

    assert counted(run) == training_flops(vit.steps(config, 2))


@settings(max_examples=20)
@given(config=configs(model("resnet")), batch=st.integers(1, 3))
def test_a_residual_network_costs_what_torch_counts(
    config: resnet.ResNetConfig, batch: int
) -> None:
    w = weights(resnet.layout(config))
    axes = len(config.spatial)
    convolve = getattr(torch.nn.functional, f"conv{axes}d")

    def run() -> torch.Tensor:
        def conv(name: str, x: torch.Tensor) -> torch.Tensor:
            return convolve(x, w[f"{name}.weight"], w[f"{name}.bias"], padding=config.radii)

        x = conv("stem", torch.ones(batch, config.channels, *config.spatial))
        for i in range(2):
            x = x + conv(f"block.{i}.conv2", conv(f"block.{i}.conv1", x))
        return linear(w, "head", x.flatten(2).mean(-1))

    assert counted(run) == training_flops(resnet.steps(config, batch))


@settings(max_examples=20)
@given(config=configs(model("mlp")), batch=st.integers(1, 3))
def test_a_perceptron_costs_what_torch_counts(config: mlp.MLPConfig, batch: int) -> None:
    w = weights(mlp.layout(config))

    def run() -> torch.Tensor:
        data = x = torch.ones(batch, config.inputs)
        for i, _ in enumerate(pairwise(config.widths)):
            x = linear(w, f"layer.{i}", x)
        return x + linear(w, "shortcut", data) if config.shortcut else x

    assert counted(run) == training_flops(mlp.steps(config, batch))


# -- Spectral paths


@settings(max_examples=100)
@given(config=configs(model("fno")))
def test_dead_scalars_are_the_weights_that_the_mask_or_a_real_signal_cuts_off(
    config: fno.FNOConfig,
) -> None:
    w = config.width
    if config.spectrum == "full":
        want = 2 * int((~band_mask(config.spatial, config.modes)).sum())
    else:
        n, m = config.spatial[0], config.modes[0]
        want = sum(2 * k % n == 0 for k in range(m))
    assert fno.dead_scalars(config) == want * config.layers * w * w


def test_axis_by_axis_is_cheaper_than_the_dense_transform_and_equal_on_one_axis() -> None:
    assert transform_flops((32,)) == {"dense": 4096, "per_axis": 4096, "fft": 800}
    large = transform_flops((64, 64))
    assert large["fft"] < large["per_axis"] < large["dense"]


def test_the_way_to_transform_changes_costs_and_nothing_else() -> None:
    one = fno.FNOConfig(spatial=(8, 8), modes=(2, 2))
    other = fno.FNOConfig(spatial=(8, 8), modes=(2, 2), transform="dense")
    kinds: tuple[Kind, ...] = ("matrix", "spectral")
    assert forward_flops(fno.steps(one), *kinds) == forward_flops(fno.steps(other), *kinds)
    by_axis, dense = (forward_flops(fno.steps(c), "transform") for c in (one, other))
    assert dense == by_axis * 16384 // 6144


# -- All models


@pytest.mark.parametrize("entry", MODELS, ids=lambda m: m.name)
def test_costs_grow_in_proportion_to_the_batch(entry: Model) -> None:
    @settings(max_examples=30)
    @given(configs(entry))
    def check(config: Any) -> None:
        one, five = entry.steps(config, 1), entry.steps(config, 5)
        assert activation_scalars(five) == 5 * activation_scalars(one) > 0
        assert forward_flops(five) == 5 * forward_flops(one)
        assert training_flops(five) == 5 * training_flops(one) >= 2 * forward_flops(five)
        if entry.decoding_state:
            assert entry.decoding_state(config, 5) == 5 * entry.decoding_state(config, 1) >= 0

    check()


@pytest.mark.parametrize("entry", [m for m in MODELS if m.decoding_state], ids=lambda m: m.name)
def test_recurrent_costs_a_token_do_not_depend_on_the_length(entry: Model) -> None:
    short, long = (entry.config.unchecked(context=t) for t in (4, 8))
    per_token = [forward_flops(entry.steps(c, 1)) / entry.units(c) for c in (short, long)]
    attends = any(s.kind == "attention" for s in entry.steps(short, 1))
    assert (per_token[0] == per_token[1]) is not attends


def test_streaming_state_is_h_and_c_or_states_and_taps() -> None:
    sizes = {n: model(n).decoding_state for n in ("rnn_lm", "lstm_lm", "lstm_regression")}
    assert [f(model(n).config(), 3) for n, f in sizes.items() if f] == [96, 192, 96]
    mamba = model("mamba_lm")
    assert mamba.decoding_state
    assert mamba.decoding_state(mamba.config(), 1) == 64 * (16 + 3)


def test_a_step_without_a_contraction_costs_nothing_but_its_memory() -> None:
    step = Step("norm", (2, 3), repeat=4)
    assert (step.forward_flops, step.training_flops) == (0, 0)
    assert activation_scalars((step,)) == 24
