"""What is asked of every op: values and gradients within the bounds, and rows that do not depend on
their batch.
"""

from __future__ import annotations

from dataclasses import replace

from assay.properties import reference
from assay.properties.case import Case, Materials
from assay.properties.context import Context
from assay.properties.draw import SEEDS, Draw
from assay.properties.experiment import Close, Expectation, Experiment, Same, Subject
from assay.properties.property import Property, needs_gradients
from assay.properties.recipes import RECIPES


def drawn(draw: Draw, ctx: Context) -> Case:
    """An ordinary case of the context's op."""
    return RECIPES[ctx.op.name].draw(draw, ctx)


def refine(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Every output as the spec's, within its bound."""
    recipe = RECIPES[case.op]
    inputs = recipe.inputs(case, made)
    want = reference.values(ctx, inputs, case.attributes)
    bounds = reference.bounds(ctx, inputs, case.attributes)
    expected = tuple(Close(Subject(0, n), want[n], bounds[n]) for n in ctx.op.outputs)
    return Experiment((recipe.call(case, inputs),), expected)


def refine_gradient(case: Case, ctx: Context, made: Materials) -> Experiment:
    """The gradient into every input that has one, within its bound."""
    recipe = RECIPES[case.op]
    inputs = recipe.inputs(case, made)
    cotangents = recipe.cotangents(case, ctx, made, inputs)
    want = reference.gradients(ctx, inputs, cotangents, case.attributes)
    bounds = reference.gradient_bounds(ctx, inputs, cotangents, case.attributes)
    expected: tuple[Expectation, ...] = tuple(
        Close(Subject(0, n, gradient=True), want[n], bounds[n]) for n in want
    )
    return Experiment((recipe.call(case, inputs, cotangents),), expected)


def _draw_row(draw: Draw, ctx: Context) -> Case:
    case = drawn(draw, ctx)
    return replace(case, extra={**case.extra, "row": draw(SEEDS)})


def batch_invariant(case: Case, ctx: Context, made: Materials) -> Experiment:
    """One row of a batch gets alone what it gets within the batch."""
    recipe = RECIPES[case.op]
    inputs = recipe.inputs(case, made)
    size = inputs[recipe.batched[0]].shape[0]
    b = case.extra["row"] % max(size, 1)
    alone = {n: x[b : b + 1] if n in recipe.batched else x for n, x in inputs.items()}
    bitwise = ctx.contract.batch_invariant == "bitwise"
    bounds = reference.bounds(ctx, alone, case.attributes)
    expected = tuple(
        Same(Subject(0, n, take=((0, (b,)),)), Subject(1, n), None if bitwise else 2.0 * bounds[n])
        for n in ctx.op.outputs
    )
    calls = (recipe.call(case, inputs), recipe.call(case, alone))
    return Experiment(calls, expected, "" if bitwise else "contract declares batch_invariant=bound")


def refinement(family: str, *ops: str) -> tuple[Property, Property]:
    """The properties that values and gradients of these ops refine the spec's."""
    return (
        Property(
            f"{family}.refines", ops, drawn, refine, weight=2.0, every_dtype=True, rejudged=True
        ),
        Property(
            f"{family}.vjp_refines",
            ops,
            drawn,
            refine_gradient,
            needs_gradients,
            weight=1.5,
            every_dtype=True,
        ),
    )


def batch_invariance(family: str, *ops: str) -> Property:
    """The property that a row's values do not depend on its batch."""
    return Property(f"{family}.batch_invariant", ops, _draw_row, batch_invariant, weight=0.5)
