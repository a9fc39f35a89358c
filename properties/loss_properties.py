"""Properties of log-softmax and cross-entropy."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from assay.properties import reference
from assay.properties.case import Case, Materials
from assay.properties.context import Context
from assay.properties.draw import Draw, choice
from assay.properties.experiment import (
    Close,
    Combined,
    Expectation,
    Experiment,
    Finite,
    Same,
    Subject,
)
from assay.properties.property import Property, needs_gradients, needs_keyword
from assay.properties.recipe import Inputs
from assay.properties.recipes import RECIPES
from assay.properties.refinement import drawn, refine, refinement

ALL = ("log_softmax", "cross_entropy")
ENTROPY = ("cross_entropy",)
LOSS = Subject(0, "loss")
GRADIENT = Subject(0, "logits", gradient=True)
EXACT = ("dyadic", "integers", "one_hot", "zeros")


def _output(ctx: Context) -> str:
    return next(iter(ctx.op.outputs))


def _logits(ctx: Context) -> str:
    return ctx.op.inputs[0].name


def _with(case: Case, **attributes: Any) -> Case:
    """The case with these attributes; None leaves one out."""
    kept = {n: v for n, v in {**case.attributes, **attributes}.items() if v is not None}
    return replace(case, attributes=kept)


def _single(case: Case) -> Case:
    """The losses of single rows, where the op reduces."""
    return _with(case, reduction="none") if case.op == "cross_entropy" else case


def _draw_far(draw: Draw, ctx: Context) -> Case:
    case = drawn(draw, ctx)
    case = _single(case) if ctx.takes("reduction") else case
    return replace(case, extra={**case.extra, "reach": draw(choice(40, 400, 4000, 1e30))})


def stable_logits(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Logits that are multiples of a large number: as the spec's, and finite."""
    recipe = RECIPES[case.op]
    name, out = _logits(ctx), _output(ctx)
    shape = recipe.shapes(case)[name]
    reach = min(float(case.extra["reach"]), 4000.0 if case.dtype == "float16" else np.inf)
    steps = made.put("steps", lambda: case.rng("steps").integers(-2, 3, shape))
    far = made.put("far", lambda: (steps * reach).astype(ctx.numpy_dtype), partial(_grid, reach))
    inputs = {**recipe.inputs(case, made), name: far}
    want = reference.values(ctx, inputs, case.attributes)[out]
    bound = reference.bounds(ctx, inputs, case.attributes)[out]
    expected: tuple[Expectation, ...] = (Close(Subject(0, out), want, bound),)
    if np.isfinite(bound).all():
        expected = (*expected, Finite(Subject(0, out)))
    return Experiment((recipe.call(case, inputs),), expected)


def _grid(reach: float, array: np.ndarray) -> np.ndarray:
    """The nearest small multiples of ``reach``."""
    return np.clip(np.round(array.astype(np.float64) / reach), -2, 2) * reach


def _draw_shift(draw: Draw, ctx: Context) -> Case:
    case = drawn(draw, ctx)
    recipes = {**case.recipes, _logits(ctx): draw(choice(*EXACT))}
    extra = {**case.extra, "shift": draw(choice(1, -3, 100, -100))}
    return replace(case, recipes=recipes, extra=extra)


def shift(case: Case, ctx: Context, made: Materials) -> Experiment:
    """A number added to all logits of a row, exactly, changes nothing beyond the bounds of both
    runs.
    """
    recipe, name, out = RECIPES[case.op], _logits(ctx), _output(ctx)
    inputs = recipe.inputs(case, made)
    rows = inputs[name].astype(np.float64)
    by = case.extra["shift"] / case.rng("shift").choice([1, 2, np.inf], rows[..., :1].shape)
    moved = (rows + by).astype(ctx.numpy_dtype)
    still = (moved.astype(np.float64) - by).astype(ctx.numpy_dtype)
    runs = [{**inputs, name: x} for x in (still, moved)]
    bounds = [reference.bounds(ctx, run, case.attributes)[out] for run in runs]
    calls = tuple(recipe.call(case, run) for run in runs)
    return Experiment(calls, (Same(Subject(1, out), Subject(0, out), bounds[0] + bounds[1]),))


def _draw_large(draw: Draw, ctx: Context) -> Case:
    """As many classes as vocabularies have, in one row."""
    case = drawn(draw, ctx)
    many = draw(choice(50_257, 65_537, 100_003))
    dims = {**case.dims, "N": 1, "V": many} | ({"B": 1} if "B" in case.dims else {})
    recipes = {**case.recipes, _logits(ctx): draw(choice("zeros", "normal", "ones"))}
    attributes = {n: v for n, v in case.attributes.items() if n != "ignore_index"}
    return replace(case, dims=dims, recipes=recipes, attributes=attributes)


def ignore_index(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Other logits in ignored rows, NaN and infinity among them, leave every bit as it was: their
    loss is 0 and their gradient is 0.
    """
    recipe = RECIPES[case.op]
    inputs = recipe.inputs(case, made)
    ignored = inputs["targets"] == case.attributes.get("ignore_index", -100)
    other = made.put("logits_other", lambda: _specials(case, inputs["logits"]))
    changed = {**inputs, "logits": np.where(ignored[:, None], other, inputs["logits"])}
    cotangents = recipe.cotangents(case, ctx, made, inputs) if ctx.gradients else None
    calls = tuple(recipe.call(case, x, cotangents) for x in (inputs, changed))
    expected: list[Expectation] = [Same(replace(LOSS, call=1), LOSS)]
    if case.attributes.get("reduction", "mean") == "none":
        free = np.where(ignored, 0.0, np.inf)
        expected.append(Close(replace(LOSS, call=1), np.zeros(free.shape), free))
    if ctx.gradients:
        shape = inputs["logits"].shape
        free = np.broadcast_to(np.where(ignored[:, None], 0.0, np.inf), shape)
        expected.append(Close(replace(GRADIENT, call=1), np.zeros(shape), free))
        expected.append(Same(replace(GRADIENT, call=1), GRADIENT))
    return Experiment(calls, tuple(expected))


SPECIALS = {"huge": (3e4, -3e4), "inf": (np.inf, -np.inf), "nan": (np.nan,)}


def _specials(case: Case, like: np.ndarray) -> np.ndarray:
    return case.rng("specials").choice(SPECIALS[case.extra["into"]], like.shape).astype(like.dtype)


def _draw_ignored(draw: Draw, ctx: Context) -> Case:
    """At least three rows, some of them ignored."""
    case = drawn(draw, ctx)
    dims = {**case.dims, "N": max(case.dims["N"], 3), "V": max(case.dims["V"], 2)}
    extra = {**case.extra, "into": draw(choice("huge", "inf", "nan"))}
    return replace(case, dims=dims, extra=extra)


def all_ignored(case: Case, ctx: Context, made: Materials) -> Experiment:
    """A mean over no row is NaN or 0, as is declared, and no gradient comes of it."""
    recipe = RECIPES[case.op]
    ignored = case.attributes.get("ignore_index", -100)
    inputs = recipe.inputs(case, made)
    inputs["targets"] = np.full_like(inputs["targets"], ignored)
    cotangents = recipe.cotangents(case, ctx, made, inputs) if ctx.gradients else None
    want = reference.values(ctx, inputs, case.attributes)["loss"]
    shape = inputs["logits"].shape
    expected = [Close(LOSS, want, np.zeros(want.shape))]
    if ctx.gradients:
        expected.append(Close(GRADIENT, np.zeros(shape), np.zeros(shape)))
    return Experiment((recipe.call(case, inputs, cotangents),), tuple(expected))


def _draw_smoothing(draw: Draw, ctx: Context) -> Case:
    case = drawn(draw, ctx)
    return _with(case, label_smoothing=draw(choice(0.5, 0.1, 0.25, 0.9)))


def _bound(ctx: Context, case: Case, inputs: Inputs) -> np.ndarray:
    return reference.bounds(ctx, inputs, case.attributes)["loss"]


def label_smoothing(case: Case, ctx: Context, made: Materials) -> Experiment:
    """The loss under s is as the spec's, and 1 - s times that under none and s times that under 1:
    linear in s.
    """
    recipe = RECIPES[case.op]
    inputs, s = recipe.inputs(case, made), case.attributes["label_smoothing"]
    runs = (case, _with(case, label_smoothing=None), _with(case, label_smoothing=1.0))
    factors = (1.0, s - 1.0, -s)
    bound = sum(abs(f) * _bound(ctx, run, inputs) for f, run in zip(factors, runs, strict=True))
    terms = tuple((f, replace(LOSS, call=i)) for i, f in enumerate(factors))
    want = reference.values(ctx, inputs, case.attributes)["loss"]
    calls = tuple(recipe.call(run, inputs) for run in runs)
    expected = (Close(LOSS, want, _bound(ctx, case, inputs)), Combined(terms, np.asarray(bound)))
    return Experiment(calls, expected)


def grad_sums_zero(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Along each row the gradient sums to 0 within the sum of its bounds."""
    recipe = RECIPES[case.op]
    inputs = recipe.inputs(case, made)
    cotangents = recipe.cotangents(case, ctx, made, inputs)
    bounds = reference.gradient_bounds(ctx, inputs, cotangents, case.attributes)["logits"]
    bound = bounds.sum(axis=1, keepdims=True)
    call = recipe.call(case, inputs, cotangents)
    return Experiment(
        (call,), (Close(replace(GRADIENT, sum_axes=(1,)), np.zeros(bound.shape), bound),)
    )


def reduction(case: Case, ctx: Context, made: Materials) -> Experiment:
    """The sum is that of the single losses, and so is the mean times the rows that count."""
    recipe = RECIPES[case.op]
    inputs = recipe.inputs(case, made)
    counts = int(np.sum(inputs["targets"] != case.attributes.get("ignore_index", -100)))
    runs = tuple(_with(case, reduction=kind) for kind in ("sum", "mean", "none"))
    each = _bound(ctx, runs[2], inputs).sum()
    single = replace(LOSS, call=2, sum_axes=(0,))
    expected = tuple(
        Combined(
            ((factor, replace(LOSS, call=i)), (-1.0, single)),
            np.asarray([factor * float(_bound(ctx, runs[i], inputs)) + each]),
        )
        for i, factor in enumerate((1.0, float(counts)))
        if counts
    )
    return Experiment(tuple(recipe.call(run, inputs) for run in runs), expected)


_REDUCED = needs_keyword("reduction")

LOSS_PROPERTIES: tuple[Property, ...] = (
    *refinement("loss", *ALL),
    Property("loss.stable_logits", ALL, _draw_far, stable_logits, weight=0.5),
    Property("loss.shift", ALL, _draw_shift, shift, weight=0.5),
    Property("loss.large_vocabulary", ALL, _draw_large, refine, weight=0.1),
    Property("loss.ignore_index", ENTROPY, _draw_ignored, ignore_index),
    Property("loss.all_ignored", ENTROPY, drawn, all_ignored, weight=0.5),
    Property(
        "loss.label_smoothing",
        ENTROPY,
        _draw_smoothing,
        label_smoothing,
        needs_keyword("label_smoothing"),
        weight=0.5,
    ),
    Property("loss.grad_sums_zero", ENTROPY, drawn, grad_sums_zero, needs_gradients, weight=0.5),
    Property("loss.reduction", ENTROPY, drawn, reduction, _REDUCED, weight=0.5),
)
