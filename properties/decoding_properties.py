"""Properties of decoding with a whole model: logits do not depend on what is kept in a cache."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from assay.properties import reference
from assay.properties.case import Case, Materials
from assay.properties.context import Context
from assay.properties.draw import SEEDS, Draw, choice
from assay.properties.experiment import Close, Experiment, Finite, Same, Subject
from assay.properties.model_properties import in_float64
from assay.properties.property import Property, all_of, needs_keyword
from assay.properties.recipe import Inputs
from assay.properties.recipes import RECIPES
from assay.properties.recipes.caches import stream_length
from assay.properties.recipes.model_sessions import session
from assay.spec.decoding import steps
from assay.spec.ops.model_decoding import replayed

OPS = ("gpt_decode",)
OUT = Subject(0, "out")
SPARE = 3


def _drawn(*actions: str, padded: bool = True) -> Callable[[Draw, Context], Case]:
    """Cases whose script has these actions only."""

    def draw(draw: Draw, ctx: Context) -> Case:
        dims, attributes = session(draw, ctx, actions, padded=padded)
        kept = {n: v for n, v in attributes.items() if ctx.takes(n)}
        return replace(RECIPES[OPS[0]].draw(draw, ctx), dims=dims, attributes=kept)

    return draw


def _logits(case: Case, ctx: Context, inputs: Inputs) -> Close:
    """What the model gives on the whole past of each row."""
    wide = {n: reference.widen(x, case.dtype) for n, x in inputs.items()}
    bound = reference.bounds(ctx, inputs, case.attributes)["out"]
    return Close(OUT, replayed(wide, case.attributes), bound)


def decode_equals_full(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Every chunk gets the logits of one run over all that the row was given before."""
    inputs = RECIPES[case.op].inputs(case, made)
    call = RECIPES[case.op].call(case, inputs)
    return Experiment((call,), (_logits(case, ctx, inputs),))


def capacity(case: Case, ctx: Context, made: Materials) -> Experiment:
    """A chunk beyond the context is refused, and decoding goes on as if it had not come."""
    inputs = RECIPES[case.op].inputs(case, made)
    want = reference.values(ctx, inputs, case.attributes)
    exact = [Close(Subject(0, n), want[n], np.zeros(want[n].shape)) for n in ("refused", "lengths")]
    call = RECIPES[case.op].call(case, inputs)
    return Experiment((call,), (*exact, _logits(case, ctx, inputs)))


def _draw_split(draw: Draw, ctx: Context) -> Case:
    """One stream, cut in two ways."""
    case = _drawn("append")(draw, ctx)
    left, cuts = case.dims["T"], []
    while left:
        count = min(draw(choice(1, 2, 3, 5)), left)
        cuts.append(f"append {count}")
        left -= count
    return replace(case, extra={**case.extra, "other_script": cuts})


def chunk_split(case: Case, ctx: Context, made: Materials) -> Experiment:
    """The logits do not depend on where the stream is cut."""
    inputs = RECIPES[case.op].inputs(case, made)
    script = tuple(case.extra["other_script"])
    other = replace(case, attributes={**case.attributes, "script": script})
    calls = tuple(RECIPES[case.op].call(c, inputs) for c in (case, other))
    bound = reference.bounds(ctx, inputs, case.attributes)["out"]
    return Experiment(calls, (Same(Subject(1, "out"), OUT, 2.0 * bound),))


def _draw_reset(draw: Draw, ctx: Context) -> Case:
    """With room to spare: whether all of it is free again is asked by ``capacity``."""
    case = _drawn("append", "append", "reorder", "reset")(draw, ctx)
    fields = json.loads(case.attributes["config"])
    roomy = json.dumps({**fields, "context": fields["context"] + SPARE})
    return replace(case, attributes={**case.attributes, "config": roomy})


def reset(case: Case, ctx: Context, made: Materials) -> Experiment:
    """After a reset the logits are those of a new session."""
    inputs, script = RECIPES[case.op].inputs(case, made), case.attributes["script"]
    every = steps(script, case.dims["T"])
    last = max((i for i, step in enumerate(every) if step.action == "reset"), default=None)
    first = RECIPES[case.op].call(case, inputs)
    if last is None or last == len(every) - 1:
        return Experiment((first,), (_logits(case, ctx, inputs),))
    start = every[last].start
    tail = {**inputs, "ids": inputs["ids"][:, start:]}
    again = replace(case, attributes={**case.attributes, "script": script[last + 1 :]})
    bound = reference.bounds(ctx, tail, again.attributes)["out"]
    left = Subject(0, "out", take=((1, tuple(range(start, case.dims["T"]))),))
    calls = (first, RECIPES[case.op].call(again, tail))
    return Experiment(calls, (Same(left, Subject(1, "out"), 2.0 * bound),))


def _draw_beams(draw: Draw, ctx: Context) -> Case:
    """A token at a time, and between them rows that go on with the past of others."""
    case = _drawn("append", "reorder")(draw, ctx)
    fields, rows = json.loads(case.attributes["config"]), range(case.dims["B"])
    fields |= {n: max(fields[n], 2) for n in ("vocabulary", "context")}
    script = ["append 1"]
    for _ in range(min(draw(choice(1, 2, 3)), fields["context"] - 1)):
        order = " ".join(str(draw(choice(*rows))) for _ in rows)
        script += [f"reorder {order}", "append 1"]
    attributes = {"config": json.dumps(fields), "script": tuple(script)}
    dims = {**case.dims, "T": stream_length(tuple(script))}
    return replace(case, dims=dims, attributes={**case.attributes, **attributes})


def _draw_padded(draw: Draw, ctx: Context) -> Case:
    """Appended chunks, of which the first are padding in some rows; the last token is real."""
    case = _drawn("append", padded=False)(draw, ctx)
    most = case.dims["T"]
    pads = tuple(min(draw(choice(1, 0, 2, 3, 5)), most - 1) for _ in range(case.dims["B"]))
    case = replace(case, attributes={**case.attributes, "pads": pads})
    return replace(case, extra={**case.extra, "row": draw(SEEDS)})


def left_pad(case: Case, ctx: Context, made: Materials) -> Experiment:
    """The real tokens of a padded prompt get the logits that they get alone, and padding gives
    numbers.
    """
    inputs, pads = RECIPES[case.op].inputs(case, made), case.attributes["pads"]
    row = case.extra["row"] % case.dims["B"]
    real = tuple(range(pads[row], case.dims["T"]))
    alone = {**inputs, "ids": inputs["ids"][row : row + 1, pads[row] :]}
    attributes = {"config": case.attributes["config"], "script": (f"append {len(real)}",)}
    bound = reference.bounds(ctx, alone, attributes)["out"]
    calls = (
        RECIPES[case.op].call(case, inputs),
        RECIPES[case.op].call(replace(case, attributes=attributes), alone),
    )
    padded = Subject(0, "out", take=((0, (row,)), (1, real)))
    return Experiment(calls, (Same(padded, Subject(1, "out"), 2.0 * bound), Finite(OUT)))


_KEPT = ("append", "append", "overflow", "reorder", "reset")

DECODING_PROPERTIES: tuple[Property, ...] = (
    Property("cache.decode_equals_full@model", OPS, _drawn(*_KEPT), decode_equals_full, in_float64),
    Property("cache.chunk_split@model", OPS, _draw_split, chunk_split, in_float64, weight=0.5),
    Property(
        "cache.capacity@model",
        OPS,
        _drawn("append", "append", "reset", "overflow"),
        capacity,
        in_float64,
        weight=0.5,
    ),
    Property(
        "cache.reorder@model",
        OPS,
        _draw_beams,
        decode_equals_full,
        in_float64,
        weight=0.5,
    ),
    Property(
        "cache.reset@model",
        OPS,
        _draw_reset,
        reset,
        in_float64,
        weight=0.5,
    ),
    Property(
        "cache.left_pad@model",
        OPS,
        _draw_padded,
        left_pad,
        all_of(in_float64, needs_keyword("pads")),
        weight=0.5,
    ),
)
