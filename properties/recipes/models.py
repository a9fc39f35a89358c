"""Recipes of whole models: configurations of every kind, tiny ones, whose bounds mean something."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from assay.properties.case import Case
from assay.properties.context import Context
from assay.properties.draw import Draw, choice
from assay.properties.recipe import Inputs, Recipe, Structure
from assay.spec.models.flat import configure, pack, stored_in
from assay.spec.models.layout import product
from assay.spec.ops import op

BATCHES = (1, 2, 3)
SPREAD = 0.3


def config_of(case: Case) -> Any:
    """The configuration of a case."""
    return configure(case.op, config_text(case))


def config_text(case: Case) -> str:
    """The configuration of a case, as its adapter gets it."""
    text: str = case.attributes.get("config", op(case.op).attributes[0].default)
    return text


def state(case: Case, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Gains around 1, tokens far apart, everything else small: no array is left at a value that
    hides it.
    """
    config, arrays = config_of(case), {}
    for p in stored_in(case.op, config):
        gain = 1.0 if p.group == "norm" and p.name.endswith("weight") else 0.0
        spread = 1.0 if p.name == "token" else SPREAD
        arrays[p.name] = gain + spread * rng.standard_normal(p.shape)
    return pack(case.op, config, arrays)


def _length(case: Case) -> tuple[int, ...]:
    return (sum(product(p.shape) for p in stored_in(case.op, config_of(case))),)


def _structure(dims: dict[str, int], **fields: Any) -> Structure:
    return dims, {"config": json.dumps(fields)}


def _mlp(draw: Draw, ctx: Context) -> Structure:
    return _structure(
        {"B": draw(choice(*BATCHES))},
        inputs=draw(choice(1, 2, 3, 5)),
        hidden=[draw(choice(1, 2, 3, 4, 7)) for _ in range(draw(choice(0, 1, 2, 3)))],
        outputs=draw(choice(1, 2, 3, 4)),
        activation=draw(choice("relu", "gelu", "gelu_tanh", "silu", "tanh", "sigmoid")),
        shortcut=draw(choice(False, True)),
    )


def _mlp_shapes(case: Case) -> dict[str, tuple[int, ...]]:
    return {"state": _length(case), "x": (case.dims["B"], config_of(case).inputs)}


def _resnet(draw: Draw, ctx: Context) -> Structure:
    spatial = [draw(choice(1, 2, 3, 4)) for _ in range(draw(choice(1, 2, 3)))]
    return _structure(
        {"B": draw(choice(*BATCHES))},
        channels=draw(choice(1, 2, 3)),
        spatial=spatial,
        hidden=draw(choice(1, 2, 3)),
        radius=draw(choice(None, tuple(draw(choice(0, 1, 2)) for _ in spatial))),
        classes=draw(choice(1, 2, 3)),
    )


def _resnet_shapes(case: Case) -> dict[str, tuple[int, ...]]:
    config = config_of(case)
    return {"state": _length(case), "x": (case.dims["B"], config.channels, *config.spatial)}


def _gpt(draw: Draw, ctx: Context) -> Structure:
    heads, context = draw(choice(1, 2, 3)), draw(choice(1, 2, 3, 4, 6))
    tokens = draw(choice(context, max(1, context - 1), 1))
    return _structure(
        {"B": draw(choice(*BATCHES)), "T": tokens},
        vocabulary=draw(choice(1, 2, 3, 7)),
        context=context,
        layers=draw(choice(1, 2)),
        heads=heads,
        width=heads * draw(choice(2, 1, 3)),
        bias=draw(choice(True, False)),
    )


def _gpt_shapes(case: Case) -> dict[str, tuple[int, ...]]:
    return {"state": _length(case), "ids": (case.dims["B"], case.dims["T"])}


def _ids(case: Case, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.integers(0, config_of(case).vocabulary, shape)


def _recurrent(draw: Draw, ctx: Context) -> Structure:
    return _structure(
        {"B": draw(choice(*BATCHES)), "T": draw(choice(1, 2, 3, 4, 6))},
        vocabulary=draw(choice(1, 2, 3, 5)),
        hidden=draw(choice(1, 2, 3)),
        layers=draw(choice(1, 2)),
    )


def _recurrent_shapes(case: Case) -> dict[str, tuple[int, ...]]:
    steps = (case.dims["B"], case.dims["T"])
    return {"state": _length(case), "x": (*steps, config_of(case).vocabulary)}


def _spoil(case: Case, inputs: Inputs) -> dict[str, Inputs]:
    given = inputs["state"]
    spoilt = {
        "one number too few in the state": {**inputs, "state": given[:-1]},
        "one number too many in the state": {**inputs, "state": np.append(given, given[:1])},
    }
    if "ids" not in inputs:
        return spoilt
    config, beyond = config_of(case), inputs["ids"].copy()
    beyond.flat[0] = config.vocabulary
    longer = np.concatenate([inputs["ids"]] * (config.context + 1), axis=1)
    return {
        **spoilt,
        "an identifier beyond the vocabulary": {**inputs, "ids": beyond},
        "more tokens than the context": {**inputs, "ids": longer},
    }


MODELS: tuple[Recipe, ...] = (
    Recipe(
        "mlp",
        _mlp,
        _mlp_shapes,
        special={"state": state},
        batched=("x",),
        empties=("B",),
        spoil=_spoil,
    ),
    Recipe(
        "resnet",
        _resnet,
        _resnet_shapes,
        special={"state": state},
        batched=("x",),
        empties=("B",),
        spoil=_spoil,
    ),
    Recipe(
        "gpt",
        _gpt,
        _gpt_shapes,
        special={"state": state, "ids": _ids},
        batched=("ids",),
        empties=("B",),
        spoil=_spoil,
    ),
    *(
        Recipe(
            name,
            _recurrent,
            _recurrent_shapes,
            special={"state": state},
            batched=("x",),
            empties=("B",),
            spoil=_spoil,
        )
        for name in ("rnn_lm", "lstm_lm")
    ),
)
