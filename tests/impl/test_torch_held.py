"""Torch modules that hold a state of their own: to the bit, tied, and trained in every way."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from assay.impl.backends.torch_audit import TorchAudit
from assay.impl.backends.torch_first import initialise
from assay.impl.backends.torch_held import hold, loaded
from assay.impl.backends.torch_training import TorchTraining
from assay.impl.call import Call
from assay.impl.session import open_session
from assay.spec.models.catalogue import MODELS
from assay.spec.models.flat import configure, pack
from assay.spec.models.initial_loss import interval
from assay.spec.models.layout import stored, trainable
from assay.spec.models.state_bytes import octets
from assay.spec.ops import op

NAMES = [entry.name for entry in MODELS]
FIELDS: dict[str, dict[str, Any]] = {
    "vit": {"pooling": "cls", "dropout": 0.1, "layers": 2},
    "char_gpt": {"context": 4, "width": 8, "heads": 2, "dropout": 0.1, "attention_dropout": 0.3},
    "gpt": {"vocabulary": 9, "context": 4, "layers": 2, "heads": 2, "width": 8},
    "fno": {"spatial": [4, 3], "modes": [2, 2], "width": 2},
}
each_model = pytest.mark.parametrize("name", NAMES)


def _state(name: str) -> tuple[str, np.ndarray]:
    """A configuration as text, and a first state of it."""
    text = json.dumps(FIELDS.get(name, {}))
    entry = next(e for e in MODELS if e.name == name)
    config = configure(name, text)
    return text, pack(name, config, entry.initialise(config, np.random.default_rng(0)))


@each_model
def test_a_state_comes_back_to_the_bit_and_the_random_state_stays(name: str) -> None:
    text, state = _state(name)
    state[0] = -0.0
    before = torch.get_rng_state()
    held = loaded(name, text, torch.from_numpy(state))

    assert torch.equal(before, torch.get_rng_state())
    assert (octets(held.read().numpy()) == octets(state)).all()
    assert not held.module.training


@each_model
def test_a_saved_state_and_the_numbers_that_are_trained(name: str) -> None:
    text, state = _state(name)
    call = Call("model_state", {"state": state}, {"model": name, "config": text}, mode="fused")
    with open_session(TorchAudit(), isolate=False) as session:
        (reply,) = session.run([call])
    layout = next(e for e in MODELS if e.name == name).layout(configure(name, text))

    assert reply.failure is None
    assert (reply.outputs["octets"] == octets(state)).all()
    assert len(reply.outputs["octets"]) == stored(layout)
    assert reply.outputs["trained"] == trainable(layout)


@pytest.mark.parametrize("name", ["gpt", "char_gpt"])
def test_a_tied_table_stays_one_parameter(name: str) -> None:
    text = json.dumps({**FIELDS[name], **({"tied": True} if name == "char_gpt" else {})})
    held = hold(name, text, torch.empty(0, dtype=torch.float64))
    every = list(held.module.named_parameters(remove_duplicate=False))

    assert len(every) == len(held.trained()) + 1
    assert {p.dtype for _, p in every} == {torch.float64}


def test_a_seed_draws_the_same_first_state_and_another_seed_another() -> None:
    states = []
    for seed in (0, 0, 1):
        held = hold("gpt", _state("gpt")[0], torch.empty(0, dtype=torch.float64))
        initialise(held.module, seed)
        states.append(held.read())
    assert torch.equal(states[0], states[1])
    assert not torch.equal(states[0], states[2])


def test_a_table_that_starts_as_torch_draws_it_is_out_of_the_interval() -> None:
    config = configure("gpt", _state("gpt")[0])
    held = hold("gpt", _state("gpt")[0], torch.empty(0, dtype=torch.float64))
    initialise(held.module, 0)
    torch.nn.init.normal_(held.module.get_parameter("wte.weight"))
    ids = torch.zeros(9, 4, dtype=torch.int64)
    targets = torch.arange(9)[:, None].expand(9, 4)
    with torch.no_grad():
        loss = torch.nn.functional.cross_entropy(held.module(ids).transpose(1, 2), targets)

    low, high = interval("gpt", config)
    assert low < high < float(loss)


def test_a_spectrum_of_complex_numbers_has_no_fused_step() -> None:
    text, state = _state("fno")
    x = np.ones((1, 4, 3, 1))
    inputs = {"state": state, "x": x, "targets": x}
    call = Call("regression_step", inputs, {"model": "fno", "config": text})
    with open_session(TorchTraining(), isolate=False) as session:
        replies = session.run([replace(call, mode=m) for m in ("foreach", "fused")])

    assert replies[0].failure is None
    want = op("regression_step").forward(call.inputs, call.attributes)
    assert np.abs(replies[0].outputs["losses"] - want["losses"]).max() < 1e-12
    assert replies[1].failure is not None
    assert replies[1].failure.kind == "unsupported"


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"model": "bert"}, r"model='bert' is unknown; valid: char_gpt, fno, gpt"),
        ({"optimizer": "lion"}, r"optimizer='lion' is unknown; valid: sgd, adam, adamw"),
    ],
)
def test_what_is_unknown_is_refused_by_name(attributes: dict[str, Any], reason: str) -> None:
    text, state = _state("gpt")
    ids = np.zeros((1, 2), dtype=np.int64)
    inputs = {"state": state, "ids": ids, "targets": ids}
    call = Call("language_step", inputs, {"config": text, **attributes}, mode="single")
    with open_session(TorchTraining(), isolate=False) as session:
        (reply,) = session.run([call])

    assert reply.failure is not None
    assert reason in reply.failure.message
