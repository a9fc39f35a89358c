"""Recipes of models in training: any model at its tiny configurations, and a batch to learn."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np

from assay.properties.case import Case
from assay.properties.context import Context
from assay.properties.draw import SEEDS, Draw, choice
from assay.properties.recipe import Inputs, Recipe, Structure
from assay.properties.recipes import models
from assay.spec.models.residuals import RESIDUAL_MODELS
from assay.spec.models.training import NUMBER_MODELS, TOKEN_MODELS
from assay.spec.ops import op

OWN = {recipe.op: recipe for recipe in models.MODELS}
"""The recipe of each model as an op."""

PECULIAR = (-0.0, 5e-324, -1e-310, 1e300, np.inf, -np.inf, np.nan)
"""Numbers that a conversion may lose."""


def inner(case: Case) -> Case:
    """The case of the model's own op that a case here is about."""
    default = {a.name: a.default for a in op(case.op).attributes}
    name = case.attributes.get("model", default["model"])
    text = case.attributes.get("config", default["config"])
    return replace(case, op=name, attributes={"config": text})


def _state(case: Case, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return models.state(inner(case), rng, shape)


def _legal_state(case: Case, array: np.ndarray) -> np.ndarray:
    return models.legal_state(inner(case), array)


def _any_bits(case: Case, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """A state whose trained numbers are peculiar ones here and there."""
    state = _state(case, rng, shape)
    fixed = np.isin(state, (0.0, 0.5))  # rates of dropouts stay as they are configured
    return np.where((rng.random(shape) < 0.1) & ~fixed, rng.choice(PECULIAR, shape), state)


def _length(case: Case) -> tuple[int, ...]:
    return models.length(inner(case))


def _of(draw: Draw, ctx: Context, names: tuple[str, ...], **further: Any) -> Structure:
    """One of the models at sizes of its own recipe."""
    name = draw(choice(*names))
    dims, attributes = OWN[name].structure(draw, ctx)
    return dims, {"model": name, **attributes, **further}


def _options(draw: Draw) -> dict[str, Any]:
    return {
        "optimizer": draw(choice("sgd", "adam", "adamw")),
        "lr": draw(choice(0.125, 1e-3, 0.01)),
        "betas": draw(choice((0.9, 0.999), (0.5, 0.25), (0.8, 0.95), (0.0, 0.9))),
        "eps": draw(choice(1e-8, 1e-3)),
        "weight_decay": draw(choice(0.0, 0.01, 0.25)),
        "steps": draw(choice(1, 2)),
    }


def _language(draw: Draw, ctx: Context) -> Structure:
    return _of(draw, ctx, TOKEN_MODELS, **_options(draw))


def _regression(draw: Draw, ctx: Context) -> Structure:
    return _of(draw, ctx, NUMBER_MODELS, **_options(draw))


def _token_shapes(case: Case) -> dict[str, tuple[int, ...]]:
    tokens = case.dims["B"], case.dims["T"]
    return {"state": _length(case), "ids": tokens, "targets": tokens}


def _ids(case: Case, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return models.ids(inner(case), rng, shape)


def _number_shapes(case: Case) -> dict[str, tuple[int, ...]]:
    own = inner(case)
    shapes, config = dict(OWN[own.op].shapes(own)), models.config_of(own)
    size = getattr(config, "outputs" if hasattr(config, "outputs") else "classes", 1)
    lead = shapes["x"][:1] if own.op in ("mlp", *models.IMAGES) else shapes["x"][:-1]
    return {**shapes, "targets": (*lead, size)}


def _spoil_state(case: Case, inputs: Inputs) -> dict[str, Inputs]:
    given = inputs["state"]
    return {
        "one number too few in the state": {**inputs, "state": given[:-1]},
        "one number too many in the state": {**inputs, "state": np.append(given, given[:1])},
    }


def _spoil_targets(case: Case, inputs: Inputs) -> dict[str, Inputs]:
    targets = inputs["targets"]
    more = np.concatenate([targets, targets[:, :1]], axis=1)
    return {"one target too many": {**inputs, "targets": more}}


def _spoil_tokens(case: Case, inputs: Inputs) -> dict[str, Inputs]:
    beyond = inputs["ids"].copy()
    beyond.flat[0] = models.config_of(inner(case)).vocabulary
    wrong = {"an identifier beyond the vocabulary": {**inputs, "ids": beyond}}
    return {**wrong, **_spoil_targets(case, inputs)}


def _any_model(draw: Draw, ctx: Context) -> Structure:
    return _of(draw, ctx, tuple(OWN))


def trace_of(draw: Draw, ctx: Context, names: tuple[str, ...] = RESIDUAL_MODELS) -> Structure:
    """The size of a pass through one of these models."""
    dims, attributes = _of(draw, ctx, names)
    return dims, {**attributes, "batch": dims["B"], "tokens": dims.get("T", 1)}


def _first(draw: Draw, ctx: Context) -> Structure:
    """Enough symbols for the interval to be narrow, each of them the target in one row."""
    vocabulary, tokens = draw(choice(64, 65, 96)), draw(choice(1, 2, 4))
    fields = {
        "vocabulary": vocabulary,
        "context": tokens,
        "layers": draw(choice(1, 2)),
        "heads": draw(choice(1, 2, 4)),
        "width": draw(choice(8, 16, 32)),
    }
    name = draw(choice("gpt", "char_gpt"))
    if name == "char_gpt":
        fields |= {"tied": draw(choice(True, False)), "pre_norm": draw(choice(True, False))}
    attributes = {"model": name, "config": json.dumps(fields), "seed": draw(SEEDS)}
    return {"B": vocabulary, "T": tokens}, attributes


def _first_shapes(case: Case) -> dict[str, tuple[int, ...]]:
    tokens = case.dims["B"], case.dims["T"]
    return {"weights": tokens[1:], "ids": tokens, "targets": tokens}


def _weights(case: Case, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Some places do not count; the last one does."""
    weights = rng.choice([0.0, 0.5, 1.0], shape)
    weights[-1:] = 1.0
    return weights


def _legal_weights(case: Case, array: np.ndarray) -> np.ndarray:
    """None below 0, and 1 at the last place, so that they have a sum to divide by."""
    weights = np.abs(array)
    weights[-1:] = 1.0
    return weights


def _same_ids(case: Case, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """The same tokens in every row."""
    return np.repeat(_ids(case, rng, (1, shape[1])), shape[0], axis=0)


def _every_target(case: Case, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """At each place every symbol is the target in one row, where there are as many rows."""
    rows, places = np.arange(shape[0])[:, None], rng.integers(0, 1000, shape[1])
    return (rows + places) % models.config_of(inner(case)).vocabulary


TRAINING: tuple[Recipe, ...] = (
    Recipe(
        "language_step",
        _language,
        _token_shapes,
        special={"state": _state, "ids": _ids, "targets": _ids},
        legal={"state": _legal_state},
        empties=("B",),
        spoil=lambda case, inputs: {**_spoil_state(case, inputs), **_spoil_tokens(case, inputs)},
    ),
    Recipe(
        "regression_step",
        _regression,
        _number_shapes,
        special={"state": _state},
        legal={"state": _legal_state},
        empties=("B",),
        spoil=lambda case, inputs: {**_spoil_state(case, inputs), **_spoil_targets(case, inputs)},
    ),
    Recipe(
        "model_state",
        _any_model,
        lambda case: {"state": _length(case)},
        special={"state": _any_bits},
        legal={"state": _legal_state},
        empties=("B",),
        spoil=_spoil_state,
    ),
    Recipe(
        "model_trace",
        trace_of,
        lambda case: {"state": _length(case)},
        special={"state": _state},
        legal={"state": _legal_state},
        empties=("B",),
        spoil=_spoil_state,
    ),
    Recipe(
        "initial_loss",
        _first,
        _first_shapes,
        special={"weights": _weights, "ids": _same_ids, "targets": _every_target},
        legal={"weights": _legal_weights},
        empties=("B",),
        spoil=_spoil_tokens,
    ),
)
