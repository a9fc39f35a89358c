"""Properties of layer, root mean square, group and batch normalisation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from assay.properties import reference
from assay.properties.case import Case, Materials
from assay.properties.context import Context
from assay.properties.draw import HALVES, SEEDS, Draw, choice
from assay.properties.experiment import Close, Expectation, Experiment, Same, Subject
from assay.properties.property import Property, needs_gradients, needs_keyword
from assay.properties.recipe import Inputs
from assay.properties.recipes import RECIPES
from assay.properties.recipes.norms import slices_of
from assay.properties.refinement import drawn, refinement

ALL = ("layer_norm", "rms_norm", "group_norm", "batch_norm")
CENTRED = ("layer_norm", "group_norm", "batch_norm")
OUT = Subject(0, "out")
EXACT = ("dyadic", "integers", "one_hot")
LEVELS = (1.0, 100.0, -1e3, 1e4, 1e5, -1e6, 1e7)
"""Sizes of constant slices."""
LARGEST = {"float16": 1000.0}
"""What they become where a format, or a square in it, would overflow."""


def _draw_one(draw: Draw, ctx: Context) -> Case:
    """Rows of one feature, small or large."""
    case = drawn(draw, ctx)
    extra = {**case.extra, "level": draw(choice(*LEVELS))}
    return replace(case, dims={**case.dims, "C": 1}, extra=extra)


def _scaled(case: Case, x: np.ndarray, level: float) -> np.ndarray:
    """The array times a number, as large as its format allows."""
    most = LARGEST.get(case.dtype, 1e36)
    wide = x.astype(np.float64) * min(level, most)
    return np.clip(wide, -most, most).astype(x.dtype)


def one_feature(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Over one feature the output is the bias and no gradient reaches x and weight, exactly."""
    recipe = RECIPES[case.op]
    inputs = recipe.inputs(case, made)
    inputs["x"] = made.put("x_level", lambda: _scaled(case, inputs["x"], case.extra["level"]))
    cotangents = recipe.cotangents(case, ctx, made, inputs) if ctx.gradients else None
    want = reference.values(ctx, inputs, case.attributes)["out"]
    expected = [Close(OUT, want, np.zeros(want.shape))]
    if cotangents is not None:
        expected += [
            Close(Subject(0, n, gradient=True), *[np.zeros(inputs[n].shape)] * 2)
            for n in ("x", "weight")
            if n in inputs
        ]
    return Experiment((recipe.call(case, inputs, cotangents),), tuple(expected))


def _draw_constant(draw: Draw, ctx: Context) -> Case:
    case = drawn(draw, ctx)
    extra = {**case.extra, "level": draw(choice(*LEVELS)), "own": draw(HALVES)}
    return replace(case, extra=extra)


def constant_slice(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Slices that hold one number each, the same or others, give the bias within the bound."""
    recipe = RECIPES[case.op]
    inputs = recipe.inputs(case, made)
    inputs["x"] = _constant(case, inputs["x"])
    want = reference.values(ctx, inputs, case.attributes)["out"]
    bound = reference.bounds(ctx, inputs, case.attributes)["out"]
    bias = inputs.get("bias", np.zeros(1))
    after = want.ndim - 1 - slices_of(case, want).features
    due = reference.widen(bias, case.dtype).reshape(-1, *(1,) * after)
    return Experiment(
        (recipe.call(case, inputs),), (Close(OUT, np.broadcast_to(due, want.shape), bound),)
    )


def _constant(case: Case, x: np.ndarray) -> np.ndarray:
    slices = slices_of(case, x)
    rows = slices.cut(x)
    size = rows[..., :1].shape
    own = case.rng("level").uniform(0.5, 1.0, size) if case.extra["own"] else np.ones(size)
    level = _scaled(case, own.astype(x.dtype), case.extra["level"])
    return np.ascontiguousarray(slices.join(np.broadcast_to(level, rows.shape)))


def _draw_shift(draw: Draw, ctx: Context) -> Case:
    """An eps of at least 1e-6, since a slice may be constant: ``constant_slice`` is about those."""
    case = drawn(draw, ctx)
    attributes = {n: v for n, v in case.attributes.items() if n != "eps" or v >= 1e-6}
    case = replace(case, attributes=attributes)
    extra = {**case.extra, "shift": draw(choice(1, -3, 16, 100, -1000))}
    return replace(case, recipes={**case.recipes, "x": draw(choice(*EXACT))}, extra=extra)


def shift(case: Case, ctx: Context, made: Materials) -> Experiment:
    """A number added to each slice, exactly, changes nothing beyond the bounds of both runs."""
    recipe = RECIPES[case.op]
    inputs = recipe.inputs(case, made)
    slices = slices_of(case, inputs["x"])
    rows = slices.cut(inputs["x"]).astype(np.float64)
    # Slices move by 1, 1/2, 1/4 or nothing of the shift; what is left beside it rounds nothing.
    by = case.extra["shift"] / case.rng("shift").choice([1, 2, 4, np.inf], rows[..., :1].shape)
    moved = (rows + by).astype(ctx.numpy_dtype)
    still = (moved.astype(np.float64) - by).astype(ctx.numpy_dtype)
    runs = [{**inputs, "x": np.ascontiguousarray(slices.join(x))} for x in (still, moved)]
    bounds = [reference.bounds(ctx, run, case.attributes)["out"] for run in runs]
    calls = tuple(recipe.call(case, run) for run in runs)
    return Experiment(calls, (Same(Subject(1, "out"), OUT, bounds[0] + bounds[1]),))


def _draw_scale(draw: Draw, ctx: Context) -> Case:
    case = drawn(draw, ctx)
    return replace(case, extra={**case.extra, "power": draw(choice(1, -1, 2, -2, 4, -4))})


def scale(case: Case, ctx: Context, made: Materials) -> Experiment:
    """x times a power of two, and eps times its square, change nothing beyond the bounds."""
    recipe = RECIPES[case.op]
    inputs = recipe.inputs(case, made)
    factor = 2.0 ** case.extra["power"]
    scaled = (inputs["x"].astype(np.float64) * factor).astype(ctx.numpy_dtype)
    # Back again: what the format does not hold after scaling is missing in both runs.
    back = (scaled.astype(np.float64) / factor).astype(ctx.numpy_dtype)
    eps = case.attributes.get("eps", 1e-5)
    larger = replace(case, attributes={**case.attributes, "eps": eps * factor**2})
    runs: list[tuple[Case, Inputs]] = [
        (case, {**inputs, "x": back}),
        (larger, {**inputs, "x": scaled}),
    ]
    bounds = [reference.bounds(ctx, x, c.attributes)["out"] for c, x in runs]
    calls = tuple(recipe.call(c, x) for c, x in runs)
    return Experiment(calls, (Same(Subject(1, "out"), OUT, bounds[0] + bounds[1]),))


def _draw_group(draw: Draw, ctx: Context) -> Case:
    case = drawn(draw, ctx)
    return replace(case, extra={**case.extra, "group": draw(SEEDS)})


def grad_sums_zero(case: Case, ctx: Context, made: Materials) -> Experiment:
    """The gradient into x sums to 0 over each slice, of one group where there are groups, within
    the sum of its bounds.
    """
    recipe = RECIPES[case.op]
    inputs = recipe.inputs(case, made)
    cotangents = recipe.cotangents(case, ctx, made, inputs)
    bound = reference.gradient_bounds(ctx, inputs, cotangents, case.attributes)["x"]
    axes = {
        "layer_norm": (bound.ndim - 1,),
        "group_norm": tuple(range(1, bound.ndim)),
        "batch_norm": (0, *range(2, bound.ndim)),
    }[case.op]
    subject = Subject(0, "x", gradient=True, sum_axes=axes)
    if case.op == "group_norm":
        groups = case.attributes.get("groups", 1)
        size = case.dims["C"] // groups
        first = case.extra["group"] % groups * size
        subject = replace(subject, take=((1, tuple(range(first, first + size))),))
        bound = bound[:, first : first + size]
    total = bound.sum(axis=axes, keepdims=True)
    expected: tuple[Expectation, ...] = (Close(subject, np.zeros(total.shape), total),)
    return Experiment((recipe.call(case, inputs, cotangents),), expected)


NORM_PROPERTIES: tuple[Property, ...] = (
    *refinement("norm", *ALL),
    Property("norm.one_feature", ("layer_norm",), _draw_one, one_feature, weight=0.5),
    Property("norm.constant_slice", CENTRED, _draw_constant, constant_slice),
    Property("norm.shift", CENTRED, _draw_shift, shift, weight=0.5),
    Property("norm.scale", ALL, _draw_scale, scale, needs_keyword("eps"), weight=0.5),
    Property(
        "norm.grad_sums_zero", CENTRED, _draw_group, grad_sums_zero, needs_gradients, weight=0.5
    ),
)
