"""Properties of recurrent layers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from assay.properties import reference
from assay.properties.case import Case, Materials
from assay.properties.context import Context
from assay.properties.draw import HALVES, SEEDS, Draw, choice
from assay.properties.experiment import (
    Close,
    Distinct,
    Expectation,
    Experiment,
    Same,
    Shaped,
    Subject,
)
from assay.properties.property import Property, needs_keyword
from assay.properties.recipe import Inputs, with_given, without
from assay.properties.recipes import RECIPES
from assay.properties.recipes.sequences import CELLS
from assay.properties.refinement import batch_invariance, drawn, refinement
from assay.properties.streams import (
    Run,
    along,
    call,
    initial_state_of,
    run,
    stream,
    streaming_of,
    takes_states,
)

GATED = ("lstm", "gru")
GATES = {"lstm": 4, "gru": 3}
OUT = Subject(0, "out")


def _both(ctx: Context, first: Run, second: Run) -> list[Expectation]:
    """Two calls as the spec's, and apart where more than the bounds keeps them so."""
    expected: list[Expectation] = []
    for o in ctx.op.outputs:
        for i, due in enumerate((first, second)):
            expected.append(Close(Subject(i, o), due.values[o], due.bounds[o]))
        apart = np.abs(first.values[o] - second.values[o])
        if np.any(apart > first.bounds[o] + second.bounds[o]):
            expected.append(Distinct(Subject(1, o), Subject(0, o)))
    return expected


def _draw_gates(draw: Draw, ctx: Context) -> Case:
    case = drawn(draw, ctx)
    recipes = {**case.recipes, "weight": "normal", "bias": "normal"}
    return replace(case, recipes=recipes, extra={**case.extra, "shift": draw(HALVES)})


def gate_order(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Gates in another order are another function, each as the spec's."""
    inputs = RECIPES[case.op].inputs(case, made)
    gates = GATES[case.op]
    order = np.roll(np.arange(gates), 1) if case.extra["shift"] else np.arange(gates)[::-1]
    moved = {**inputs, **{n: inputs[n][order] for n in ("weight", "bias")}}
    runs = (run(case, ctx, inputs), run(case, ctx, moved))
    calls = (call(case, inputs), call(case, moved))
    return Experiment(calls, tuple(_both(ctx, *runs)))


def reset_variant(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Both places of the reset gate as the spec's, and apart."""
    inputs = RECIPES[case.op].inputs(case, made)
    rest = {n: v for n, v in case.attributes.items() if n != "reset_after"}
    before = replace(case, attributes=rest)
    after = replace(case, attributes={**rest, "reset_after": True})
    runs = (run(before, ctx, inputs), run(after, ctx, inputs))
    return Experiment((call(before, inputs), call(after, inputs)), tuple(_both(ctx, *runs)))


def _draw_nothing(draw: Draw, ctx: Context) -> Case:
    """No step at all, or rows of a batch without steps."""
    case = drawn(draw, ctx)
    if ctx.takes("lengths") and draw(HALVES):
        return with_given(case, "lengths")
    return without(replace(case, dims={**case.dims, "T": 0}), "lengths")


def zero_length(case: Case, ctx: Context, made: Materials) -> Experiment:
    """No outputs, and the initial state bit for bit."""
    inputs = RECIPES[case.op].inputs(case, made)
    if "lengths" in inputs:
        inputs["lengths"] = np.where(np.arange(case.dims["B"]) % 2, inputs["lengths"], 0)
    empty = np.arange(case.dims["B"]) % 2 == 0 if "lengths" in inputs else slice(None)
    want = reference.values(ctx, inputs, case.attributes)
    expected: list[Expectation] = [Shaped(Subject(0, o), want[o].shape) for o in want]
    for o in want:
        bound = np.full(want[o].shape, np.inf)
        bound[empty] = 0.0
        expected.append(Close(Subject(0, o), want[o], bound))
    return Experiment((call(case, inputs),), tuple(expected))


def _draw_packed(draw: Draw, ctx: Context) -> Case:
    case = with_given(drawn(draw, ctx), "lengths")
    extra = {"row": draw(SEEDS), "into": draw(choice("huge", "inf", "nan"))}
    return replace(case, extra={**case.extra, **extra})


def _ended(case: Case, made: Materials) -> Inputs:
    """Inputs whose rows end after one step or more."""
    inputs = RECIPES[case.op].inputs(case, made)
    if "lengths" in inputs:
        inputs["lengths"] = np.maximum(inputs["lengths"], 1)
    return inputs


def _alone(inputs: Inputs, case: Case, row: int, length: int) -> Inputs:
    """One row to its end, without a length."""
    batched = RECIPES[case.op].batched
    mine = {n: x[row : row + 1] if n in batched else x for n, x in inputs.items()}
    mine["x"] = mine["x"][:, :length]
    return {n: x for n, x in mine.items() if n != "lengths"}


def packed_equals_single(case: Case, ctx: Context, made: Materials) -> Experiment:
    """A row of a packed batch, and the same row alone; beyond its end there is 0."""
    inputs, s = _ended(case, made), stream(case)
    row = case.extra["row"] % case.dims["B"]
    length, steps = int(inputs["lengths"][row]), case.dims["T"]
    single = run(case, ctx, _alone(inputs, case, row, length))
    mine = ((0, (row,)),)
    within = Subject(0, s.out, take=(*mine, *along(0, length)))
    beyond = Subject(0, s.out, take=(*mine, *along(length, steps)))
    nothing = np.zeros((1, steps - length, case.dims["Hd"]))
    expected: list[Expectation] = [
        Same(within, Subject(1, s.out), 2.0 * single.bounds[s.out]),
        Close(beyond, nothing, nothing),
    ]
    for o in s.states.values():
        expected.append(Same(Subject(0, o, take=mine), Subject(1, o), 2.0 * single.bounds[o]))
    return Experiment((call(case, inputs), call(case, single.inputs)), tuple(expected))


SPECIALS = {"huge": (3e4, -3e4), "inf": (np.inf, -np.inf), "nan": (np.nan,)}


def padding_independent(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Other numbers beyond a row's end change no bit of outputs and gradients, and get a gradient
    of exactly 0.

    Where the contract lets what is blocked reach results as NaN, the other numbers are finite.
    """
    recipe, inputs = RECIPES[case.op], _ended(case, made)
    isolates = ctx.contract.blocked_nonfinite == "isolates"
    kind = case.extra["into"] if isolates else "huge"
    beyond = np.arange(case.dims["T"]) >= inputs["lengths"][:, None]
    x = inputs["x"]
    other = made.put("x_beyond", lambda: case.rng("beyond").choice(SPECIALS[kind], x.shape))
    changed = {**inputs, "x": np.where(beyond[..., None], other.astype(x.dtype), x)}
    cotangents = recipe.cotangents(case, ctx, made, inputs) if ctx.gradients else None
    expected: list[Expectation] = [Same(Subject(1, o), Subject(0, o)) for o in ctx.op.outputs]
    if ctx.gradients:
        slopes = [n for n in ctx.op.differentiable if n in inputs]
        expected += [
            Same(Subject(1, n, gradient=True), Subject(0, n, gradient=True)) for n in slopes
        ]
        free = np.broadcast_to(np.where(beyond[..., None], 0.0, np.inf), x.shape)
        expected.append(Close(Subject(1, "x", gradient=True), np.zeros(x.shape), free))
    weaker = (
        "" if isolates else f"contract declares blocked_nonfinite={ctx.contract.blocked_nonfinite}"
    )
    calls = tuple(recipe.call(case, run, cotangents) for run in (inputs, changed))
    return Experiment(calls, tuple(expected), weaker)


def _draw_two_ways(draw: Draw, ctx: Context) -> Case:
    """Rows that end early, in half of the cases."""
    case = drawn(draw, ctx)
    case = replace(case, attributes={**case.attributes, "reverse": True})
    if ctx.takes("lengths") and draw(HALVES):
        return with_given(case, "lengths")
    return without(case, "lengths")


def _mirrored(length: int, steps: int) -> tuple[int, ...]:
    """Positions of a row from its end to its start, and those beyond as they are."""
    return (*range(length - 1, -1, -1), *range(length, steps))


def bidirectional_alignment(case: Case, ctx: Context, made: Materials) -> Experiment:
    """A row read in reverse, and the reversed row read forwards: mirrored outputs, one state."""
    inputs, s, steps = _ended(case, made), stream(case), case.dims["T"]
    lengths = inputs.get("lengths", np.full(case.dims["B"], steps))
    orders = [_mirrored(int(n), steps) for n in lengths]
    turned = np.stack([row[list(order)] for row, order in zip(inputs["x"], orders, strict=True)])
    rest = {n: v for n, v in case.attributes.items() if n != "reverse"}
    forwards = replace(case, attributes=rest)
    bounds = reference.bounds(ctx, inputs, case.attributes)
    expected: list[Expectation] = []
    for b, order in enumerate(orders):
        mine, mirrored = ((0, (b,)),), ((0, (b,)), (1, order))
        bound = 2.0 * bounds[s.out][b : b + 1]
        there = Subject(1, s.out, take=mirrored)
        expected.append(Same(Subject(0, s.out, take=mine), there, bound))
    for o in s.states.values():
        expected.append(Same(Subject(0, o), Subject(1, o), 2.0 * bounds[o]))
    calls = (call(case, inputs), call(forwards, {**inputs, "x": turned}))
    return Experiment(calls, tuple(expected))


_LENGTHS = needs_keyword("lengths")

RECURRENT_PROPERTIES: tuple[Property, ...] = (
    *refinement("recurrent", *CELLS),
    *streaming_of("recurrent", *CELLS),
    batch_invariance("recurrent", *CELLS),
    initial_state_of("recurrent.initial_state", *CELLS),
    Property("recurrent.gate_order", GATED, _draw_gates, gate_order, weight=0.5),
    Property(
        "recurrent.reset_variant",
        ("gru",),
        drawn,
        reset_variant,
        needs_keyword("reset_after"),
        weight=0.5,
    ),
    Property("recurrent.zero_length", CELLS, _draw_nothing, zero_length, takes_states, weight=0.3),
    Property(
        "recurrent.packed_equals_single",
        CELLS,
        _draw_packed,
        packed_equals_single,
        _LENGTHS,
        weight=0.5,
    ),
    Property("recurrent.padding_independent", CELLS, _draw_packed, padding_independent, _LENGTHS),
    Property(
        "recurrent.bidirectional_alignment",
        CELLS,
        _draw_two_ways,
        bidirectional_alignment,
        needs_keyword("reverse"),
        weight=0.5,
    ),
)
