"""Properties of whole models, in float64: below it their error bounds say nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np

from assay.properties import reference
from assay.properties.case import Case, Materials
from assay.properties.context import Context
from assay.properties.draw import SEEDS, Draw, choice
from assay.properties.experiment import Close, Expectation, Experiment, Rejected, Same, Subject
from assay.properties.property import Exclusion, Property, all_of, needs_gradients
from assay.properties.recipes import RECIPES
from assay.properties.recipes.models import config_of, config_text
from assay.properties.refinement import batch_invariance, drawn
from assay.spec.models.flat import stored_in
from assay.spec.models.layout import product

MODELS = (
    "mlp",
    "resnet",
    "vit",
    "gpt",
    "char_gpt",
    "rnn_lm",
    "lstm_lm",
    "mamba_lm",
    "lstm_regression",
    "fno",
)
SEQUENCES = ("gpt", "char_gpt", "rnn_lm", "lstm_lm", "mamba_lm", "lstm_regression")
TRANSFORMERS = ("gpt", "char_gpt")
OUT = Subject(0, "out")


def in_float64(ctx: Context) -> Exclusion | None:
    """Excluded below float64, where the bound of a network with norms is infinite."""
    if ctx.dtype == "float64":
        return None
    return Exclusion("error bounds of whole models say nothing below float64")


def _several_modes(ctx: Context) -> Exclusion | None:
    return None if len(ctx.contract.modes) > 1 else Exclusion("the backend has one mode")


def once(ctx: Context) -> Exclusion | None:
    """Excluded in all modes but the first: it asks about none, or about all of them at once."""
    if ctx.mode == ctx.contract.modes[0]:
        return None
    return Exclusion("asked in the first mode", planned=False)


def layout(case: Case, ctx: Context, made: Materials) -> Experiment:
    """The output, and the gradient into every slot of the state, are the spec's: each slot is the
    array that the layout says.
    """
    recipe = RECIPES[case.op]
    inputs = recipe.inputs(case, made)
    want = reference.values(ctx, inputs, case.attributes)["out"]
    bound = reference.bounds(ctx, inputs, case.attributes)["out"]
    expected: list[Expectation] = [Close(OUT, want, bound)]
    cotangents = recipe.cotangents(case, ctx, made, inputs) if ctx.gradients else None
    if cotangents is not None:
        slopes = reference.gradients(ctx, inputs, cotangents, case.attributes)
        widths = reference.gradient_bounds(ctx, inputs, cotangents, case.attributes)
        expected += [Close(Subject(0, n, gradient=True), slopes[n], widths[n]) for n in slopes]
    return Experiment((recipe.call(case, inputs, cotangents),), tuple(expected))


def _draw_count(draw: Draw, ctx: Context) -> Case:
    case = drawn(draw, ctx)
    return replace(case, extra={**case.extra, "more": draw(choice(1, -1, 2))})


def count(case: Case, ctx: Context, made: Materials) -> Experiment:
    """A state of any other length than the closed form's is refused."""
    inputs, more = RECIPES[case.op].inputs(case, made), case.extra["more"]
    state = inputs["state"]
    other = state[:more] if more < 0 else np.concatenate([state, state[:more]])
    call = RECIPES[case.op].call(case, {**inputs, "state": other})
    why = f"a state of {other.size} numbers instead of {state.size}"
    return Experiment((call,), (Rejected(0, why),))


INVALID: dict[str, dict[str, Any]] = {
    "mlp": {"inputs": 0, "hidden": [2, 0], "outputs": -1, "activation": "swish"},
    "resnet": {"channels": 0, "hidden": 0, "classes": 0, "radius": [-1, -1]},
    "vit": {
        "channels": 0,
        "width": 0,
        "kernel": [6, 1],
        "stride": [1],
        "padding": [-1, 0],
        "heads": 0,
        "head_width": -1,
        "feed_forward": 0,
        "layers": -1,
        "dropout": 1.5,
        "activation": "swish",
        "pooling": "max",
        "classes": 0,
    },
    "gpt": {"heads": 3, "vocabulary": 0, "context": 0, "layers": 0, "dropout": 1.0},
    "char_gpt": {
        "heads": 3,
        "context": 0,
        "feed_forward": 0,
        "layers": -1,
        "vocabulary": 0,
        "dropout": 1.5,
        "attention_dropout": -0.5,
        "activation": "swish",
        "tied": 2,
    },
    "rnn_lm": {"vocabulary": 0, "hidden": 0, "layers": 0, "context": 0},
    "lstm_lm": {"vocabulary": 0, "hidden": -1, "layers": 0, "context": 0},
    "mamba_lm": {
        "vocabulary": 0,
        "hidden": 0,
        "layers": 0,
        "expansion": 0,
        "states": -1,
        "taps": 0,
        "context": 0,
    },
    "lstm_regression": {"inputs": 0, "hidden": 0, "outputs": -1, "layers": 0, "context": 0},
    "fno": {
        "spatial": [0, 6],
        "modes": [2],
        "width": 0,
        "layers": -1,
        "spectrum": "half",
        "transform": "fast",
        "activation": "swish",
    },
}


def _draw_invalid(draw: Draw, ctx: Context) -> Case:
    """The default configuration, some fields of which cannot be."""
    fields = tuple(INVALID[ctx.op.name])
    wrong = sorted({draw(choice(*fields)) for _ in range(draw(choice(1, 2, 3)))})
    case = replace(drawn(draw, ctx), attributes={})
    return replace(case, extra={**case.extra, "wrong": wrong})


def config_rejects(case: Case, ctx: Context, made: Materials) -> Experiment:
    """A configuration that cannot be is refused, and every field at fault is named."""
    inputs, fields = RECIPES[case.op].inputs(case, made), case.extra["wrong"]
    wrong = {field: INVALID[case.op][field] for field in fields}
    text = json.dumps({**json.loads(config_text(case)), **wrong})
    call = RECIPES[case.op].call(replace(case, attributes={"config": text}), inputs)
    why = f"a configuration with {json.dumps(wrong)}"
    return Experiment((call,), (Rejected(0, why, tuple(fields)),))


def _draw_prefix(draw: Draw, ctx: Context) -> Case:
    case = drawn(draw, ctx)
    return replace(case, extra={**case.extra, "at": draw(SEEDS)})


def prefix(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Other inputs after a place, or none, change nothing up to it."""
    inputs, tokens = RECIPES[case.op].inputs(case, made), case.dims["T"]
    at, (name,) = 1 + case.extra["at"] % max(tokens - 1, 1), RECIPES[case.op].batched
    other = inputs[name].copy()
    later = other[:, at:] + 1
    other[:, at:] = later % config_of(case).vocabulary if name == "ids" else later
    calls = tuple(
        RECIPES[case.op].call(case, {**inputs, name: x})
        for x in (inputs[name], other, other[:, :at])
    )
    bound = reference.bounds(ctx, inputs, case.attributes)["out"][:, :at]
    first = ((1, tuple(range(at))),)
    expected = (
        Same(Subject(1, "out", take=first), Subject(0, "out", take=first), 2.0 * bound),
        Same(Subject(2, "out"), Subject(0, "out", take=first), 2.0 * bound),
    )
    return Experiment(calls, expected)


def _draw_tied(draw: Draw, ctx: Context) -> Case:
    """A configuration whose head is the token table."""
    case = drawn(draw, ctx)
    if ctx.op.name == "gpt":
        return case
    text = json.dumps({**json.loads(config_text(case)), "tied": True})
    return replace(case, attributes={**case.attributes, "config": text})


def tied_gradient(case: Case, ctx: Context, made: Materials) -> Experiment:
    """The gradient into the token table is that of its lookup plus that of the head."""
    recipe = RECIPES[case.op]
    inputs = recipe.inputs(case, made)
    cotangents = recipe.cotangents(case, ctx, made, inputs)
    size = product(next(p.shape for p in stored_in(case.op, config_of(case)) if p.name == "token"))
    want = reference.gradients(ctx, inputs, cotangents, case.attributes)["state"][:size]
    bound = reference.gradient_bounds(ctx, inputs, cotangents, case.attributes)["state"][:size]
    table = Subject(0, "state", gradient=True, take=((0, tuple(range(size))),))
    call = recipe.call(case, inputs, cotangents)
    return Experiment((call,), (Close(table, want, bound),))


def modes_agree(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Every mode gives the spec's logits, and so do two modes each other's."""
    inputs = RECIPES[case.op].inputs(case, made)
    want = reference.values(ctx, inputs, case.attributes)["out"]
    bound = reference.bounds(ctx, inputs, case.attributes)["out"]
    modes = ctx.contract.modes
    calls = tuple(RECIPES[case.op].call(replace(case, mode=mode), inputs) for mode in modes)
    own = [Close(Subject(i, "out"), want, bound) for i in range(len(modes))]
    each = [Same(Subject(i, "out"), OUT, 2.0 * bound) for i in range(1, len(modes))]
    return Experiment(calls, (*own, *each))


_BATCHES = batch_invariance("model", *MODELS)

MODEL_PROPERTIES: tuple[Property, ...] = (
    Property("model.layout", MODELS, drawn, layout, in_float64),
    Property("model.count", MODELS, _draw_count, count, all_of(in_float64, once), weight=0.2),
    Property(
        "model.config_rejects",
        MODELS,
        _draw_invalid,
        config_rejects,
        all_of(in_float64, once),
        weight=0.2,
    ),
    replace(_BATCHES, excluded=in_float64),
    Property("model.prefix", SEQUENCES, _draw_prefix, prefix, in_float64, weight=0.5),
    Property(
        "model.tied_gradient",
        TRANSFORMERS,
        _draw_tied,
        tied_gradient,
        all_of(in_float64, needs_gradients),
        weight=0.5,
    ),
    Property(
        "model.sdpa_equals_manual",
        TRANSFORMERS,
        drawn,
        modes_agree,
        all_of(in_float64, _several_modes, once),
        weight=0.5,
    ),
)
