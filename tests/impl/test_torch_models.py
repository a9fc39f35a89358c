"""torch's models are the spec's: outputs, gradients, state dicts, caches and left padding."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from assay.impl.backends.torch_models_cache import Cache, GrowingCache, StaticCache
from assay.impl.backends.torch_models_catalogue import MODULES, build
from assay.impl.backends.torch_models_sequence import Past
from assay.impl.backends.torch_models_state import filled, pack, run, unpack
from assay.spec.arithmetic import Arithmetic
from assay.spec.models.exchange import from_torch, to_torch
from assay.spec.models.flat import configure, stored_in
from assay.spec.models.flat import pack as packed
from assay.spec.models.flat import unpack as unpacked
from assay.spec.models.networks.gpt import forward
from assay.spec.ops import op

TRANSFORMER = {"vocabulary": 7, "context": 6, "layers": 2, "heads": 2, "width": 4}
CONFIGS: list[tuple[str, dict[str, Any], tuple[int, ...]]] = [
    ("mlp", {"inputs": 3, "hidden": [5, 2], "outputs": 4, "shortcut": True}, (2, 3)),
    ("resnet", {"channels": 2, "spatial": [4, 3], "hidden": 2, "radius": [1, 2]}, (2, 2, 4, 3)),
    ("vit", {"stride": [2, 2], "layers": 2, "pooling": "cls"}, (2, 3, 4, 4)),
    ("vit", {"spatial": [5], "kernel": [2], "padding": [1], "input_bias": True}, (2, 3, 5)),
    ("gpt", TRANSFORMER, (2, 5)),
    ("gpt", {**TRANSFORMER, "bias": False}, (2, 5)),
    ("char_gpt", TRANSFORMER, (2, 5)),
    ("char_gpt", {**TRANSFORMER, "pre_norm": False, "input_bias": True, "dropout": 0.5}, (2, 5)),
    ("char_gpt", {**TRANSFORMER, "tied": True, "output_bias": False, "layers": 1}, (2, 5)),
    ("rnn_lm", {"vocabulary": 4, "hidden": 3, "layers": 2}, (2, 5, 4)),
    ("lstm_lm", {"vocabulary": 4, "hidden": 3, "layers": 2}, (2, 5, 4)),
    ("lstm_regression", {"inputs": 2, "hidden": 3, "outputs": 2, "layers": 2}, (2, 5, 2)),
    ("mamba_lm", {"vocabulary": 4, "hidden": 2, "layers": 2, "states": 3}, (2, 5, 4)),
    ("mamba_lm", {"vocabulary": 4, "hidden": 2, "taps": 1, "states": 1}, (2, 5, 4)),
    ("fno", {"spatial": [4, 3], "modes": [1, 3], "width": 2, "layers": 2}, (2, 4, 3, 1)),
    ("fno", {"spatial": [6], "modes": [4], "width": 2, "spectrum": "rfft"}, (2, 6, 1)),
    ("fno", {"spatial": [5], "modes": [0], "width": 2, "spectrum": "rfft"}, (2, 5, 1)),
    ("fno", {"spatial": [4, 3], "modes": [2, 1], "width": 2, "transform": "dense"}, (2, 4, 3, 1)),
]
each_config = pytest.mark.parametrize(
    ("name", "fields", "shape"), CONFIGS, ids=[f"{n}-{i}" for i, (n, *_) in enumerate(CONFIGS)]
)
SEQUENCES = ("gpt", "char_gpt", "rnn_lm", "lstm_lm", "lstm_regression", "mamba_lm")


def _state(name: str, config: Any, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    arrays = {}
    for p in stored_in(name, config):
        drawn = 0.5 * rng.normal(size=p.shape) + (p.group == "norm")
        arrays[p.name] = drawn if p.trainable else p.init.draw(p.shape, rng)
    return packed(name, config, arrays)


def _read(name: str) -> str:
    return "ids" if name in ("gpt", "char_gpt") else "x"


def _input(name: str, shape: tuple[int, ...]) -> np.ndarray:
    rng = np.random.default_rng(1)
    return rng.integers(0, 7, shape) if _read(name) == "ids" else rng.normal(size=shape)


@each_config
@pytest.mark.parametrize("explicit", [False, True], ids=["fused", "explicit"])
def test_outputs_and_all_gradients_are_within_the_bounds_of_the_spec(
    name: str, fields: dict[str, Any], shape: tuple[int, ...], explicit: bool
) -> None:
    text, entry = json.dumps(fields), op(name)
    state, x = _state(name, configure(name, text)), _input(name, shape)
    inputs, attributes = {"state": state, _read(name): x}, {"config": text}
    want = entry.forward(inputs, attributes)["out"]
    g = np.random.default_rng(2).normal(size=want.shape)
    given = {n: torch.tensor(a, requires_grad=a.dtype.kind == "f") for n, a in inputs.items()}
    y = run(build(name, text, explicit=explicit), given["state"], given[_read(name)])
    y.backward(torch.tensor(g))

    arithmetic = Arithmetic("float64", "float64", "float64")
    bound = entry.bound(inputs, attributes, arithmetic)["out"]
    assert bound.max() < 1e-4
    assert (np.abs(y.detach().numpy() - want) <= bound).all()
    slopes = entry.backward(inputs, {"out": g}, attributes)
    widths = entry.backward_bound(inputs, {"out": g}, attributes, arithmetic)
    for n, slope in slopes.items():
        found: Any = given[n].grad
        assert (np.abs(found.numpy() - slope) <= widths[n]).all(), n


@each_config
def test_a_module_s_state_dict_is_the_exchange_s_both_ways(
    name: str, fields: dict[str, Any], shape: tuple[int, ...]
) -> None:
    text = json.dumps(fields)
    config = configure(name, text)
    state = _state(name, config)
    module = filled(build(name, text), torch.tensor(state))
    held = {n: x.numpy() for n, x in module.state_dict().items()}
    wanted = to_torch(name, config, unpacked(name, config, state))
    assert set(held) == set(wanted)
    assert all(np.array_equal(held[n], x) for n, x in wanted.items())

    back = from_torch(name, config, held)
    assert np.array_equal(packed(name, config, back), state)
    own = pack(module, dict(module.named_parameters()), torch.tensor(state))
    assert torch.equal(own, torch.tensor(state))


@each_config
def test_the_parts_of_a_state_go_back_bit_for_bit_and_another_length_is_refused(
    name: str, fields: dict[str, Any], shape: tuple[int, ...]
) -> None:
    text = json.dumps(fields)
    state = torch.tensor(_state(name, configure(name, text)))
    module = build(name, text)
    assert torch.equal(pack(module, unpack(module, state), state), state)
    with pytest.raises(ValueError, match=f"state has {len(state) - 1} numbers; the model has"):
        unpack(module, state[:-1])


def test_tied_tables_stay_one_parameter_in_training_and_through_conversions() -> None:
    for name, end, text in (
        ("gpt", "lm_head", json.dumps(TRANSFORMER)),
        ("char_gpt", "head", json.dumps({**TRANSFORMER, "tied": True})),
    ):
        state = torch.tensor(_state(name, configure(name, text)))
        for module in (filled(build(name, text), state), build(name, text).to_empty(device="cpu")):
            table = getattr(module, "wte" if name == "gpt" else "token")
            assert getattr(module, end).weight is table.weight


def test_the_second_bias_of_a_recurrence_is_not_trained() -> None:
    module = build("lstm_lm", '{"vocabulary": 3, "hidden": 2}')
    frozen = [n for n, p in module.named_parameters() if not p.requires_grad]
    assert frozen == ["lstm.bias_hh_l0"]


@pytest.mark.parametrize("name", SEQUENCES)
@pytest.mark.parametrize("sizes", [(1, 4), (2, 1, 2), (4, 1), (1, 1, 1, 1, 1)])
def test_chunks_give_what_one_run_gives(name: str, sizes: tuple[int, ...]) -> None:
    fields, shape = next((f, s) for n, f, s in CONFIGS if n == name)
    text = json.dumps(fields)
    module = filled(build(name, text), torch.tensor(_state(name, configure(name, text)))).eval()
    x = torch.tensor(_input(name, shape))
    past: Past | Cache = GrowingCache(len(x)) if _read(name) == "ids" else {}
    with torch.no_grad():
        parts = [module(part, past) for part in x.split(list(sizes), 1)]
        whole = module(x)
    assert (torch.cat(parts, dim=1) - whole).abs().max() < 1e-12


def _gpt() -> tuple[nn.Module, np.ndarray, Any]:
    text = json.dumps({**TRANSFORMER, "context": 12})
    config = configure("gpt", text)
    state = _state("gpt", config)
    return filled(build("gpt", text), torch.tensor(state)).eval(), state, config


def _caches(pads: tuple[int, ...]) -> list[Cache]:
    like = torch.zeros((), dtype=torch.float64)
    return [GrowingCache(2, pads), StaticCache(2, pads, (2, 2, 12, 2), like)]


@pytest.mark.parametrize("kind", [0, 1], ids=["growing", "static"])
def test_left_padded_prompts_get_the_logits_of_prompts_alone_by_prefill_and_steps(
    kind: int,
) -> None:
    module, state, config = _gpt()
    ids, pads = np.random.default_rng(3).integers(0, 7, (2, 9)), (0, 3)
    cache = _caches(pads)[kind]
    sizes = [6, 1, 1, 1]
    with torch.no_grad():
        parts = [module(part, cache) for part in torch.tensor(ids).split(sizes, 1)]
    logits = torch.cat(parts, dim=1).numpy()
    assert np.isfinite(logits).all()
    params = unpacked("gpt", config, state)
    for row, pad in enumerate(pads):
        alone = forward(config, params, ids[row : row + 1, pad:])[0]
        assert np.abs(logits[row, pad:] - alone).max() < 1e-12


@pytest.mark.parametrize("kind", [0, 1], ids=["growing", "static"])
def test_a_cache_refuses_what_exceeds_the_context_and_goes_on(kind: int) -> None:
    module, _, _ = _gpt()
    cache, ids = _caches(())[kind], torch.arange(24).reshape(2, 12) % 7
    with torch.no_grad():
        whole: Tensor = module(ids)
        module(ids[:, :10], cache)
        with pytest.raises(ValueError, match="tokens=3 after 10 exceed context=12"):
            module(ids[:, :3], cache)
        last = module(ids[:, 10:], cache)
    assert cache.length == 12
    assert (last - whole[:, 10:]).abs().max() < 1e-12


def test_padding_of_another_number_of_rows_is_refused() -> None:
    with pytest.raises(ValueError, match=r"pads=\(1,\) must have one number for each of 2 rows"):
        GrowingCache(2, (1,))


@pytest.mark.parametrize("name", MODULES)
def test_a_configuration_that_cannot_be_is_refused_with_every_field(name: str) -> None:
    wrong = {"mlp": "inputs", "resnet": "hidden", "fno": "width", "lstm_regression": "outputs"}
    field = wrong.get(name, "vocabulary" if name != "vit" else "classes")
    other = "layers" if name not in ("mlp", "resnet") else "outputs" if name == "mlp" else "classes"
    with pytest.raises(ValueError, match=f"{field}=0.*") as caught:
        build(name, json.dumps({field: 0, other: -1}))
    assert f"{other}=-1" in str(caught.value)


def test_evaluation_drops_nothing_and_training_does() -> None:
    text = json.dumps({**TRANSFORMER, "dropout": 0.5})
    state = torch.tensor(_state("gpt", configure("gpt", text)))
    module, ids = filled(build("gpt", text), state), torch.tensor(_input("gpt", (2, 5)))
    assert torch.equal(run(module, state, ids), run(module, state, ids))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        assert not torch.equal(module.train()(ids), module.train()(ids))
