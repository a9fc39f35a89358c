"""The trainer: the step of torch.training, dropouts in training only, the same again by a seed."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
import torch

from assay.impl.training.data import Examples
from assay.impl.training.torch_trainer import TorchTrainer
from assay.spec.models.catalogue import model
from assay.spec.models.char_gpt import CharGPTConfig
from assay.spec.models.flat import pack
from assay.spec.models.fno import FNOConfig
from assay.spec.models.gpt import GPTConfig
from assay.spec.models.networks.catalogue import NETWORKS
from assay.spec.models.networks.stream import one_hot

OPTIONS = {"lr": 0.01, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.01}
SIZES: dict[str, Any] = {"vocabulary": 5, "hidden": 3}
SMALL = CharGPTConfig(context=4, heads=1, width=8, layers=1, vocabulary=5)


def trainer(
    name: str, config: Any, dtype: Any = np.float32, seed: int = 0, **options: Any
) -> TorchTrainer:
    state = pack(name, config, model(name).initialise(config, np.random.default_rng(0), dtype))
    how = {**OPTIONS, **options}
    given = json.dumps(asdict(config))
    return TorchTrainer(name, given, state.astype(dtype), optimizer="adamw", options=how, seed=seed)


def tokens(rows: int = 3) -> Examples:
    return Examples(*np.random.default_rng(1).integers(0, 5, (2, rows, 4)))


def test_losses_fall_and_the_same_seed_gives_them_again() -> None:
    first, second = (trainer("char_gpt", SMALL) for _ in range(2))
    losses = [first.step(tokens()) for _ in range(30)]
    assert losses == [second.step(tokens()) for _ in range(30)]
    assert (first.state() == second.state()).all()
    assert losses[-1] < losses[0] / 2
    assert first.loss(tokens()) < losses[0] / 2


def test_dropouts_are_on_in_steps_and_off_in_judgement() -> None:
    config = replace(SMALL, dropout=0.5)
    on, off = trainer("char_gpt", config), trainer("char_gpt", config)
    assert on.loss(tokens()) == off.loss(tokens())
    before = off.loss(tokens())
    assert off.step(tokens(), dropouts=False) == pytest.approx(before, rel=1e-6)
    first = on.step(tokens())
    assert first != pytest.approx(before, rel=1e-6)
    other = trainer("char_gpt", config, seed=1)
    assert other.step(tokens()) != first
    assert trainer("char_gpt", config).step(tokens()) == first


def test_the_random_state_of_the_process_stays() -> None:
    before = torch.random.get_rng_state()
    trainer("char_gpt", replace(SMALL, dropout=0.5)).step(tokens())
    assert (torch.random.get_rng_state() == before).all()


def test_the_loss_is_the_mean_over_chunks_of_examples() -> None:
    many = tokens(rows=150)
    one = trainer("char_gpt", SMALL, np.float64)
    each = [one.loss(many.rows(slice(i, i + 1))) for i in range(150)]
    assert one.loss(many) == pytest.approx(np.mean(each), rel=1e-12)
    assert one.outputs(many.inputs).shape == (150, 4, 5)


@pytest.mark.parametrize("name", ["rnn_lm", "lstm_lm", "mamba_lm"])
def test_outputs_and_what_the_head_reads(name: str) -> None:
    config = replace(model(name).presets[0].config, **SIZES)
    one = trainer(name, config, np.float64)
    params = model(name).initialise(config, np.random.default_rng(0))
    want = NETWORKS[name].forward(config, params, one_hot(tokens().inputs, 5))
    assert one.outputs(tokens().inputs) == pytest.approx(want, abs=1e-12)
    hidden = one.into_head(tokens().inputs)
    assert hidden @ params["head.weight"].T == pytest.approx(want, abs=1e-12)


def test_numbers_are_learnt_by_the_square_loss() -> None:
    config = FNOConfig(spatial=(8,), modes=(2,), width=3)
    one = trainer("fno", config, np.float64)
    x, y = np.random.default_rng(1).standard_normal((2, 2, 8, 1))
    loss = ((one.outputs(x) - y) ** 2).mean()
    assert one.loss(Examples(x, y)) == pytest.approx(loss, rel=1e-12)
    assert one.step(Examples(x, y)) == pytest.approx(loss, rel=1e-12)


@pytest.mark.slow
def test_the_course_gpt_learns_a_batch_by_heart_in_forty_steps() -> None:
    one = trainer("gpt", GPTConfig(), lr=3e-3, weight_decay=0.0)
    batch = Examples(*np.random.default_rng(1).integers(0, 512, (2, 4, 64)))
    losses = [one.step(batch) for _ in range(40)]
    assert losses[0] == pytest.approx(np.log(512), abs=0.1)
    assert one.loss(batch) < 0.5
