"""Properties of whole models in training: a step, the first loss, the state that a library holds,
and what a pass costs. Errors are judged in float64, as in ``model_properties``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from assay.properties import reference
from assay.properties.case import Case, Materials
from assay.properties.context import Context
from assay.properties.draw import Draw
from assay.properties.experiment import Between, Close, Expectation, Experiment, Shaped, Subject
from assay.properties.model_properties import in_float64
from assay.properties.property import Property
from assay.properties.recipes import RECIPES
from assay.properties.recipes.models import config_of
from assay.properties.recipes.training import inner, trace_of
from assay.properties.refinement import drawn, refine
from assay.spec.models.initial_loss import interval

Build = Callable[[Case, Context, Materials], Experiment]

STEPS = ("language_step", "regression_step")
TRACED_TOKENS = ("gpt", "char_gpt")


def _equals(*names: str) -> Build:
    """These outputs are exactly the spec's."""

    def build(case: Case, ctx: Context, made: Materials) -> Experiment:
        inputs = RECIPES[case.op].inputs(case, made)
        want = reference.values(ctx, inputs, case.attributes)
        expected = tuple(Close(Subject(0, n), want[n], np.zeros(want[n].shape)) for n in names)
        return Experiment((RECIPES[case.op].call(case, inputs),), expected)

    return build


def round_trip(case: Case, ctx: Context, made: Materials) -> Experiment:
    """The bytes of the state that went through a module and its saved state dict are those of the
    state: signs of zero, subnormal numbers, infinities and NaN among them.
    """
    return _equals("octets")(case, ctx, made)


def trainable_count(case: Case, ctx: Context, made: Materials) -> Experiment:
    """As many numbers are trained as the layout says, and as many held as it stores."""
    experiment = _equals("trained")(case, ctx, made)
    stored = len(experiment.calls[0].inputs["state"])
    held: Expectation = Shaped(Subject(0, "octets"), (stored, 8))
    return Experiment(experiment.calls, (*experiment.expectations, held))


def initial_loss(case: Case, ctx: Context, made: Materials) -> Experiment:
    """The loss of the first state lies in the interval that only one sound state in a billion
    misses (``spec.models.initial_loss``); every symbol is the target equally often.
    """
    recipe, own = RECIPES[case.op], inner(case)
    inputs = recipe.inputs(case, made)
    low, high = (np.array(end) for end in interval(own.op, config_of(own)))
    call = recipe.call(case, inputs)
    return Experiment((call,), (Between(Subject(0, "loss"), low, high),))


def _draw_tokens(draw: Draw, ctx: Context) -> Case:
    """A pass through a transformer over tokens."""
    recipe = replace(RECIPES[ctx.op.name], structure=lambda d, c: trace_of(d, c, TRACED_TOKENS))
    return recipe.draw(draw, ctx)


TRAINING_PROPERTIES: tuple[Property, ...] = (
    Property("model.one_step", STEPS, drawn, refine, in_float64, weight=0.3),
    Property("model.state_round_trip", ("model_state",), drawn, round_trip, in_float64, weight=0.5),
    Property(
        "model.trainable_count", ("model_state",), drawn, trainable_count, in_float64, weight=0.5
    ),
    Property("model.initial_loss", ("initial_loss",), drawn, initial_loss, in_float64, weight=0.5),
    Property(
        "model.flops", ("model_trace",), _draw_tokens, _equals("flops"), in_float64, weight=0.5
    ),
    Property(
        "model.cache_bytes",
        ("model_trace",),
        _draw_tokens,
        _equals("cache"),
        in_float64,
        weight=0.5,
    ),
    Property(
        "model.residual_shapes",
        ("model_trace",),
        drawn,
        _equals("branches"),
        in_float64,
        weight=0.5,
    ),
)
