"""Properties of scans, state-space blocks and the causal convolution."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from assay.properties import reference
from assay.properties.case import Case, Materials, as_it_is
from assay.properties.context import Context
from assay.properties.draw import SEEDS, Draw, choice
from assay.properties.experiment import (
    Between,
    Close,
    Combined,
    Distinct,
    Expectation,
    Experiment,
    Finite,
    Same,
    Subject,
)
from assay.properties.property import Property, needs_keyword
from assay.properties.recipe import Inputs, with_given, without
from assay.properties.recipes import RECIPES
from assay.properties.refinement import batch_invariance, drawn, refinement
from assay.properties.streams import (
    along,
    call,
    chunks_of,
    continued,
    cut_of,
    in_parts,
    initial_state_of,
    part,
    run,
    steps_of,
    stream,
    streaming_of,
    takes_states,
)
from assay.spec.arithmetic import FORMATS

BLOCKS = ("diagonal_ssm", "compact_ssm", "selective_scan", "selective_block")
STATEFUL = ("affine_scan", *BLOCKS)
SCANS = (*STATEFUL, "causal_conv1d")
TAPPED = ("causal_conv1d", "selective_block")
DECAYING = ("selective_scan", "selective_block")
SKIPPING = ("affine_scan", "selective_scan")
EXACT = ("affine_scan", "causal_conv1d")
STATES = Subject(0, "states")


def _draw_integers(draw: Draw, ctx: Context) -> Case:
    """Small integers throughout; sums stay below 2^8."""
    case = drawn(draw, ctx)
    dims = {**case.dims, "T": min(case.dims["T"], 16)}
    return replace(case, dims=dims, recipes=dict.fromkeys(case.recipes, "integers"))


def refine_integers(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Integers with factors of 1, 0 and -1: no rounding, whatever the order."""
    inputs = RECIPES[case.op].inputs(case, made)
    if "a" in inputs:
        signs = made.put("a_sign", lambda: case.rng("sign").integers(-1, 2, inputs["a"].shape))
        inputs["a"] = signs.astype(ctx.numpy_dtype)
    want = reference.values(ctx, inputs, case.attributes)
    expected = tuple(Close(Subject(0, n), x, np.zeros(x.shape)) for n, x in want.items())
    return Experiment((call(case, inputs),), expected)


def _draw_shared(draw: Draw, ctx: Context) -> Case:
    case = drawn(draw, ctx)
    return replace(case, extra={**case.extra, "shared": draw(choice("steps", "rows", "all"))})


def refine_shared(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Coefficients that all steps, all rows or both have in common, without those axes."""
    inputs = RECIPES[case.op].inputs(case, made)
    first: Any = {"steps": np.s_[:, :1], "rows": np.s_[0], "all": np.s_[0, 0]}[case.extra["shared"]]
    inputs |= {n: inputs[n][first] for n in ("a", "b")}
    found = run(case, ctx, inputs)
    expected = tuple(Close(Subject(0, n), found.values[n], found.bounds[n]) for n in ctx.op.outputs)
    return Experiment((call(case, inputs),), expected)


def _draw_taps(draw: Draw, ctx: Context) -> Case:
    """Two taps or more, and two steps or more."""
    case = drawn(draw, ctx)
    dims = {**case.dims, "T": max(case.dims["T"], 2), "Kt": max(case.dims["Kt"], 2)}
    return replace(case, dims=dims, extra={**case.extra, "cut": draw(SEEDS)})


def history(case: Case, ctx: Context, made: Materials) -> Experiment:
    """A stream that carries the history gives the whole run, and one that drops it does not."""
    inputs, s, cut = RECIPES[case.op].inputs(case, made), stream(case), cut_of(case)
    steps, experiment = case.dims["T"], in_parts(case, ctx, inputs, [0, cut, case.dims["T"]])
    state = continued(case, ctx, part(case, inputs, 0, cut))
    later = {**part(case, inputs, cut, steps), **state}
    kept = run(case, ctx, later)
    lost = run(case, ctx, {n: x for n, x in later.items() if n != "history"})
    expected: list[Expectation] = [*experiment.expectations]
    expected.append(Close(Subject(3, s.out), lost.values[s.out], lost.bounds[s.out]))
    apart = np.abs(kept.values[s.out] - lost.values[s.out])
    if np.any(apart > kept.bounds[s.out] + lost.bounds[s.out]):
        expected.append(Distinct(Subject(3, s.out), Subject(2, s.out)))
    if case.op == "causal_conv1d":
        seen = reference.values(ctx, inputs, case.attributes)["history"]
        expected.append(Close(Subject(0, "history"), seen, np.zeros(seen.shape)))
    return Experiment((*experiment.calls, call(case, lost.inputs)), tuple(expected))


def _draw_neutral(draw: Draw, ctx: Context) -> Case:
    """Up to six steps among the others that do nothing."""
    case = drawn(draw, ctx)
    return replace(case, extra={**case.extra, "neutral": draw(choice(1, 2, 3, 6))})


def _places(case: Case) -> np.ndarray:
    """Which step of the short run stands at each step of the long one; -1: none, it is neutral."""
    steps, more = case.dims["T"], case.extra["neutral"]
    order = np.arange(steps + more) >= steps
    case.rng("places").shuffle(order)
    return np.where(order, -1, np.cumsum(~order) - 1)


def _spread(case: Case, inputs: Inputs, made: Materials, places: np.ndarray) -> Inputs:
    """The inputs with neutral steps among them: a = 1 and b = 0, or a step size of 0."""
    fixed = {"affine_scan": {"a": 1.0, "b": 0.0}, "selective_scan": {"delta": 0.0}}[case.op]
    long = dict(inputs)
    for name in stream(case).timed:
        x = inputs[name]
        shape = (x.shape[0], len(places), *x.shape[2:])
        rest = np.full(shape, fixed[name], x.dtype) if name in fixed else None
        filler = made.values(f"{name}_idle", shape, "wide") if rest is None else rest
        kept = x[:, np.maximum(places, 0)]
        long[name] = np.where((places >= 0)[:, None], kept, filler)
    return long


def padding_neutral(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Neutral steps change no state: with them and without, the others give the same."""
    inputs, s = RECIPES[case.op].inputs(case, made), stream(case)
    places = _places(case)
    long, short = run(case, ctx, _spread(case, inputs, made, places)), run(case, ctx, inputs)
    kept = np.flatnonzero(places >= 0)
    if case.op == "affine_scan":
        # Every state is seen: that of a neutral step is the one before it.
        source = np.maximum.accumulate(places)
        kept = np.flatnonzero(source >= 0)
        found = source[kept]
    else:
        found = places[kept]
    here, there = (slice(None), kept), (slice(None), found)
    apart = long.apart(short, s.out, here=here, there=there)
    expected: list[Expectation] = [
        Same(
            Subject(0, s.out, take=((1, tuple(map(int, kept))),)),
            Subject(1, s.out, take=((1, tuple(map(int, found))),)),
            apart,
        )
    ]
    if "state" in ctx.op.outputs:
        expected.append(Same(Subject(0, "state"), Subject(1, "state"), long.apart(short, "state")))
    return Experiment((call(case, long.inputs), call(case, inputs)), tuple(expected))


def _draw_two(draw: Draw, ctx: Context) -> Case:
    case = drawn(draw, ctx)
    dims = {**case.dims, "T": max(case.dims["T"], 2)}
    return replace(case, dims=dims, extra={**case.extra, "cut": draw(SEEDS)})


def packed_reset(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Behind a factor of 0 stands what the second sequence gives alone."""
    inputs, cut, steps = RECIPES[case.op].inputs(case, made), cut_of(case), case.dims["T"]
    inputs["a"] = inputs["a"].copy()
    inputs["a"][:, cut] = 0
    alone = {n: x for n, x in part(case, inputs, cut, steps).items() if n != "h0"}
    packed, single = run(case, ctx, inputs), run(case, ctx, alone)
    apart = packed.apart(single, "states", here=(slice(None), slice(cut, steps)))
    there = replace(STATES, take=along(cut, steps))
    same = Same(there, replace(STATES, call=1), apart)
    return Experiment((call(case, inputs), call(case, alone)), (same,))


def nonexpansive(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Two runs from different states come no further apart than the factors let them."""
    inputs = RECIPES[case.op].inputs(case, made)
    inputs["a"] = np.clip(inputs["a"], -1, 1)
    start = made.values("h0_other", inputs["h0"].shape, "normal")
    other = {**inputs, "h0": start}
    gap = np.abs(reference.widen(inputs["h0"], case.dtype) - reference.widen(start, case.dtype))
    kept = np.cumprod(np.abs(reference.widen(inputs["a"], case.dtype)), axis=1)
    bound = sum(reference.bounds(ctx, x, case.attributes)["states"] for x in (inputs, other))
    terms = ((1.0, STATES), (-1.0, replace(STATES, call=1)))
    expected = (Combined(terms, np.asarray(kept * gap[:, None] + bound)),)
    return Experiment((call(case, inputs), call(case, other)), expected)


def _draw_started(draw: Draw, ctx: Context) -> Case:
    return with_given(drawn(draw, ctx), "h0")


def _draw_long(draw: Draw, ctx: Context) -> Case:
    """Many steps of few channels."""
    case = drawn(draw, ctx)
    dims = {**case.dims, "B": 1, "T": draw(choice(64, 129, 257)), "E": draw(choice(1, 2, 3))}
    if "Kt" in dims:
        dims["Kt"] = min(dims["Kt"], 4)
    plain = dict.fromkeys(case.recipes, "normal")
    return without(replace(case, dims=dims, recipes=plain), "h0", "history")


def finite(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Step sizes up to those that forget everything: all is finite, and so are the gradients."""
    recipe = RECIPES[case.op]
    inputs = recipe.inputs(case, made)
    far = 6.0 if ctx.dtype == "float16" else 13.0
    if case.op == "selective_scan":
        delta = made.put("delta_far", lambda: _far(case, inputs["delta"].shape, far), np.abs)
        inputs["delta"] = delta.astype(ctx.numpy_dtype)
    else:
        # The block's step sizes are softplus of a sum, to which the bias adds the most.
        shape = inputs["dt_bias"].shape
        bias = made.put("dt_bias_far", lambda: _far(case, shape, far), as_it_is)
        inputs["dt_bias"] = bias.astype(ctx.numpy_dtype)
    values = reference.values(ctx, inputs, case.attributes)
    expected: list[Expectation] = [Finite(Subject(0, o)) for o in _within(values, ctx)]
    if case.op == "selective_scan":
        most = _most(inputs, case.dtype)
        expected.append(Between(Subject(0, "state"), -most, most))
    cotangents = recipe.cotangents(case, ctx, made, inputs) if ctx.gradients else None
    if cotangents is not None:
        slopes = reference.gradients(ctx, inputs, cotangents, case.attributes)
        expected += [Finite(Subject(0, n, gradient=True)) for n in _within(slopes, ctx)]
    return Experiment((recipe.call(case, inputs, cotangents),), tuple(expected))


def _within(due: Inputs, ctx: Context) -> list[str]:
    """Names of the arrays that stay far from the end of the format, sums on their way included."""
    most = FORMATS[ctx.dtype].max / 64
    return [n for n, x in due.items() if np.all(np.abs(x) < most)]


def _far(case: Case, shape: tuple[int, ...], far: float) -> np.ndarray:
    return np.asarray(2.0 ** case.rng("far").uniform(-10.0, far, shape))


def _most(inputs: Inputs, dtype: str) -> np.ndarray:
    """sum |delta b u|, and a hundredth for rounding."""
    delta, u, b = (np.abs(reference.widen(inputs[n], dtype)) for n in ("delta", "u", "b"))
    total = np.einsum("bte,btn->ben", delta * u, b).astype(np.float64)
    return np.asarray(1.01 * total + 1e-6)


SCAN_PROPERTIES: tuple[Property, ...] = (
    *refinement("scan", *SCANS),
    Property("scan.refines@integers", EXACT, _draw_integers, refine_integers, weight=0.5),
    Property("scan.refines@shared", ("affine_scan",), _draw_shared, refine_shared, weight=0.5),
    *streaming_of("scan", *SCANS),
    chunks_of("scan.chunk_independent", *SCANS),
    initial_state_of("scan.initial_state", *STATEFUL),
    Property("scan.history", TAPPED, _draw_taps, history, takes_states),
    steps_of("scan.parallel_equals_sequential", *STATEFUL),
    batch_invariance("scan", *SCANS),
    Property("scan.padding_neutral", SKIPPING, _draw_neutral, padding_neutral),
    Property("scan.packed_reset", ("affine_scan",), _draw_two, packed_reset),
    Property(
        "scan.nonexpansive", ("affine_scan",), _draw_started, nonexpansive, needs_keyword("h0")
    ),
    Property("scan.finite", DECAYING, _draw_long, finite, weight=0.5),
)
