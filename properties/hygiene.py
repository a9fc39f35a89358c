"""Properties of every op on every backend: shapes, memory, state, determinism."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from assay.impl.call import LAYOUTS, Call, Layout
from assay.properties import reference
from assay.properties.case import Case, Materials
from assay.properties.context import Context
from assay.properties.draw import SEEDS, Draw, choice
from assay.properties.experiment import (
    Aspect,
    Clean,
    Close,
    Distinct,
    Expectation,
    Experiment,
    Loud,
    Rejected,
    Same,
    Shaped,
    Subject,
)
from assay.properties.property import Exclusion, Property
from assay.properties.recipe import nothing
from assay.properties.recipes import RECIPES
from assay.properties.subjects import ROWS, Inputs, emptied, row

ANY = tuple(ROWS)
REPEATS = 40
GROWTH = 16 << 20
"""Bytes that memory may grow over the repeats: allocator slack, far below a leak of one output a
call.
"""


def _draw(draw: Draw, ctx: Context) -> Case:
    return row(ctx).draw(draw, ctx)


def _outputs(ctx: Context, call: int) -> list[Subject]:
    return [Subject(call, name) for name in ctx.op.outputs]


def _differentiable(ctx: Context, inputs: Inputs) -> list[str]:
    return [n for n in ctx.op.differentiable if n in inputs]


def _made(case: Case, ctx: Context, made: Materials) -> tuple[Inputs, Call]:
    inputs = row(ctx).make(case, made)
    return inputs, row(ctx).call(case, ctx, inputs, made, ctx.gradients)


def shape(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Outputs in the spec's shapes, gradients in their inputs'."""
    inputs, call = _made(case, ctx, made)
    want = reference.values(ctx, inputs, case.attributes)
    expected: list[Expectation] = [Shaped(s, want[s.name].shape) for s in _outputs(ctx, 0)]
    if ctx.gradients:
        expected += [
            Shaped(Subject(0, n, gradient=True), inputs[n].shape)
            for n in _differentiable(ctx, inputs)
        ]
    return Experiment((call,), tuple(expected))


def _clean(aspect: Aspect) -> Any:
    def build(case: Case, ctx: Context, made: Materials) -> Experiment:
        _, call = _made(case, ctx, made)
        wanted = (ctx.contract.device,) if aspect == "dtype" else ()
        return Experiment((call,), (Clean(0, aspect, wanted=wanted),))

    return build


def _draw_layout(draw: Draw, ctx: Context) -> Case:
    case = _draw(draw, ctx)
    kinds = {name: draw(choice(*LAYOUTS[1:], "contiguous")) for name in ctx.op.required}
    if case.mask is not None:
        kinds["mask"] = draw(choice("contiguous", "transposed", "offset"))
    return replace(case, layouts=kinds)


def layout_independent(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Transposed, strided, offset and expanded inputs give what contiguous ones give, within the
    bounds.
    """
    inputs = row(ctx).make(case, made)
    for name, kind in case.layouts.items():
        if kind == "expanded" and name in inputs and inputs[name].shape[0]:
            inputs[name] = np.broadcast_to(inputs[name][:1], inputs[name].shape)
    layouts = {
        n: Layout(k, 3 if k == "offset" else 0) for n, k in case.layouts.items() if n in inputs
    }
    call = replace(row(ctx).call(case, ctx, inputs, made, False), layouts={})
    bounds = reference.bounds(ctx, inputs, case.attributes)
    expected = tuple(Same(Subject(1, n), Subject(0, n), 2.0 * bounds[n]) for n in ctx.op.outputs)
    return Experiment((call, replace(call, layouts=layouts)), expected)


def _second(case: Case, ctx: Context, made: Materials) -> Inputs:
    """Inputs of the same shapes with other values; masks and whatever is not drawn stay."""
    other = Materials(replace(case, seed=case.extra["other"], recipes={}, arrays={}))
    inputs = row(ctx).make(case, made)
    fresh = row(ctx).make(case if case.mask is None else replace(case, mask=None), other)
    for name in ctx.op.required:
        second = made.put(f"{name}_second", partial(fresh.__getitem__, name), other.fits.get(name))
        inputs = {**inputs, name: second}
    return inputs


def _draw_second(draw: Draw, ctx: Context) -> Case:
    case = _draw(draw, ctx)
    return replace(case, extra={**case.extra, "other": draw(SEEDS)})


def fresh_output(case: Case, ctx: Context, made: Materials) -> Experiment:
    """The output is no view of an input, and a later call of the same shape leaves it alone and is
    itself right.
    """
    _, call = _made(case, ctx, made)
    second = _second(case, ctx, made)
    later = row(ctx).call(case, ctx, second, made, False)
    return Experiment((call, later), (Clean(0, "fresh_output"), Clean(1, "fresh_output")))


def deterministic(case: Case, ctx: Context, made: Materials) -> Experiment:
    """The same call twice: the same bits, where the contract declares it."""
    inputs, call = _made(case, ctx, made)
    bitwise = ctx.contract.deterministic
    expected = _repeated(ctx, case, inputs, again=1)
    if ctx.gradients and bitwise:
        expected += [
            Same(Subject(1, n, gradient=True), Subject(0, n, gradient=True))
            for n in _differentiable(ctx, inputs)
        ]
    weaker = "" if bitwise else "contract declares deterministic=False"
    return Experiment((call, call), tuple(expected), weaker)


def call_order_independent(case: Case, ctx: Context, made: Materials) -> Experiment:
    """x, x', x: the call on x' does not give what x gave, and the second call on x does."""
    inputs = row(ctx).make(case, made)
    second = _second(case, ctx, made)
    call = row(ctx).call(case, ctx, inputs, made, False)
    other = row(ctx).call(case, ctx, second, made, False)
    changed = [Distinct(Subject(1, n), Subject(0, n)) for n in _changed(ctx, case, inputs, second)]
    repeated = _repeated(ctx, case, inputs, again=2)
    return Experiment((call, other, call), (*changed, *repeated))


def _repeated(ctx: Context, case: Case, inputs: Inputs, *, again: int) -> list[Expectation]:
    """Call ``again`` gives what call 0 gave: to the bit, or within the bounds of both where the
    contract declares no determinism.
    """
    if ctx.contract.deterministic:
        return [Same(Subject(again, n), Subject(0, n)) for n in ctx.op.outputs]
    bounds = reference.bounds(ctx, inputs, case.attributes)
    return [Same(Subject(again, n), Subject(0, n), 2.0 * bounds[n]) for n in ctx.op.outputs]


def _changed(ctx: Context, case: Case, first: Inputs, second: Inputs) -> list[str]:
    """Outputs that differ between two inputs by more than rounding could hide."""
    values = [reference.values(ctx, x, case.attributes) for x in (first, second)]
    bounds = [reference.bounds(ctx, x, case.attributes) for x in (first, second)]
    return [
        n
        for n in ctx.op.outputs
        if np.any(np.abs(values[0][n] - values[1][n]) > bounds[0][n] + bounds[1][n])
    ]


def _draw_invalid(draw: Draw, ctx: Context) -> Case:
    case = _draw(draw, ctx)
    return replace(case, extra={**case.extra, "way": draw(choice(0, 1, 2, 3, 4))})


def invalid_input_rejected(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Inputs that do not fit together raise; sizes are at least 2 so that nothing broadcasts."""
    grown = replace(
        case,
        dims={
            n: s + 1 if n in ("L", "S", "D", "Dv", "B", "N") else s for n, s in case.dims.items()
        },
    )
    grown = replace(grown, attributes={})
    inputs = row(ctx).make(grown, made)
    spoilt = row(ctx).spoil(grown, inputs)
    if not spoilt:
        return Experiment((row(ctx).call(grown, ctx, inputs, made, False),), ())
    why = sorted(spoilt)[case.extra["way"] % len(spoilt)]
    call = row(ctx).call(grown, ctx, spoilt[why], made, False)
    return Experiment((call,), (Rejected(0, why),))


def _draw_empty(draw: Draw, ctx: Context) -> Case:
    case = _draw(draw, ctx)
    return emptied(case, draw(choice(*row(ctx).empties)))


def zero_size(case: Case, ctx: Context, made: Materials) -> Experiment:
    """An axis of length 0 gives an empty output; no keys give rows as the contract declares empty
    ones; width 0 gives means.
    """
    inputs = row(ctx).make(case, made)
    call = row(ctx).call(case, ctx, inputs, made, False)
    want = reference.values(ctx, inputs, case.attributes)
    bounds = reference.bounds(ctx, inputs, case.attributes)
    expected: list[Expectation] = [Shaped(s, want[s.name].shape) for s in _outputs(ctx, 0)]
    if case.dims.get("S") == 0 and ctx.contract.empty_row != "zeros":
        # Declared otherwise for rows that see none of their keys; with no key at all zeros are
        # right as well.
        expected += [Loud(s, want[s.name], bounds[s.name]) for s in _outputs(ctx, 0)]
    else:
        expected += [Close(s, want[s.name], bounds[s.name]) for s in _outputs(ctx, 0)]
    return Experiment((call,), tuple(expected))


def memory_bounded(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Many calls in a row do not make the process grow."""
    call = replace(row(ctx).call(case, ctx, row(ctx).make(case, made), made, False), repeat=REPEATS)
    return Experiment((call, call), (Clean(1, "memory", limit=GROWTH),))


def provider_witness(case: Case, ctx: Context, made: Materials) -> Experiment:
    """One of the kernels that the contract names is among those that ran."""
    call = replace(row(ctx).call(case, ctx, row(ctx).make(case, made), made, False), witness=True)
    return Experiment((call,), (Clean(0, "witness", wanted=ctx.contract.witness),))


def _may_not_fit(ctx: Context) -> Exclusion | None:
    if ctx.op.name in RECIPES and RECIPES[ctx.op.name].spoil is nothing:
        return Exclusion("inputs of any shape fit together", planned=False)
    return None


def _names_kernels(ctx: Context) -> Exclusion | None:
    return None if ctx.contract.witness else Exclusion("the contract names no kernel")


HYGIENE: tuple[Property, ...] = (
    Property("hygiene.shape", ANY, _draw, shape, weight=0.3),
    Property("hygiene.dtype", ANY, _draw, _clean("dtype"), weight=0.3, every_dtype=True),
    Property("hygiene.layout_independent", ANY, _draw_layout, layout_independent),
    Property("hygiene.inputs_unchanged", ANY, _draw, _clean("inputs_unchanged"), weight=0.5),
    Property("hygiene.guard_zones", ANY, _draw, _clean("guard_zones"), weight=0.5),
    Property("hygiene.fresh_output", ANY, _draw_second, fresh_output, weight=0.5),
    Property("hygiene.deterministic", ANY, _draw, deterministic, weight=0.5),
    Property(
        "hygiene.call_order_independent", ANY, _draw_second, call_order_independent, weight=0.5
    ),
    Property("hygiene.global_state_unchanged", ANY, _draw, _clean("global_state"), weight=0.3),
    Property(
        "hygiene.invalid_input_rejected",
        ANY,
        _draw_invalid,
        invalid_input_rejected,
        _may_not_fit,
        weight=0.3,
    ),
    Property("hygiene.zero_size", ANY, _draw_empty, zero_size),
    Property("hygiene.memory_bounded", ANY, _draw, memory_bounded, weight=0.1),
    Property("hygiene.provider_witness", ANY, _draw, provider_witness, _names_kernels, weight=0.05),
)
