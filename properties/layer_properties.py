"""Properties of pointwise ops, linear maps, embeddings and dropout, and with them those of norms
and losses.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from assay.properties import reference
from assay.properties.case import Case, Materials, as_it_is
from assay.properties.context import Context
from assay.properties.draw import Draw, choice
from assay.properties.experiment import (
    Close,
    Distinct,
    Expectation,
    Experiment,
    Finite,
    Loud,
    Subject,
)
from assay.properties.loss_properties import LOSS_PROPERTIES
from assay.properties.norm_properties import NORM_PROPERTIES
from assay.properties.property import Property, needs_gradients, needs_keyword
from assay.properties.recipes import RECIPES
from assay.properties.recipes.layers import POINTWISE
from assay.properties.refinement import drawn, refinement

OUT = Subject(0, "out")
FORMS = ("none", "tanh")


def gelu_variant(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Both forms as the spec's, and another value where they are further apart than the bounds."""
    inputs = {"x": made.values("x", RECIPES[case.op].shapes(case)["x"], "normal")}
    given = [{} if form == FORMS[0] else {"approximate": form} for form in FORMS]
    want = [reference.values(ctx, inputs, attributes)["out"] for attributes in given]
    bound = [reference.bounds(ctx, inputs, attributes)["out"] for attributes in given]
    expected: list[Expectation] = [
        Close(Subject(i, "out"), want[i], bound[i]) for i in range(len(FORMS))
    ]
    if np.any(np.abs(want[0] - want[1]) > bound[0] + bound[1]):
        expected.append(Distinct(Subject(1, "out"), OUT))
    calls = tuple(
        RECIPES[case.op].call(replace(case, attributes=attributes), inputs) for attributes in given
    )
    return Experiment(calls, tuple(expected))


def tails(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Arguments from the smallest to the largest of the format: as the spec's, and finite."""
    shape = RECIPES[case.op].shapes(case)["x"]
    inputs = {"x": made.put("x", lambda: made.rounded(_any_size(case, shape)), as_it_is)}
    want = reference.values(ctx, inputs, case.attributes)["out"]
    bound = reference.bounds(ctx, inputs, case.attributes)["out"]
    expected = (Close(OUT, want, bound), Finite(OUT))
    return Experiment((RECIPES[case.op].call(case, inputs),), expected)


def _any_size(case: Case, shape: tuple[int, ...]) -> np.ndarray:
    """A third about the places where forms change over, up to 100; the rest of any exponent."""
    most = {"float16": 65504.0, "float64": 1.7e308}.get(case.dtype, 3e38)
    rng = case.rng("x")
    size = np.exp(rng.uniform(-np.log(most), np.log(most), shape))
    near = rng.uniform(0.0, 100.0, shape)
    return np.where(rng.random(shape) < 0.4, near, size) * rng.choice([-1.0, 1.0], shape)


def _draw_vocabulary(draw: Draw, ctx: Context) -> Case:
    """A table of tens of thousands of rows."""
    case = drawn(draw, ctx)
    rows = draw(choice(32_769, 50_257, 65_537))
    dims = {"B": 1, "N": draw(choice(1, 8, 33)), "V": rows, "D": draw(choice(1, 2))}
    return replace(case, dims=dims, attributes={})


def large_vocabulary(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Rows of a large table, the last among them, bit for bit."""
    inputs = RECIPES[case.op].inputs(case, made)
    rows = case.dims["V"]
    far = made.put("ids_far", lambda: case.rng("far").integers(0, rows, (1, case.dims["N"])))
    far[0, 0] = rows - 1
    inputs = {**inputs, "ids": far}
    want = reference.widen(inputs["table"], case.dtype)[far]
    call = RECIPES[case.op].call(case, inputs)
    return Experiment((call,), (Close(OUT, want, np.zeros(want.shape)),))


def padding_row_zero_grad(case: Case, ctx: Context, made: Materials) -> Experiment:
    """The padding row and the rows that are not looked up get a gradient of exactly 0."""
    recipe = RECIPES[case.op]
    inputs = recipe.inputs(case, made)
    cotangents = recipe.cotangents(case, ctx, made, inputs)
    unused = np.ones(case.dims["V"], dtype=bool)
    unused[inputs["ids"].reshape(-1)] = False
    padding = case.attributes.get("padding_idx")
    if padding is not None:
        unused[padding] = True
    shape = inputs["table"].shape
    free = np.broadcast_to(np.where(unused[:, None], 0.0, np.inf), shape)
    call = recipe.call(case, inputs, cotangents)
    gradient = Subject(0, "table", gradient=True)
    return Experiment((call,), (Close(gradient, np.zeros(shape), free),))


def _draw_dropped(draw: Draw, ctx: Context) -> Case:
    case = drawn(draw, ctx)
    attributes = {n: v for n, v in case.attributes.items() if n != "training"}
    extra = {**case.extra, "into": draw(choice("normal", "huge", "inf", "nan"))}
    return replace(case, attributes=attributes, extra=extra)


def dropped_zero(case: Case, ctx: Context, made: Materials) -> Experiment:
    """A dropped entry and its gradient are exactly 0, whatever it holds; p = 1 drops all.

    A contract under which non-finite values at blocked places may show promises less: 0 or no
    number.
    """
    recipe = RECIPES[case.op]
    inputs = recipe.inputs(case, made)
    if case.attributes.get("p") == 0:
        return Experiment((recipe.call(case, inputs),), ())
    dropped = ~inputs["keep"] | (case.attributes.get("p") == 1)
    other = made.put("x_other", lambda: _specials(case, inputs["x"]))
    inputs["x"] = np.where(dropped, other, inputs["x"])
    cotangents = recipe.cotangents(case, ctx, made, inputs) if ctx.gradients else None
    zeros, free = np.zeros(dropped.shape), np.where(dropped, 0.0, np.inf)
    isolated = ctx.contract.blocked_nonfinite == "isolates"
    held = Close if isolated else Loud
    expected: list[Expectation] = [held(OUT, zeros, free)]
    if ctx.gradients:
        expected.append(held(Subject(0, "x", gradient=True), zeros, free))
    weaker = "" if isolated else "contract declares blocked_nonfinite=propagates"
    return Experiment((recipe.call(case, inputs, cotangents),), tuple(expected), weaker)


SPECIALS = {"normal": (1.0, -2.0), "huge": (3e4,), "inf": (np.inf, -np.inf), "nan": (np.nan,)}


def _specials(case: Case, like: np.ndarray) -> np.ndarray:
    return case.rng("specials").choice(SPECIALS[case.extra["into"]], like.shape).astype(like.dtype)


def _draw_evaluation(draw: Draw, ctx: Context) -> Case:
    case = drawn(draw, ctx)
    return replace(case, attributes={**case.attributes, "training": False})


def evaluation(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Outside training the output is the input and the gradient is the cotangent, to the bit."""
    recipe = RECIPES[case.op]
    inputs = recipe.inputs(case, made)
    cotangents = recipe.cotangents(case, ctx, made, inputs) if ctx.gradients else None
    zeros = np.zeros(inputs["x"].shape)
    expected = [Close(OUT, reference.widen(inputs["x"], case.dtype), zeros)]
    if cotangents is not None:
        want = reference.widen(cotangents["out"], case.dtype)
        expected.append(Close(Subject(0, "x", gradient=True), want, zeros))
    return Experiment((recipe.call(case, inputs, cotangents),), tuple(expected))


LAYER_PROPERTIES: tuple[Property, ...] = (
    *refinement("activation", *POINTWISE),
    Property(
        "activation.gelu_variant",
        ("gelu",),
        drawn,
        gelu_variant,
        needs_keyword("approximate"),
        weight=0.5,
    ),
    Property("activation.tails", ("silu", "sigmoid", "softplus"), drawn, tails, every_dtype=True),
    *refinement("linear", "linear"),
    *refinement("embedding", "embedding"),
    Property(
        "embedding.padding_row_zero_grad",
        ("embedding",),
        drawn,
        padding_row_zero_grad,
        needs_gradients,
        weight=0.5,
    ),
    Property(
        "embedding.large_vocabulary",
        ("embedding",),
        _draw_vocabulary,
        large_vocabulary,
        weight=0.2,
    ),
    *refinement("dropout", "dropout"),
    Property("dropout.dropped_zero", ("dropout",), _draw_dropped, dropped_zero, weight=0.5),
    Property(
        "dropout.evaluation",
        ("dropout",),
        _draw_evaluation,
        evaluation,
        needs_keyword("training"),
        weight=0.5,
    ),
    *NORM_PROPERTIES,
    *LOSS_PROPERTIES,
)
