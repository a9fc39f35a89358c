"""Properties of transformer layers, in the formats whose error bounds say something."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from assay.properties import reference
from assay.properties.case import Case, Materials
from assay.properties.context import Context
from assay.properties.draw import SEEDS, Draw
from assay.properties.experiment import Experiment, Same, Subject
from assay.properties.property import Exclusion, Property, all_of, needs_gradients, needs_keyword
from assay.properties.recipe import with_given, without
from assay.properties.recipes import RECIPES
from assay.properties.refinement import batch_invariance, drawn, refine, refine_gradient

OPS = ("encoder_layer", "decoder_layer")
OUT = Subject(0, "out")


def wide_enough(ctx: Context) -> Exclusion | None:
    """Excluded in 16-bit formats, where a layer's bound is of the size of its output."""
    if ctx.dtype in ("float32", "float64"):
        return None
    return Exclusion("error bounds of a whole layer say nothing in 16-bit formats")


def _several_modes(ctx: Context) -> Exclusion | None:
    return None if len(ctx.contract.modes) > 1 else Exclusion("the backend has one mode")


def _draw_place(draw: Draw, ctx: Context) -> Case:
    """At least two tokens, and a place among them."""
    case = drawn(draw, ctx)
    dims = {**case.dims, "T": max(case.dims["T"], 2)}
    return replace(case, dims=dims, extra={**case.extra, "place": draw(SEEDS)})


def _draw_causal(draw: Draw, ctx: Context) -> Case:
    """Without padding: causal alone says which keys are seen."""
    case = without(_draw_place(draw, ctx), "keys")
    return replace(case, attributes={**case.attributes, "causal": True})


def prefix(case: Case, ctx: Context, made: Materials) -> Experiment:
    """The first tokens alone get what they get within the sequence."""
    recipe = RECIPES[case.op]
    inputs = recipe.inputs(case, made)
    at = 1 + case.extra["place"] % (case.dims["T"] - 1)
    bound = reference.bounds(ctx, inputs, case.attributes)["out"][:, :at]
    calls = tuple(recipe.call(case, {**inputs, "x": x}) for x in (inputs["x"], inputs["x"][:, :at]))
    first = replace(OUT, take=((1, tuple(range(at))),))
    return Experiment(calls, (Same(Subject(1, "out"), first, 2.0 * bound),))


def _draw_padded(draw: Draw, ctx: Context) -> Case:
    return with_given(_draw_place(draw, ctx), "keys")


def padding(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Other values at one token that is no key leave the other tokens as they are."""
    recipe = RECIPES[case.op]
    inputs = recipe.inputs(case, made)
    tokens = case.dims["T"]
    hidden = 1 + case.extra["place"] % (tokens - 1)
    inputs["keys"] = inputs["keys"].copy()
    inputs["keys"][:, hidden] = False
    other = inputs["x"].copy()
    other[:, hidden] = np.asarray(3.0, other.dtype) - other[:, hidden]
    bound = reference.bounds(ctx, inputs, case.attributes)["out"]
    others = tuple(t for t in range(tokens) if t != hidden)
    take = ((1, others),)
    calls = tuple(recipe.call(case, {**inputs, "x": x}) for x in (inputs["x"], other))
    same = Same(Subject(1, "out", take=take), replace(OUT, take=take), 2.0 * bound[:, others])
    return Experiment(calls, (same,))


def modes_agree(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Every mode gives what the first gives."""
    recipe = RECIPES[case.op]
    inputs = recipe.inputs(case, made)
    bound = reference.bounds(ctx, inputs, case.attributes)["out"]
    modes = (case.mode, *(m for m in ctx.contract.modes if m != case.mode))
    calls = tuple(recipe.call(replace(case, mode=mode), inputs) for mode in modes)
    expected = tuple(Same(Subject(i, "out"), OUT, 2.0 * bound) for i in range(1, len(calls)))
    return Experiment(calls, expected)


BLOCK_PROPERTIES: tuple[Property, ...] = (
    Property("block.refines", OPS, drawn, refine, wide_enough, weight=1.0, every_dtype=True),
    Property(
        "block.vjp_refines",
        OPS,
        drawn,
        refine_gradient,
        all_of(wide_enough, needs_gradients),
        weight=0.5,
    ),
    Property(
        "block.prefix",
        OPS,
        _draw_causal,
        prefix,
        all_of(wide_enough, needs_keyword("causal")),
        weight=0.5,
    ),
    Property(
        "block.padding",
        OPS,
        _draw_padded,
        padding,
        all_of(wide_enough, needs_keyword("keys")),
        weight=0.5,
    ),
    replace(batch_invariance("block", *OPS), excluded=wide_enough),
    Property(
        "block.mode_agreement",
        OPS,
        drawn,
        modes_agree,
        all_of(wide_enough, _several_modes),
        weight=0.3,
    ),
)
