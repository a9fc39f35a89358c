"""Recurrent layers over time: rows of any length with an arbitrary cell, and each of the cells."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import z3

from assay.proofs.mutants import mutant
from assay.proofs.obligation import Body, Case, Obligation, Premise, Query, Step, Twin
from assay.proofs.scalars.courses import COURSE, INPUT, NEXT, STATE, Inputs, inputs, step
from assay.proofs.theorems.scan_blocks import same, unknowns
from assay.proofs.theorems.scan_runs import Split
from assay.spec.recurrent.bidirectional import bidirectional
from assay.spec.recurrent.gru import gru
from assay.spec.recurrent.lengths import reversed_rows
from assay.spec.recurrent.lstm import lstm
from assay.spec.recurrent.rnn import rnn
from assay.spec.recurrent.sequence import arranged, history, outputs_of

Layer = Callable[..., Any]
Given = dict[str, np.ndarray]
J = z3.Int("j")


class ArbitraryCell:
    """A cell of which nothing is known; it reads one input, or all of a stretch."""

    def read(self, state: Any, x: np.ndarray) -> Any:
        """The state after the step, which is all that it computes."""
        return tuple(self._each(h, x) for h in state)

    def after(self, reading: Any) -> Any:
        """The same."""
        return reading

    def _each(self, h: np.ndarray, x: np.ndarray) -> np.ndarray:
        result = np.empty(h.shape, dtype=object)
        for i in np.ndindex(*h.shape):
            given = x[i] if isinstance(x[i], Inputs) or z3.is_expr(x[i]) else BLANK
            result[i], _ = step(h[i], given)
        return result


BLANK = z3.Const("blank", INPUT)
"""What stands beyond the end of a row."""


def _row(*elements: Any) -> np.ndarray:
    """[1, T, 1]."""
    result = np.empty((1, len(elements), 1), dtype=object)
    result[0, :, 0] = elements
    return result


def _start(name: str = "h") -> np.ndarray:
    """[1, 1]."""
    result = np.empty((1, 1), dtype=object)
    result[0, 0] = z3.Const(name, STATE)
    return result


def _states(cell_run: Layer, x: np.ndarray, start: np.ndarray, lengths: Any = None) -> list[Any]:
    """The states before the first element of a row and after each."""
    steps = arranged(x, None if lengths is None else np.array([lengths]), False)
    (h,) = cell_run(ArbitraryCell(), (start,), steps)
    return list(h[:, 0, 0])


def streaming() -> Iterator[Step]:
    """A row of any length, from the state after another, is the second part of a row of both."""
    start = _start()
    split = Split(start[0, 0])
    steps = list(split.lemmas())
    yield from (s for s in steps if isinstance(s, Query))
    lemmas = [s for s in steps if isinstance(s, Premise)]
    _, middle = _states(history, _row(split.first), start)
    _, end = _states(history, _row(split.second), np.full((1, 1), middle, dtype=object))
    _, last = _states(history, _row(split.whole), start)
    yield split.query("the state", end == last, lemmas)
    both = _states(history, _row(split.first, split.second), start)
    yield Case("in one loop", all(a.eq(b) for a, b in zip(both[1:], (middle, end), strict=True)))


def prefix() -> Iterator[Step]:
    """The states after the inputs of A are the same, whatever is appended to it."""
    start = _start()
    split = Split(start[0, 0])
    steps = list(split.lemmas())
    yield from (s for s in steps if isinstance(s, Query))
    lemmas = [s for s in steps if isinstance(s, Premise)]
    alone, whole = (_states(history, _row(x), start)[-1] for x in (split.first, split.whole))
    named = (split.before.at(split.n), split.together.at(split.whole.axis.length))
    yield Case("these are the states", alone.eq(named[0]) and whole.eq(named[1]))
    goal = z3.Implies(split.n >= J, split.together.at(J) == split.before.at(J))
    yield split.query("the state after j inputs", goal, lemmas)


def prefix_of(arrange: Layer) -> Iterator[Query]:
    """One input, alone and before another, for a given order of reading."""
    x, y, start = z3.Const("x", INPUT), z3.Const("y", INPUT), _start()
    both = _states(history, arrange(_row(x, y)), start)
    yield Query("the first state", both[1] == _states(history, _row(x), start)[1])


def streaming_of(onward: Callable[[Any, Any], Any]) -> Iterator[Query]:
    """Two inputs, the second run from a state that is chosen from the first and the last one."""
    x, y, start = z3.Const("x", INPUT), z3.Const("y", INPUT), _start()
    _, middle = _states(history, _row(x), start)
    given = np.full((1, 1), onward(start[0, 0], middle), dtype=object)
    later = _states(history, _row(y), given)[-1]
    yield Query("two inputs", later == _states(history, _row(x, y), start)[-1])


def padded(cell_run: Layer) -> Iterator[Step]:
    """A row of any length, before padding of any length, ends in its own last state."""
    row, padding, start = inputs("A"), inputs("P"), _start()
    alone = _states(history, _row(row), start)
    for behind in ((padding,), (padding, z3.Const("y", INPUT)), ()):
        x = _row(row, *behind)
        states = _states(cell_run, x, start, 1)
        for t, state in enumerate(states):
            yield Query(f"state {t} before {len(behind)}", state == alone[min(t, 1)])
        steps = arranged(x, np.array([1]), False)
        shown = outputs_of(np.array(states, dtype=object).reshape(-1, 1, 1), steps)[:, 0, 0]
        blank = [str(v) for v in shown[1:]] == ["0"] * len(behind)
        yield Case(f"outputs before {len(behind)}", blank)


def padded_of(cell_run: Layer) -> Iterator[Step]:
    """One input and one of padding."""
    x, y, start = z3.Const("x", INPUT), z3.Const("y", INPUT), _start()
    states = _states(cell_run, _row(x, y), start, 1)
    yield Query("one input", states[-1] == NEXT(start[0, 0], x))


def _cell(batch: int, steps: int, gates: int, **states: tuple[int, ...]) -> Given:
    """Inputs of width 1, a state of width 2."""
    lead = (gates,) if gates else ()
    shapes: Mapping[str, tuple[int, ...]] = {
        "x": (batch, steps, 1), "weight": (*lead, 2, 3), "bias": (*lead, 2), **states,
    }  # fmt: skip
    return {k: unknowns(k, *shape) for k, shape in shapes.items()}


def _rnn(batch: int, steps: int) -> Given:
    return _cell(batch, steps, 0, h0=(batch, 2))


def _lstm(batch: int, steps: int) -> Given:
    return _cell(batch, steps, 4, h0=(batch, 2), c0=(batch, 2))


def _gru(batch: int, steps: int) -> Given:
    return _cell(batch, steps, 3, hidden_bias=(2,), h0=(batch, 2))


CELLS: tuple[tuple[str, Layer, Callable[[int, int], Given]], ...] = (
    ("rnn", rnn, _rnn),
    ("lstm", lstm, _lstm),
    ("gru", gru, _gru),
    ("gru, reset after", partial(gru, reset_after=True), _gru),
)
STATEFUL = ("x", "h0", "c0")


def _rows(given: Given, rows: Any, steps: slice = slice(None)) -> Given:
    """Some rows, and of their inputs some steps."""
    one = {k: v[rows] if k in STATEFUL else v for k, v in given.items()}
    return {**one, "x": one["x"][:, steps]}


def layers_stream(cells: Any, kept: tuple[str, ...]) -> Iterator[Step]:
    """Two steps are one step and, from its whole state, another; ``kept`` are the parts handed
    on.
    """
    for (name, layer, make), (first, second) in itertools.product(cells, ((0, 1), (1, 1), (2, 1))):
        given = make(1, first + second)
        whole = layer(**given)
        early = layer(**_rows(given, slice(None), slice(first)))
        parts = zip(whole._fields[1:], early[1:], strict=True)
        state = {f"{part}0": value for part, value in parts if part in kept}
        late = layer(**{**_rows(given, slice(None), slice(first, None)), **state})
        label = f"{name}, {first} and {second} steps"
        outputs = np.concatenate([early.outputs, late.outputs], axis=1)
        yield same(f"{label}: outputs", outputs, whole.outputs)
        for part, got, want in zip(whole._fields[1:], late[1:], whole[1:], strict=True):
            yield same(f"{label}: {part}", got, want)


def batches(cells: Any, pick: Callable[[int], int]) -> Iterator[Step]:
    """Row b of a batch of three is that row alone; ``pick`` says which row is compared."""
    for name, layer, make in cells:
        given = make(3, 2)
        whole = layer(**given)
        for b in range(3):
            alone = layer(**_rows(given, slice(b, b + 1)))
            for part, got, want in zip(whole._fields, alone, whole, strict=True):
                at = pick(b)
                yield same(f"{name}, row {b}: {part}", got, want[at : at + 1])


def ends(cells: Any, short: int = 0) -> Iterator[Step]:
    """A row that ends early is that row alone: outputs up to its end, then zeros, and its state.

    ``short`` is subtracted from the lengths of the rows that are run alone.
    """
    for (name, layer, make), length in itertools.product(cells, range(3)):
        given = make(2, 2)
        lengths = np.array([length, 2])
        whole = layer(**given, lengths=lengths)
        alone = layer(**_rows(given, slice(1), slice(max(length - short, 0))))
        label = f"{name}, {length} of 2 steps"
        for part, got, want in zip(whole._fields[1:], alone[1:], whole[1:], strict=True):
            yield same(f"{label}: {part}", got, want[:1])
        shown = whole.outputs[:1, : alone.outputs.shape[1]]
        yield same(f"{label}: outputs", shown, alone.outputs)
        beyond = whole.outputs[0, length:].ravel().tolist()
        yield Case(f"{label}: zeros beyond", all(v == 0 for v in beyond))


def unread(cells: Any, visible: int = 0) -> Iterator[Step]:
    """What stands beyond the end of a row changes nothing; ``visible`` steps of it are within the
    lengths.
    """
    for (name, layer, make), length in itertools.product(cells, range(2)):
        given = make(2, 2)
        lengths = np.array([length + visible, 2])
        other = given["x"].copy()
        other[0, length:] = unknowns("other", 2 - length, 1)
        changed = layer(**{**given, "x": other}, lengths=lengths)
        whole = layer(**given, lengths=lengths)
        for part, got, want in zip(whole._fields, changed, whole, strict=True):
            yield same(f"{name}, {length} of 2 steps: {part}", got, want)


def empty(cells: Any, least: int = 0) -> Iterator[Step]:
    """No steps: no outputs, and the very state that was given."""
    for (name, layer, make), batch in itertools.product(cells, (0, 1, 2)):
        given = make(batch, least)
        got = layer(**given)
        yield Case(f"{name}, {batch} rows: outputs", got.outputs.shape == (batch, 0, 2))
        for part, state in zip(got._fields[1:], got[1:], strict=True):
            yield same(f"{name}, {batch} rows: {part}", state, given[f"{part}0"])


def zeros(cells: Any, value: int = 0) -> Iterator[Step]:
    """A state that is left out is zeros."""
    for name, layer, make in cells:
        given = make(1, 1)
        states = {k: np.full(v.shape, value, object) for k, v in given.items() if k in STATEFUL[1:]}
        left_out = {k: v for k, v in given.items() if k not in states}
        one, two = layer(**left_out), layer(**{**left_out, **states})
        for part, got, want in zip(one._fields, one, two, strict=True):
            yield same(f"{name}: {part}", got, want)


def aligned(reverse: Layer) -> Iterator[Step]:
    """Read in reverse, position t is position l - 1 - t of the reversed row; T and l up to 3."""
    layer: Layer = rnn
    for steps, length in ((s, n) for s in range(1, 4) for n in range(s + 1)):
        given = _rnn(1, steps)
        shared = {k: given[k] for k in ("weight", "bias", "h0")}
        lengths = np.array([length])
        both = bidirectional(rnn, given["x"], shared, shared, lengths=lengths)
        turned = given["x"][:, :length][:, ::-1]
        alone = layer(turned, **shared)
        label = f"{length} of {steps} steps"
        mirrored = reverse(both.backward.outputs, lengths)[:, :length]
        yield same(f"{label}: outputs", mirrored, alone.outputs)
        yield same(f"{label}: state", both.backward.h, alone.h)
        halves = np.concatenate([both.forward.outputs, both.backward.outputs], axis=-1)
        beyond = both.outputs[0, length:].ravel().tolist()
        shown = bool((both.outputs[:, :length] == halves[:, :length]).all())
        yield Case(f"{label}: side by side", shown and all(v == 0 for v in beyond))


def positions(reverse: Layer) -> Iterator[Case]:
    """Reversal of every length within every row: t goes to l - 1 - t, and what is beyond stays."""
    for steps in range(7):
        for lengths in itertools.product(range(steps + 1), repeat=2):
            x = np.arange(2 * steps).reshape(2, steps)
            got = reverse(x, np.array(lengths))
            want = [[*row[:n][::-1], *row[n:]] for row, n in zip(x.tolist(), lengths, strict=True)]
            again = reverse(got, np.array(lengths))
            right = got.tolist() == want and np.array_equal(again, x)
            yield Case(f"lengths {lengths} of {steps}", right)


def _ignoring_lengths(x: np.ndarray, lengths: Any = None) -> np.ndarray:
    return reversed_rows(x)


RUNNING_ON = mutant(
    history, "tuple(where_active(exists, a, b) for a, b in new)", "tuple(a for a, b in new)"
)
RNN_ONLY = CELLS[:1]
BITS = "any arithmetic, bit for bit"
ALL = "rnn, lstm and both forms of gru, inputs of width 1, states of width 2"


def _obligation(
    claim: str,
    variant: str,
    statement: str,
    generality: str,
    body: Body,
    twin: Twin,
    strength: Any = "bounded",
) -> Obligation:
    name = f"recurrent.{claim}"
    method: Any = "enumeration" if strength == "exhaustive" else "z3"
    trust = COURSE if strength == "proved" else ()
    return Obligation(
        f"{name}/{variant}", name, statement, generality, strength, method, body, twin, trust
    )


STREAMING = r"f(s, x \frown y) = f(s, x) \frown f(s_{|x|}, y)"
OBLIGATIONS: tuple[Obligation, ...] = (
    _obligation(
        "streaming",
        "any-cell",
        STREAMING,
        f"the loop over time that all layers share, any cell, any number of steps; {BITS}",
        streaming,
        Twin("the second part starts from the first state", partial(streaming_of, lambda h, s: h)),
        "proved",
    ),
    _obligation(
        "streaming",
        "cells",
        STREAMING,
        f"{ALL}, parts of up to 2 and 1 steps; {BITS}",
        partial(layers_stream, CELLS, ("h", "c")),
        Twin("only h of an LSTM is handed on", partial(layers_stream, CELLS[1:2], ("h",))),
    ),
    _obligation(
        "prefix",
        "any-cell",
        r"x_{\le t} = x'_{\le t} \Rightarrow h_{\le t} = h'_{\le t}",
        f"the loop over time that all layers share, any cell, any number of steps; {BITS}",
        prefix,
        Twin("rows are read in reverse", partial(prefix_of, reversed_rows)),
        "proved",
    ),
    _obligation(
        "batch_invariant",
        "cells",
        r"f(x)_b = f(x_b)",
        f"{ALL}, three rows of two steps; {BITS}",
        partial(batches, CELLS, lambda b: b),
        Twin("another row", partial(batches, RNN_ONLY, lambda b: 0)),
    ),
    _obligation(
        "initial_state",
        "cells",
        r"f(x) = f(0, x)",
        f"{ALL}, one step; {BITS}",
        partial(zeros, CELLS),
        Twin("ones", partial(zeros, RNN_ONLY, 1)),
    ),
    _obligation(
        "zero_length",
        "cells",
        r"f(s, ()) = ((), s)",
        f"{ALL}, 0 to 2 rows",
        partial(empty, CELLS),
        Twin("a step", partial(empty, RNN_ONLY, 1)),
    ),
    _obligation(
        "packed_equals_single",
        "any-cell",
        r"f(x \frown \bot^p; \ell)_\ell = f(x)_\ell,\quad y_{\ge \ell} = 0",
        "the loop over time that all layers share, any cell, any number of steps before the end and"
        f" beyond it; {BITS}",
        partial(padded, history),
        Twin("padding moves the state", partial(padded_of, RUNNING_ON)),
        "proved",
    ),
    _obligation(
        "packed_equals_single",
        "cells",
        r"f(x; \ell)_b = f(x_{b, < \ell_b})",
        f"{ALL}, two rows, the first of 0 to 2 of its 2 steps; {BITS}",
        partial(ends, CELLS),
        Twin("the row ends a step earlier", partial(ends, RNN_ONLY, 1)),
    ),
    _obligation(
        "padding_independent",
        "cells",
        r"x_{< \ell} = x'_{< \ell} \Rightarrow f(x; \ell) = f(x'; \ell)",
        f"{ALL}, 0 or 1 of 2 steps, any padding behind them, NaN included; {BITS}",
        partial(unread, CELLS),
        Twin("it is within the row", partial(unread, RNN_ONLY, 1)),
    ),
    _obligation(
        "bidirectional_alignment",
        "rnn",
        r"f_{\leftarrow}(x)_t = f(\operatorname{rev} x)_{\ell - 1 - t}",
        f"bidirectional rnn, rows of 1 to 3 steps, every length within them; {BITS}",
        partial(aligned, reversed_rows),
        Twin("rows are turned about the end of the batch", partial(aligned, _ignoring_lengths)),
    ),
    _obligation(
        "bidirectional_alignment",
        "small",
        r"\operatorname{rev}_\ell(x)_t = x_{\ell - 1 - t} \; (t < \ell),\quad x_t \; (t \ge \ell)",
        "reversed_rows, two rows of 0 to 6 steps, every pair of lengths",
        partial(positions, reversed_rows),
        Twin("rows are turned about the end of the batch", partial(positions, _ignoring_lengths)),
        "exhaustive",
    ),
)
