"""Configurations: all reasons at once, each with field, value, rule and what is valid."""

from __future__ import annotations

import re
from dataclasses import FrozenInstanceError, dataclass, fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.spec.models.catalogue import MODELS
from assay.spec.models.char_gpt import CharGPTConfig
from assay.spec.models.config import Config, ConfigError, divisors_near
from assay.spec.models.fno import FNOConfig
from assay.spec.models.gpt import GPTConfig
from assay.spec.models.mlp import MLPConfig
from assay.spec.models.model import Model
from assay.spec.models.resnet import ResNetConfig
from assay.spec.models.vit import ViTConfig

FIELDS = [(m, f.name, str(f.type)) for m in MODELS for f in fields(m.config)]
each_field = pytest.mark.parametrize(
    ("entry", "name", "kind"), FIELDS, ids=[f"{m.name}-{n}" for m, n, _ in FIELDS]
)
WRONG: dict[str, tuple[Any, ...]] = {
    "int": (-1, True, 1.0, "3", 2**63),
    "bool": (0, 1, "true", None),
    "float": (-0.1, 1.5, float("nan"), float("inf"), "0.1", True, None),
    "str": ("", "nothing", 3),
    "tuple": ((-1,), (1.5,), (True,), 3, "3", [3], (2**63,)),
}


def reasons(config: type[Config], **given: Any) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        config(**given)
    return caught.value.reasons


@each_field
def test_a_wrong_field_is_named_with_its_value_and_what_is_valid(
    entry: Model, name: str, kind: str
) -> None:
    for wrong in next(values for start, values in WRONG.items() if kind.startswith(start)):
        found = [r for r in reasons(entry.config, **{name: wrong}) if r.startswith(f"{name}=")]
        assert found, (name, wrong)
        assert found[0].startswith(f"{name}={wrong!r} ")
        assert "; valid: " in found[0]


@pytest.mark.parametrize(
    ("config", "given", "said"),
    [
        (
            CharGPTConfig,
            {"width": 30},
            "heads=4 does not divide width=30; valid: 1, 2, 3, 5, 6, 10, 15, 30",
        ),
        (GPTConfig, {"heads": 3}, "heads=3 does not divide width=128; valid: 1, 2, 4, 8, 16, 32"),
        (
            GPTConfig,
            {"dropout": 1.0},
            "dropout=1.0 must be a probability; valid: a number in [0, 1)",
        ),
        (
            ViTConfig,
            {"kernel": (2, 5)},
            "kernel=(2, 5) is longer than the padded extent 4 of axis 1; valid: 4 or less",
        ),
        (
            ResNetConfig,
            {"radius": (1,)},
            "radius=(1,) must have one entry per axis of spatial=(8, 8); valid: length 2",
        ),
        (ResNetConfig, {"spatial": ()}, "spatial=() must not be empty"),
        (
            FNOConfig,
            {"spectrum": "rfft", "modes": (18,)},
            "modes=(18,) exceeds the frequencies of spatial=(32,) with spectrum='rfft'; valid: 17",
        ),
        (
            FNOConfig,
            {"spectrum": "rfft", "spatial": (4, 4), "modes": (1, 1)},
            "spatial=(4, 4) has 2 axes with spectrum='rfft'; valid: one axis",
        ),
        (
            MLPConfig,
            {"activation": "rleu"},
            "activation='rleu' is unknown; valid: relu, gelu, gelu_tanh, silu, tanh, sigmoid",
        ),
        (
            GPTConfig,
            {"layers": 2**63},
            "layers=9223372036854775808 must be a whole number; valid: 1 to 9223372036854775807",
        ),
    ],
)
def test_fields_that_do_not_fit_together_are_explained(
    config: type[Config], given: dict[str, Any], said: str
) -> None:
    (found,) = reasons(config, **given)
    assert found.startswith(said)


def test_all_reasons_are_given_at_once_in_the_order_of_the_rules() -> None:
    found = reasons(
        CharGPTConfig, vocabulary=0, dropout=2, heads=4, width=30, context=-1, activation="x"
    )
    assert [re.split("[= ]", r)[0] for r in found] == [
        "context",
        "heads",
        "dropout",
        "vocabulary",
        "activation",
    ]
    assert str(ConfigError(found)) == "\n".join(found)


def test_zero_layers_still_need_a_sound_block() -> None:
    assert CharGPTConfig(layers=0).layers == 0
    assert reasons(CharGPTConfig, layers=0, width=30)[0].startswith("heads=4 does not divide")


def test_the_closed_interval_of_rates_is_legal_where_the_model_says_so() -> None:
    assert CharGPTConfig(dropout=1.0, attention_dropout=1).dropout == 1.0


@pytest.mark.parametrize(("n", "m"), [(1, 1), (4, 0), (4, 3), (5, 3), (32, 17)])
def test_every_frequency_of_a_real_signal_is_legal_and_one_more_is_not(n: int, m: int) -> None:
    assert FNOConfig(spatial=(n,), modes=(m,), spectrum="rfft").frequencies == m
    assert reasons(FNOConfig, spatial=(n,), modes=(n // 2 + 2,), spectrum="rfft")


@pytest.mark.parametrize("wrong", [3, (), (1, 1), ("a",), None])
def test_nonsense_beside_rfft_is_explained_too(wrong: Any) -> None:
    found = reasons(FNOConfig, modes=wrong, spectrum="rfft")
    assert found[0].startswith(f"modes={wrong!r} must")


def test_the_activation_of_a_fourier_operator_follows_its_spectrum() -> None:
    found = [FNOConfig(spectrum=s).nonlinearity for s in ("full", "rfft")]
    assert found == ["tanh", "relu"]
    assert FNOConfig(activation="silu").nonlinearity == "silu"


def test_unchecked_needs_fields_without_a_default() -> None:
    @dataclass(frozen=True)
    class Bare(Config):
        size: int

    assert Bare.unchecked(size=-1).size == -1
    with pytest.raises(TypeError, match=r"Bare\.unchecked needs size"):
        Bare.unchecked()


def test_derived_sizes_are_not_fields() -> None:
    config = CharGPTConfig(width=48, heads=6)
    assert (config.head_width, config.hidden) == (8, 192)
    assert replace(config, feed_forward=5).hidden == 5
    assert not {"head_width", "hidden"} & {f.name for f in fields(config)}
    with pytest.raises(FrozenInstanceError):
        config.width = 3  # type: ignore[misc]


@pytest.mark.parametrize("entry", MODELS, ids=lambda m: m.name)
def test_unchecked_takes_anything_but_unknown_fields(entry: Model) -> None:
    name = fields(entry.config)[0].name
    assert getattr(entry.config.unchecked(**{name: -7}), name) == -7
    with pytest.raises(TypeError, match="has no field wdth"):
        entry.config.unchecked(wdth=1)


@given(st.integers(1, 3000), st.integers(1, 100))
def test_suggested_divisors_are_the_nearest(n: int, wanted: int) -> None:
    near = divisors_near(n, wanted)
    every = [d for d in range(1, n + 1) if n % d == 0]
    assert near == sorted(near)
    assert set(near) <= set(every)
    assert len(near) == min(8, len(every))
    worst = max(abs(d - wanted) for d in near)
    assert all(abs(d - wanted) >= worst for d in set(every) - set(near))


def test_a_huge_size_is_refused_at_once() -> None:
    (found,) = reasons(GPTConfig, width=2**61 - 1, heads=2)
    assert found.endswith("valid: 1, 2305843009213693951")
