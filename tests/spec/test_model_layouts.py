"""The layouts of all models: counts, closed forms, names in order, first values."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.spec.models import char_gpt, fno, gpt, mamba_lm, mlp, resnet, vit
from assay.spec.models.catalogue import MODELS, model
from assay.spec.models.char_gpt import CharGPTConfig
from assay.spec.models.closed_form import stored_count, trainable_count
from assay.spec.models.gpt import GPTConfig
from assay.spec.models.initialisers import Constant, Glorot, LogIndex, Normal, Uniform
from assay.spec.models.layout import (
    by_group,
    expand,
    initialise,
    product,
    stored,
    tensors,
    trainable,
)
from assay.spec.models.model import Model
from assay.spec.models.resnet import ResNetConfig
from assay.spec.models.vit import ViTConfig
from assay.spec.spatial.windows import extent
from tests.spec.model_cases import configs

GOLDEN: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "golden" / "models.json").read_text()
)
each_model = pytest.mark.parametrize("entry", MODELS, ids=lambda m: m.name)


def golden(*kinds: str) -> pytest.MarkDecorator:
    chosen = [pytest.param(e, id=e["name"]) for e in GOLDEN if e["kind"] in kinds]
    assert chosen
    return pytest.mark.parametrize("entry", chosen)


def configured(entry: dict[str, Any]) -> tuple[Model, Any]:
    found = model(entry.get("model", "fno"))
    given = {n: tuple(v) if isinstance(v, list) else v for n, v in entry["config"].items()}
    return found, found.config(**given)


# -- Golden values


@golden("count")
def test_counts_equal_worked_examples(entry: dict[str, Any]) -> None:
    found, config = configured(entry)
    layout = found.layout(config)
    assert stored(layout) == entry["stored"]
    assert trainable(layout) == entry["trainable"] == trainable_count(found.terms(config))
    assert tensors(layout) == entry["tensors"]


@golden("shapes")
def test_shapes_in_order_equal_worked_examples(entry: dict[str, Any]) -> None:
    found, config = configured(entry)
    assert [list(p.shape) for p in expand(found.layout(config))] == entry["shapes"]
    assert stored(found.layout(config)) == entry["stored"]


@golden("first")
def test_first_shapes_equal_worked_examples(entry: dict[str, Any]) -> None:
    found, config = configured(entry)
    shapes = [list(p.shape) for p in expand(found.layout(config))]
    assert shapes[: len(entry["shapes"])] == entry["shapes"]


@golden("groups")
def test_parts_equal_worked_examples(entry: dict[str, Any]) -> None:
    found, config = configured(entry)
    every = list(expand(found.layout(config)))
    for prefix, count in entry["prefixes"].items():
        assert sum(p.size for p in every if p.name.startswith(prefix)) == count, prefix


@golden("writes")
def test_arrays_of_a_forward_pass_equal_worked_examples(entry: dict[str, Any]) -> None:
    found, config = configured(entry)
    writes = {s.name: list(s.writes) for s in found.steps(config, entry["batch"])}
    assert {name: writes[name] for name in entry["writes"]} == entry["writes"]


@golden("dead")
def test_dead_scalars_equal_worked_example(entry: dict[str, Any]) -> None:
    _, config = configured(entry)
    assert fno.dead_scalars(config) == entry["dead"]


def test_every_golden_value_says_where_it_comes_from() -> None:
    assert len(GOLDEN) >= 20
    assert all(len(e["origin"]) > 40 for e in GOLDEN)


# -- Closed forms


@each_model
def test_closed_form_equals_the_sum_over_the_layout(entry: Model) -> None:
    @settings(max_examples=200)
    @given(configs(entry))
    def check(config: Any) -> None:
        layout, terms = entry.layout(config), entry.terms(config)
        assert trainable(layout) == trainable_count(terms)
        assert stored(layout) == stored_count(terms) == sum(by_group(layout).values())

    check()


@each_model
def test_expanded_layout_agrees_with_its_sums_and_has_unique_names(entry: Model) -> None:
    @settings(max_examples=50)
    @given(configs(entry))
    def check(config: Any) -> None:
        layout = entry.layout(config)
        every = list(expand(layout))
        assert len({p.name for p in every}) == len(every) == tensors(layout)
        assert sum(p.size for p in every) == stored(layout)
        assert sum(p.size for p in every if p.trainable) == trainable(layout)

    check()


def _symbolic(entry: Model) -> Any:
    """Every whole number of the configuration is a symbol, also inside tuples."""
    given = {}
    for field in fields(entry.config):
        value = getattr(entry.config(), field.name)
        if isinstance(value, tuple):
            given[field.name] = tuple(_symbol(f"{field.name}{i}") for i in range(len(value)))
        elif str(field.type).startswith("int"):
            given[field.name] = _symbol(field.name)
    return entry.config.unchecked(**given)


def _symbol(name: str) -> Any:
    return sympy.Symbol(name, integer=True, positive=True)


@each_model
def test_closed_form_equals_the_layout_for_symbols(entry: Model) -> None:
    config = _symbolic(entry)
    gap = stored(entry.layout(config)) - stored_count(entry.terms(config))
    assert sympy.expand(gap) == 0


def test_the_check_by_symbols_can_fail() -> None:
    config = _symbolic(model("char_gpt"))
    other = CharGPTConfig.unchecked(**{**vars(config), "input_bias": True})
    gap = stored(char_gpt.layout(config)) - stored_count(char_gpt.terms(other))
    assert sympy.expand(gap) != 0


# -- The same counts in torch


def _torch_count(*modules: torch.nn.Module) -> int:
    return sum(p.numel() for m in modules for p in m.parameters())


@settings(max_examples=30)
@given(heads=st.integers(1, 4), each=st.integers(1, 8), layers=st.integers(1, 3))
def test_blocks_count_as_in_torch(heads: int, each: int, layers: int) -> None:
    d = heads * each
    block = torch.nn.TransformerEncoderLayer(d, heads, 4 * d)
    config = GPTConfig(vocabulary=7, context=5, layers=layers, heads=heads, width=d)
    tables = torch.nn.Embedding(7, d), torch.nn.Embedding(5, d), torch.nn.LayerNorm(d)
    assert trainable(gpt.layout(config)) == layers * _torch_count(block) + _torch_count(*tables)
    biasless = CharGPTConfig(context=5, heads=heads, width=d, layers=layers, vocabulary=7)
    own = layers * (_torch_count(block) - 3 * d)  # queries, keys and values have no bias
    head = torch.nn.Linear(d, 7)
    assert trainable(char_gpt.layout(biasless)) == own + _torch_count(*tables, head)


@settings(max_examples=30)
@given(i=st.integers(1, 9), h=st.integers(1, 9), layers=st.integers(1, 3))
def test_recurrent_layers_count_as_in_torch_but_for_its_second_bias(
    i: int, h: int, layers: int
) -> None:
    head = _torch_count(torch.nn.Linear(h, i))
    for name, gates in (("rnn_lm", 1), ("lstm_lm", 4)):
        kind = torch.nn.RNN if gates == 1 else torch.nn.LSTM
        entry = model(name)
        config = entry.config(vocabulary=i, hidden=h, layers=layers)  # type: ignore[call-arg]
        cells = _torch_count(kind(i, h, num_layers=layers)) - layers * gates * h
        assert trainable(entry.layout(config)) == cells + head


@settings(max_examples=20)
@given(config=configs(model("resnet")))
def test_convolutions_count_as_in_torch(config: ResNetConfig) -> None:
    kind = (torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d)[len(config.spatial) - 1]
    kernel = tuple(config.kernel)
    convolutions = [kind(config.channels, config.hidden, kernel)]
    convolutions += [kind(config.hidden, config.hidden, kernel) for _ in range(4)]
    head = torch.nn.Linear(config.hidden, config.classes)
    assert stored(resnet.layout(config)) == _torch_count(*convolutions, head)


@settings(max_examples=20)
@given(config=configs(model("mlp")))
def test_linear_layers_count_as_in_torch(config: mlp.MLPConfig) -> None:
    layers = [torch.nn.Linear(a, b) for a, b in pairwise(config.widths)]
    if config.shortcut:
        layers.append(torch.nn.Linear(config.inputs, config.outputs))
    assert stored(mlp.layout(config)) == _torch_count(*layers)


# -- Names and order


def names(config: CharGPTConfig) -> list[str]:
    return [p.name for p in expand(char_gpt.layout(config))]


def test_rates_of_dropouts_stand_after_attention_and_at_the_end_of_a_block() -> None:
    block = [n for n in names(CharGPTConfig(dropout=0.1)) if n.startswith("block.0.")]
    assert len(block) == 15
    assert (block[7], block[14]) == ("block.0.dropout1", "block.0.dropout2")
    assert block[6] == "block.0.attention.output_bias"
    assert block[8] == "block.0.ln2.weight"


def test_optional_parts_stand_at_their_places() -> None:
    config = CharGPTConfig(
        layers=1, input_bias=True, dropout=0.1, attention_dropout=0.2, feed_forward_dropout=0.3
    )
    assert names(config)[4:] == [
        *(f"block.0.attention.{n}" for n in ("query", "key", "value", "output")),
        *(f"block.0.attention.{n}_bias" for n in ("query", "key", "value", "output")),
        "block.0.attention.dropout",
        "block.0.dropout1",
        "block.0.ln2.weight",
        "block.0.ln2.bias",
        "block.0.mlp.up.weight",
        "block.0.mlp.up.bias",
        "block.0.mlp.dropout",
        "block.0.mlp.down.weight",
        "block.0.mlp.down.bias",
        "block.0.dropout2",
        "final.weight",
        "final.bias",
        "head.weight",
        "head.bias",
    ]
    rates = {p.name: p.init for p in expand(char_gpt.layout(config)) if not p.trainable}
    assert list(rates.values()) == [Constant(r) for r in (0.2, 0.1, 0.3, 0.1)]


def test_norms_follow_their_branches_when_they_come_after_the_additions() -> None:
    parts = [n.removeprefix("block.0.") for n in names(CharGPTConfig(pre_norm=False, dropout=0.1))]
    order = [parts.index(n) for n in ("attention.query", "dropout1", "ln1.weight", "mlp.up.weight")]
    assert order == sorted(order)
    assert parts.index("dropout2") < parts.index("ln2.weight")


def test_attention_is_stored_in_by_out_and_linear_layers_out_by_in() -> None:
    config = ViTConfig(width=5, heads=2, head_width=3, feed_forward=7)
    shapes = {p.name: p.shape for p in expand(vit.layout(config))}
    assert shapes["block.0.attention.query"] == (5, 6)
    assert shapes["block.0.attention.output"] == (6, 5)
    assert shapes["block.0.mlp.up.weight"] == (7, 5)


def test_gates_stand_in_the_order_forget_input_candidate_output() -> None:
    found = [p.name for p in expand(model("lstm_lm").layout(model("lstm_lm").config()))]
    weights = [n for n in found if n.startswith("cell.0.") and n.endswith("weight")]
    gates = ("forget", "input", "candidate", "output")
    assert weights == [f"cell.0.{gate}.weight" for gate in gates]


def test_later_layers_read_the_layer_before() -> None:
    config = mamba_lm.MambaLanguageModelConfig(vocabulary=7, hidden=3, layers=3)
    shapes = {p.name: p.shape for p in expand(mamba_lm.layout(config))}
    assert [shapes[f"layer.{i}.x_proj"] for i in range(3)] == [(7, 6), (3, 6), (3, 6)]


@settings(max_examples=50)
@given(config=configs(model("resnet")))
def test_convolutions_of_a_residual_network_keep_every_extent(config: ResNetConfig) -> None:
    axes = zip(config.spatial, config.kernel, config.radii, strict=True)
    assert tuple(int(extent(n, k, padding=r)) for n, k, r in axes) == config.spatial


@settings(max_examples=50)
@given(config=configs(model("vit")))
def test_the_grid_counts_the_windows_that_fit(config: ViTConfig) -> None:
    axes = zip(config.spatial, config.paddings, config.kernel, config.strides, strict=True)
    fits = [len(range(0, n + 2 * p - k + 1, s)) for n, p, k, s in axes]
    assert list(config.grid) == fits
    axes = zip(config.spatial, config.kernel, config.strides, config.paddings, strict=True)
    assert [int(extent(n, k, stride=s, padding=p)) for n, k, s, p in axes] == fits
    assert config.context == product(fits) + (config.pooling == "cls")


# -- First values


@each_model
def test_first_values_have_the_shapes_names_and_order_of_the_layout(entry: Model) -> None:
    config = entry.presets[0].config
    values = entry.initialise(config, np.random.default_rng(0), np.float32)
    every = list(expand(entry.layout(config)))
    assert list(values) == [p.name for p in every]
    assert [v.shape for v in values.values()] == [p.shape for p in every]
    assert all(v.dtype == np.float32 and np.isfinite(v).all() for v in values.values())
    again = entry.initialise(config, np.random.default_rng(0))
    assert all((again[n].astype(np.float32) == v).all() for n, v in values.items())


def first(layout: Any, seed: int = 3) -> dict[str, np.ndarray]:
    return initialise(layout, np.random.default_rng(seed))


def test_the_course_gpt_starts_with_smaller_residual_projections() -> None:
    values = first(gpt.layout(GPTConfig()))
    for name, deviation in (("qkv", 0.02), ("output", 0.02 / math.sqrt(8))):
        assert np.std(values[f"block.1.attention.{name}.weight"]) == pytest.approx(deviation, 0.03)
    assert np.std(values["block.3.mlp.down.weight"]) == pytest.approx(0.00707, rel=0.03)
    assert np.std(values["token"]) == pytest.approx(0.02, rel=0.03)
    assert not values["block.0.mlp.up.bias"].any()
    assert (values["final.weight"] == 1).all()


def test_char_gpt_starts_normal_or_by_glorot() -> None:
    normal = first(char_gpt.layout(CharGPTConfig(dropout=0.25)))
    assert np.std(normal["block.0.attention.output"]) == pytest.approx(0.02, rel=0.1)
    assert normal["block.1.dropout2"] == 0.25
    other = first(char_gpt.layout(CharGPTConfig(initialisation="glorot")))
    assert 0.019 < np.max(np.abs(other["token"])) < 0.02
    bound = math.sqrt(6 / (32 + 128))
    assert 0.95 * bound < np.max(np.abs(other["block.0.mlp.up.weight"])) < bound
    assert not other["head.bias"].any()


def test_the_class_token_starts_at_zero_and_patches_uniform() -> None:
    values = first(vit.layout(ViTConfig(pooling="cls")))
    assert not values["class_token"].any()
    assert 0.08 < np.max(np.abs(values["patch.weight"])) < 0.1


def test_selective_layers_start_with_steps_of_a_hundredth_and_rates_1_2_3() -> None:
    values = first(mamba_lm.layout(mamba_lm.MambaLanguageModelConfig(states=3)))
    assert np.allclose(np.log1p(np.exp(values["layer.0.dt_bias"])), 0.01, rtol=1e-12)
    assert np.allclose(np.exp(values["layer.0.log_a"]), [1, 2, 3])
    assert (values["layer.0.d_skip"] == 1).all()
    assert not values["layer.0.conv_bias"].any()


@pytest.mark.parametrize(("spectrum", "bound"), [("full", 0.05), ("rfft", 0.04)])
def test_fourier_operators_start_uniform(spectrum: str, bound: float) -> None:
    values = first(fno.layout(fno.FNOConfig(spectrum=spectrum)))
    assert 0.95 * bound < np.max(np.abs(values["block.0.spectral.imaginary"])) < bound
    assert np.max(np.abs(values["block.0.skip"])) < bound
    assert bound < np.max(np.abs(values["lift.weight"])) < 0.1
    assert not values["block.0.bias"].any()


def test_initialisers_say_in_tables_what_they_draw() -> None:
    every = (Constant(0.25), Normal(0.02, 8), Uniform(1.0, 4), Glorot(1, 5), LogIndex())
    said = ["0.25", "normal 0.00707", "uniform 0.5", "glorot 1", "log(n + 1)"]
    assert [str(i) for i in every] == said


# -- Presets


def test_the_first_preset_of_most_models_is_its_default() -> None:
    assert [m.name for m in MODELS if m.presets[0].config != m.config()] == ["vit"]


def test_preset_names_are_trimmed_and_case_does_not_matter() -> None:
    assert model("char_gpt").preset(" Karpathy ").config.width == 384  # type: ignore[attr-defined]
    with pytest.raises(KeyError, match="preset 'x' of gpt does not exist; valid: course, gpt2"):
        model("gpt").preset("x")
    with pytest.raises(KeyError, match="model 'x' does not exist; valid: mlp, resnet"):
        model("x")


def test_claims_name_models_that_exist() -> None:
    from assay.spec.claims import CLAIMS

    named: Iterable[str] = {name for claim in CLAIMS for name in claim.models}
    assert set(named) == {m.name for m in MODELS}
    assert not any(claim.ops for claim in CLAIMS if claim.models)
