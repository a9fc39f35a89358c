"""Relations of everything that carries a state along a sequence: what parts of it give.

A second call cannot be given what the first returned: it is given the spec's state in the format
under test. What this differs by is known, and part of the bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from assay.impl.call import Call
from assay.properties import reference
from assay.properties.case import Case, Materials
from assay.properties.context import Context
from assay.properties.draw import SEEDS, Draw, choice
from assay.properties.experiment import Close, Distinct, Expectation, Experiment, Same, Subject
from assay.properties.property import Exclusion, Property, always, needs_keyword
from assay.properties.recipe import Inputs, without
from assay.properties.recipes import RECIPES
from assay.properties.recipes.sequences import CELLS, STREAMS, Stream
from assay.properties.refinement import drawn
from assay.spec.arithmetic import FORMATS

CHUNKS = (1, 2, 3, 4, 5, 7, 8, 16)
SHORT = 17
"""Steps of a run that is cut into chunks."""


def stream(case: Case) -> Stream:
    """Where time and state are."""
    return STREAMS[case.op]


def call(case: Case, inputs: Inputs) -> Call:
    """The call of the case's op on these inputs."""
    return RECIPES[case.op].call(case, inputs)


def along(start: int, stop: int) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """The part of an output that stands at these steps."""
    return ((1, tuple(range(start, stop))),)


@dataclass(frozen=True)
class Run:
    """Inputs, what they give, and the bounds of that."""

    inputs: Inputs
    values: Inputs
    bounds: Inputs

    def apart(self, other: Run, name: str, **where: tuple[Any, ...]) -> np.ndarray:
        """By how much two runs may differ in an output, of which ``here`` and ``there`` are the
        parts in question: by the bounds of both, and by what is due.
        """
        here, there = where.get("here", ()), where.get("there", ())
        due = np.abs(self.values[name][here] - other.values[name][there])
        return np.asarray(self.bounds[name][here] + other.bounds[name][there] + due)


def run(case: Case, ctx: Context, inputs: Inputs) -> Run:
    """What the spec says of the case's op on these inputs."""
    values = reference.values(ctx, inputs, case.attributes)
    return Run(inputs, values, reference.bounds(ctx, inputs, case.attributes))


def whole(case: Case) -> Case:
    """The case read forwards, each row to its end."""
    attributes = {n: v for n, v in case.attributes.items() if n != "reverse"}
    return without(replace(case, attributes=attributes), "lengths")


def part(case: Case, inputs: Inputs, start: int, stop: int) -> Inputs:
    """The inputs at these steps."""
    timed = stream(case).timed
    return {n: x[:, start:stop] if n in timed else x for n, x in inputs.items()}


def continued(case: Case, ctx: Context, inputs: Inputs) -> Inputs:
    """The state after these inputs, in the format under test; the largest number where it is
    beyond.
    """
    values, s = reference.values(ctx, inputs, case.attributes), stream(case)
    last = {n: values[o][:, -1] if o == s.out else values[o] for n, o in s.states.items()}
    most = FORMATS[ctx.dtype].max
    return {n: np.clip(x, -most, most).astype(ctx.numpy_dtype) for n, x in last.items()}


def parts(
    case: Case, ctx: Context, inputs: Inputs, ends: list[int]
) -> Iterator[tuple[int, int, Inputs]]:
    """Start, end and inputs of each part, which goes on from the state after the one before."""
    state: Inputs = {}
    for start, stop in pairwise(ends):
        given = {**part(case, inputs, start, stop), **state}
        yield start, stop, given
        if stop != ends[-1]:
            state = continued(case, ctx, given)


def in_parts(case: Case, ctx: Context, inputs: Inputs, ends: list[int]) -> Experiment:
    """The whole run, and its parts: the same outputs and, in the end, the same state."""
    s, full = stream(case), run(case, ctx, inputs)
    calls, expected = [call(case, inputs)], list[Expectation]()
    finals = [o for o in s.states.values() if o != s.out]
    for start, stop, given in parts(case, ctx, inputs, ends):
        index, piece = len(calls), run(case, ctx, given)
        calls.append(call(case, given))
        at = (slice(None), slice(start, stop))
        apart = piece.apart(full, s.out, there=at)
        there = Subject(0, s.out, take=along(start, stop))
        expected.append(Same(Subject(index, s.out), there, apart))
        for o in finals:
            state = Subject(index, o)
            if stop == ends[-1]:
                expected.append(Same(state, Subject(0, o), piece.apart(full, o)))
            else:
                expected.append(Close(state, piece.values[o], piece.bounds[o]))
    return Experiment(tuple(calls), tuple(expected))


def _draw_cut(draw: Draw, ctx: Context) -> Case:
    """Two steps or more, and a place between them."""
    case = whole(drawn(draw, ctx))
    dims = {**case.dims, "T": max(case.dims["T"], 2)}
    return replace(case, dims=dims, extra={**case.extra, "cut": draw(SEEDS)})


def cut_of(case: Case) -> int:
    """The place where the case is cut: 1 .. T - 1."""
    return int(1 + case.extra["cut"] % (case.dims["T"] - 1))


def streaming(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Two parts, the second from the state after the first, give what the whole run gives."""
    inputs = RECIPES[case.op].inputs(case, made)
    return in_parts(case, ctx, inputs, [0, cut_of(case), case.dims["T"]])


def prefix(case: Case, ctx: Context, made: Materials) -> Experiment:
    """The first steps give alone what they give with others after them, whatever those are."""
    inputs, s, cut = RECIPES[case.op].inputs(case, made), stream(case), cut_of(case)
    changed = dict(inputs)
    for name in s.timed:
        rates = name in RECIPES[case.op].special
        later = made.values(f"{name}_later", inputs[name].shape, "normal" if rates else "wide")
        changed[name] = np.concatenate([inputs[name][:, :cut], np.abs(later)[:, cut:]], axis=1)
    bound = 2.0 * reference.bounds(ctx, inputs, case.attributes)[s.out][:, :cut]
    runs = (part(case, inputs, 0, cut), inputs, changed)
    expected = tuple(
        Same(Subject(i, s.out, take=along(0, cut)), Subject(0, s.out), bound) for i in (1, 2)
    )
    return Experiment(tuple(call(case, x) for x in runs), expected)


def _draw_chunks(draw: Draw, ctx: Context) -> Case:
    case = _draw_cut(draw, ctx)
    dims = {**case.dims, "T": min(case.dims["T"], SHORT)}
    extra = {**case.extra, "chunk": draw(choice(*CHUNKS))}
    return replace(case, dims=dims, extra=extra)


def _draw_steps(draw: Draw, ctx: Context) -> Case:
    case = _draw_chunks(draw, ctx)
    return replace(case, extra={**case.extra, "chunk": 1})


def _beside(pieces: list[Inputs], case: Case) -> Inputs:
    """Pieces as rows of one batch: row b of each, then row b + 1 of each. A state that the first
    is without is zeros.
    """
    batched = RECIPES[case.op].batched
    first, last = pieces[0], pieces[-1]
    rows = {}
    for name, x in last.items():
        if name not in batched:
            rows[name] = x
            continue
        each = [p.get(name, np.zeros_like(x)) for p in (first, *pieces[1:])]
        rows[name] = np.stack(each, axis=1).reshape(len(each) * len(x), *x.shape[1:])
    return rows


def chunks(case: Case, ctx: Context, made: Materials) -> Experiment:
    """Chunks of one length, as rows of a batch of their own, give what the whole run gives; the
    last may be shorter.
    """
    inputs, s = RECIPES[case.op].inputs(case, made), stream(case)
    steps, size = case.dims["T"], case.extra["chunk"]
    ends = [*range(0, steps, size), steps]
    pieces = list(parts(case, ctx, inputs, ends))
    level = [p for p in pieces if p[1] - p[0] == size]
    groups = [level, [p for p in pieces if p[1] - p[0] != size]]
    full, calls = run(case, ctx, inputs), [call(case, inputs)]
    expected: list[Expectation] = []
    for group in filter(None, groups):
        rows = run(case, ctx, _beside([given for _, _, given in group], case))
        index, many = len(calls), len(group)
        calls.append(call(case, rows.inputs))
        for k, (start, stop, _) in enumerate(group):
            mine, at = slice(k, None, many), (slice(None), slice(start, stop))
            apart = rows.apart(full, s.out, here=(mine,), there=at)
            taken = tuple(range(k, case.dims["B"] * many, many))
            chunk = Subject(index, s.out, take=((0, taken),))
            expected.append(Same(chunk, Subject(0, s.out, take=along(start, stop)), apart))
        expected += [
            Close(Subject(index, o), rows.values[o], rows.bounds[o]) for o in s.states.values()
        ]
    return Experiment(tuple(calls), tuple(expected))


def _started(case: Case, made: Materials) -> Inputs:
    shapes = RECIPES[case.op].shapes(case)
    return {n: made.values(f"{n}_given", shapes[n], "normal") for n in stream(case).states}


def initial_state(case: Case, ctx: Context, made: Materials) -> Experiment:
    """None is zeros; one that is given is used."""
    states = _started(case, made)
    inputs = RECIPES[case.op].inputs(without(case, *states), made)
    zeros = {n: np.zeros_like(x) for n, x in states.items()}
    none, given = run(case, ctx, inputs), run(case, ctx, {**inputs, **states})
    expected: list[Expectation] = []
    for o in ctx.op.outputs:
        expected.append(Same(Subject(1, o), Subject(0, o), 2.0 * none.bounds[o]))
        expected.append(Close(Subject(2, o), given.values[o], given.bounds[o]))
        apart = np.abs(given.values[o] - none.values[o])
        if np.any(apart > given.bounds[o] + none.bounds[o]):
            expected.append(Distinct(Subject(2, o), Subject(0, o)))
    runs = (inputs, {**inputs, **zeros}, given.inputs)
    return Experiment(tuple(call(case, x) for x in runs), tuple(expected))


def takes_states(ctx: Context) -> Exclusion | None:
    """Excluded unless every part of a state can be given."""
    return needs_keyword(*STREAMS[ctx.op.name].states)(ctx)


Draws = Callable[[Draw, Context], Case]


def _relation(
    name: str, ops: tuple[str, ...], draw: Draws, build: Callable[..., Experiment]
) -> Property:
    weight = 0.5 if ops == CELLS else 1.0
    return Property(name, ops, draw, build, takes_states, weight=weight)


def streaming_of(family: str, *ops: str) -> tuple[Property, ...]:
    """The properties of a state that is carried on, and of what comes later."""
    return (
        _relation(f"{family}.streaming", ops, _draw_cut, streaming),
        replace(_relation(f"{family}.prefix", ops, _draw_cut, prefix), excluded=always),
    )


def chunks_of(name: str, *ops: str) -> Property:
    """The property that every chunk size gives the same."""
    return _relation(name, ops, _draw_chunks, chunks)


def steps_of(name: str, *ops: str) -> Property:
    """The property that a run gives what its steps give one by one."""
    return _relation(name, ops, _draw_steps, chunks)


def initial_state_of(name: str, *ops: str) -> Property:
    """The property that a state enters the first step."""

    def draw(source: Draw, ctx: Context) -> Case:
        return whole(drawn(source, ctx))

    return _relation(name, ops, draw, initial_state)
