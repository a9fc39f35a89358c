"""Properties of decoding with a key/value cache: whatever the script, the state is what it says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from assay.properties import reference
from assay.properties.case import Case, Materials
from assay.properties.context import Context
from assay.properties.draw import SEEDS, Draw, choice
from assay.properties.experiment import Close, Expectation, Experiment, Finite, Same, Subject
from assay.properties.property import Property, needs_keyword
from assay.properties.recipe import Inputs
from assay.properties.recipes import RECIPES
from assay.properties.recipes.caches import CHUNKS, session
from assay.spec.decoding import Step, recompute, steps

OPS = ("kv_cache",)
OUT = Subject(0, "out")
HELD = ("keys", "values")
STREAM = {"keys": "k", "values": "v"}
Takes = tuple[tuple[int, tuple[int, ...]], ...]


def _drawn(*actions: str, **how: bool) -> Callable[[Draw, Context], Case]:
    """Cases whose script has these actions only."""

    def draw(draw: Draw, ctx: Context) -> Case:
        dims, attributes = session(draw, ctx, actions, **how)
        case = RECIPES[OPS[0]].draw(draw, ctx)
        defaults = {a.name: a.default for a in ctx.op.attributes}
        kept = {n: v for n, v in attributes.items() if v != defaults[n]}
        return replace(case, dims=dims, attributes=kept)

    return draw


_draw_any = RECIPES[OPS[0]].draw


def _slots(*takes: tuple[int, Any]) -> Takes:
    return tuple((axis, tuple(int(i) for i in np.atleast_1d(places))) for axis, places in takes)


def _steps(case: Case) -> tuple[Step, ...]:
    return steps(case.attributes.get("script", ()), case.dims["T"])


def _inputs(case: Case, made: Materials) -> Inputs:
    return RECIPES[case.op].inputs(case, made)


def _one(case: Case, inputs: Inputs, *expected: Expectation, weaker: str = "") -> Experiment:
    return Experiment((RECIPES[case.op].call(case, inputs),), expected, weaker)


def _exactly(ctx: Context, case: Case, inputs: Inputs, *names: str) -> list[Expectation]:
    """These outputs to the bit."""
    want = reference.values(ctx, inputs, case.attributes)
    return [Close(Subject(0, n), want[n], np.zeros(want[n].shape)) for n in names]


def _outputs(ctx: Context, case: Case, inputs: Inputs) -> Close:
    """The outputs that attention over the whole past of each row gives."""
    wide: dict[str, Any] = {n: reference.widen(x, case.dtype) for n, x in inputs.items()}
    bound = reference.bounds(ctx, inputs, case.attributes)["out"]
    return Close(OUT, recompute(**wide, **case.attributes), bound)


def decode_equals_full(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Every chunk as in one causal run over all that the row was given before."""
    inputs = _inputs(case, made)
    return _one(case, inputs, _outputs(ctx, case, inputs))


def rolling_window(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Attention over the last tokens that fit, which alone are held, in their order."""
    inputs = _inputs(case, made)
    held = _exactly(ctx, case, inputs, *HELD)
    return _one(case, inputs, _outputs(ctx, case, inputs), *held)


def _draw_split(draw: Draw, ctx: Context) -> Case:
    """One stream, cut in two ways."""
    case = _drawn("append", padded=True)(draw, ctx)
    left, cuts = case.dims["T"], []
    while left:
        count = min(draw(choice(*CHUNKS)), left)
        cuts.append(f"append {count}")
        left -= count
    return replace(case, extra={**case.extra, "other_script": cuts})


def chunk_split(case: Case, ctx: Context, made: Materials) -> Experiment:
    """The outputs do not depend on where the stream is cut."""
    inputs = _inputs(case, made)
    script = tuple(case.extra["other_script"])
    other = replace(case, attributes={**case.attributes, "script": script})
    calls = tuple(RECIPES[case.op].call(c, inputs) for c in (case, other))
    bound = reference.bounds(ctx, inputs, case.attributes)["out"]
    return Experiment(calls, (Same(Subject(1, "out"), OUT, 2.0 * bound),))


def earlier_slots_kept(case: Case, ctx: Context, made: Materials) -> Experiment:
    """What was held before a chunk is held after it, bit for bit."""
    inputs, expected = _inputs(case, made), []
    lengths = reference.values(ctx, inputs, case.attributes)["lengths"]
    for index, step in enumerate(_steps(case)):
        if index and step.tokens and lengths[index - 1]:
            old = np.arange(lengths[index - 1])
            expected += [
                Same(
                    Subject(0, n, take=_slots((0, index), (4, old))),
                    Subject(0, n, take=_slots((0, index - 1), (4, old))),
                )
                for n in HELD
            ]
    return _one(case, inputs, *expected)


def append_last(case: Case, ctx: Context, made: Materials) -> Experiment:
    """The newest slots hold the chunk, bit for bit; keys as keys and values as values."""
    inputs, expected = _inputs(case, made), []
    lengths = reference.values(ctx, inputs, case.attributes)["lengths"]
    for index, step in enumerate(_steps(case)):
        if step.action != "append":
            continue
        slots = lengths[index] - step.tokens + np.arange(step.tokens)
        for name in HELD:
            x = reference.widen(inputs[STREAM[name]], case.dtype)
            new = x[None, :, :, :, step.start : step.start + step.tokens]
            place = Subject(0, name, take=_slots((0, index), (4, slots)))
            expected.append(Close(place, new, np.zeros(new.shape)))
    return _one(case, inputs, *expected)


def length_once(case: Case, ctx: Context, made: Materials) -> Experiment:
    """The length after each step, for any number of layers."""
    inputs = _inputs(case, made)
    return _one(case, inputs, *_exactly(ctx, case, inputs, "lengths"))


def positions(case: Case, ctx: Context, made: Materials) -> Experiment:
    """The position of each token, as a model would embed it."""
    inputs = _inputs(case, made)
    return _one(case, inputs, *_exactly(ctx, case, inputs, "positions"))


def capacity(case: Case, ctx: Context, made: Materials) -> Experiment:
    """A chunk that does not fit is refused, whatever was held is held, and decoding goes on."""
    inputs = _inputs(case, made)
    expected = _exactly(ctx, case, inputs, "refused", "lengths")
    for index, step in enumerate(_steps(case)):
        if index and step.action == "overflow":
            expected += [
                Same(
                    Subject(0, n, take=_slots((0, index))),
                    Subject(0, n, take=_slots((0, index - 1))),
                )
                for n in HELD
            ]
    return _one(case, inputs, *expected, _outputs(ctx, case, inputs))


def reorder(case: Case, ctx: Context, made: Materials) -> Experiment:
    """The past of each row, in every layer, is that of the row it goes on from."""
    inputs = _inputs(case, made)
    expected: list[Expectation] = []
    for index, step in enumerate(_steps(case)):
        if index and step.action == "reorder":
            expected += [
                Same(
                    Subject(0, n, take=_slots((0, index))),
                    Subject(0, n, take=_slots((0, index - 1), (2, step.numbers))),
                )
                for n in HELD
            ]
    return _one(case, inputs, *expected, _outputs(ctx, case, inputs))


def reset(case: Case, ctx: Context, made: Materials) -> Experiment:
    """After a reset the outputs are those of a new session, to the bit where the contract declares
    determinism.
    """
    inputs, every = _inputs(case, made), _steps(case)
    last = max((i for i, step in enumerate(every) if step.action == "reset"), default=None)
    if last is None or last == len(every) - 1:
        return _one(case, inputs)
    start = every[last].start
    tail = {n: x[:, :, :, start:] for n, x in inputs.items()}
    script = case.attributes["script"][last + 1 :]
    again = replace(case, attributes={**case.attributes, "script": script})
    bitwise = ctx.contract.deterministic
    bounds = reference.bounds(ctx, tail, again.attributes)
    left, newest = tuple(range(start, case.dims["T"])), tuple(range(last + 1, len(every)))
    axes = {"out": (3, left), "positions": (1, left)}
    expected = [
        Same(
            Subject(0, n, take=(axes.get(n, (0, newest)),)),
            Subject(1, n),
            None if bitwise else 2.0 * bounds[n],
        )
        for n in ctx.op.outputs
    ]
    calls = (RECIPES[case.op].call(case, inputs), RECIPES[case.op].call(again, tail))
    weaker = "" if bitwise else "contract declares deterministic=False"
    return Experiment(calls, tuple(expected), weaker)


def _draw_padded(draw: Draw, ctx: Context) -> Case:
    """Appended chunks, of which the first are padding in some rows; the last token is real."""
    case = _drawn("append", padded=False)(draw, ctx)
    most = case.dims["T"]
    pads = tuple(min(draw(choice(1, 0, 2, 3, 5, 8)), most - 1) for _ in range(case.dims["B"]))
    if any(pads):
        case = replace(case, attributes={**case.attributes, "pads": pads})
    return replace(case, extra={**case.extra, "row": draw(SEEDS)})


def left_pad(case: Case, ctx: Context, made: Materials) -> Experiment:
    """The real tokens of a padded row get what they get alone, and padding gives numbers."""
    inputs, rows = _inputs(case, made), case.dims["B"]
    row, pads = case.extra["row"] % rows, case.attributes.get("pads", (0,) * rows)
    real = tuple(range(pads[row], case.dims["T"]))
    alone = {n: x[:, row : row + 1, :, pads[row] :] for n, x in inputs.items()}
    attributes = {"script": (f"append {len(real)}",), "capacity": len(real)}
    bound = reference.bounds(ctx, alone, attributes)["out"]
    calls = (
        RECIPES[case.op].call(case, inputs),
        RECIPES[case.op].call(replace(case, attributes=attributes), alone),
    )
    padded = Subject(0, "out", take=((1, (row,)), (3, real)))
    return Experiment(calls, (Same(padded, Subject(1, "out"), 2.0 * bound), Finite(OUT)))


_KEPT = ("append", "append", "overflow", "reorder", "reset")

CACHE_PROPERTIES: tuple[Property, ...] = (
    Property(
        "cache.decode_equals_full",
        OPS,
        _drawn(*_KEPT),
        decode_equals_full,
        weight=2.0,
        every_dtype=True,
    ),
    Property("cache.chunk_split", OPS, _draw_split, chunk_split, every_dtype=True),
    Property("cache.earlier_slots_kept", OPS, _drawn(*_KEPT), earlier_slots_kept),
    Property("cache.append_last", OPS, _drawn(*_KEPT), append_last),
    Property("cache.length_once", OPS, _draw_any, length_once, weight=0.5),
    Property("cache.position", OPS, _draw_any, positions, weight=0.5),
    Property("cache.capacity", OPS, _drawn("append", "append", "reset", "overflow"), capacity),
    Property("cache.reorder", OPS, _drawn("append", "overflow", "reorder"), reorder),
    Property("cache.left_pad", OPS, _draw_padded, left_pad, needs_keyword("pads")),
    Property(
        "cache.rolling_window",
        OPS,
        _drawn("append", "append", "reorder", "reset", rolling=True),
        rolling_window,
        needs_keyword("rolling"),
        every_dtype=True,
    ),
    Property("cache.reset", OPS, _drawn("append", "append", "reorder", "reset"), reset),
)
