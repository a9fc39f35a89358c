"""Scans with taps: the inputs that a convolution still sees belong to the state of a stream."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
import z3

from assay.proofs.induction import by_induction, folds_of
from assay.proofs.mutants import mutant
from assay.proofs.obligation import Body, Case, Obligation, Query, Step, Twin
from assay.proofs.scalars.courses import COURSE
from assay.proofs.scalars.opaque import SCALAR, Opaque, opaque
from assay.proofs.scalars.reals import real
from assay.proofs.scalars.stretches import Axis, Fold
from assay.proofs.scalars.terms import Term
from assay.spec.scans.block import BlockParameters, BlockState, selective_block
from assay.spec.scans.causal_conv import causal_conv1d
from assay.spec.scans.compact import compact_ssm
from assay.spec.scans.diagonal import diagonal_ssm
from assay.spec.scans.selective import selective_scan

Layer = Callable[..., Any]
Shape = tuple[int, ...]
Sizes = Sequence[tuple[int, int, int]]
CHUNKS: Sizes = ((1, 1, 1), (3, 0, 1), (3, 1, 1), (3, 1, 0), (3, 1, 2), (3, 2, 1))
"""Taps, and the sizes of two chunks."""


def unknowns(name: str, *shape: int, make: Callable[[str], Term] = opaque) -> np.ndarray:
    """An array of distinct variables."""
    result = np.empty(shape, dtype=object)
    for i in np.ndindex(*shape):
        result[i] = make(f"{name}{'_'.join(map(str, i))}")
    return result


def same(name: str, got: np.ndarray, want: np.ndarray) -> Query | Case:
    """Entry by entry: the very same terms need no solver."""
    pairs = [(_term(a), _term(b)) for a, b in zip(got.flat, want.flat, strict=True)]
    if got.shape == want.shape and all(a.eq(b) for a, b in pairs):
        return Case(name, True)
    return Query(name, z3.And(got.shape == want.shape, *(a == b for a, b in pairs)))


def _term(x: Any) -> z3.ExprRef:
    return x.term if isinstance(x, Term) else Opaque(x).term


class _Taps:
    """A convolution that reads one input at a time; slot i of its history is a fold."""

    def __init__(self, conv: Layer, taps: int) -> None:
        self.conv, self.axis = conv, Axis("", Opaque)
        self.x = z3.Function("x", z3.IntSort(), SCALAR)
        self.weight, self.bias = unknowns("w", taps, 1), unknowns("b", 1)
        self.slots: list[Fold] = []
        for i in range(taps - 1):
            # Inputs before the first one have negative indices.
            start, slot = self.x(i - taps + 1), partial(self._slot, i)
            self.slots.append(self.axis.folded(f"slot {i}", SCALAR, start, slot))

    def _slot(self, i: int, _: z3.ExprRef, j: Any) -> z3.ExprRef:
        term: z3.ExprRef = self.step(j)[1][0, i, 0].term
        return term

    def step(self, j: Any) -> tuple[np.ndarray, np.ndarray]:
        """Output and history of input j behind the slots at j."""
        now, history = np.empty((1, 1, 1), object), np.empty((1, len(self.slots), 1), object)
        now[0, 0, 0] = Opaque(self.x(j))
        history[0, :, 0] = [Opaque(slot.at(j)) for slot in self.slots]
        y, after = self.conv(now, self.weight, self.bias, history)
        return y, after

    def holds(self, m: Any) -> z3.BoolRef:
        """The slots hold the last inputs, the oldest first."""
        past = len(self.slots)
        held = (f.at(m) == self.x(_index(m, i - past)) for i, f in enumerate(self.slots))
        return z3.And(True, *held)

    def weighted(self, j: Any) -> Opaque:
        """Bias and weights times the inputs under the taps, in the spec's order."""
        terms = [w * Opaque(self.x(_index(j, -k))) for k, w in enumerate(self.weight[:, 0])]
        result: Opaque = reduce(operator.add, [*terms, self.bias[0]])
        return result


def _index(j: Any, offset: int) -> Any:
    return z3.simplify(z3.IntVal(0) + j + offset)


def window(conv: Layer, most: int) -> Iterator[Query]:
    """After any number of single inputs the history is the last of them, and the output is that of
    the inputs under the taps.
    """
    for count in range(1, most + 1):
        taps = _Taps(conv, count)
        queries, lemma = by_induction(f"{count} taps: the history", taps.axis, taps.holds)
        yield from queries
        n, folds = taps.axis.length, folds_of(taps.axis)
        goal = taps.step(n)[0][0, 0, 0].term == taps.weighted(n).term
        yield Query(f"{count} taps: the output", goal, (lemma,), {}, folds)


def conv_streams(conv: Layer, most: int) -> Iterator[Step]:
    """A chunk behind its history gives what the whole gives, for chunks and taps up to ``most``."""
    for taps, first, second in itertools.product(
        range(1, most + 1), range(most + 1), range(most + 1)
    ):
        x, w = unknowns("x", 1, first + second, 1), unknowns("w", taps, 1)
        bias, history = unknowns("b", 1), unknowns("h", 1, taps - 1, 1)
        whole, end = causal_conv1d(x, w, bias, history)
        early, middle = conv(x[:, :first], w, bias, history)
        late, last = conv(x[:, first:], w, bias, middle)
        label = f"{taps} taps, {first} and {second} inputs"
        yield same(f"{label}: outputs", np.concatenate([early, late], axis=1), whole)
        yield same(f"{label}: history", last, end)


def block(steps: int, taps: int, e: int) -> tuple[np.ndarray, BlockParameters, BlockState]:
    """Inputs, parameters and state of a block with e channels of two states each."""
    i, n, o = 1, 2, 1
    shapes: Mapping[str, Shape] = {
        "x_proj": (i, e), "z_proj": (i, e), "kernel": (taps, e), "conv_bias": (e,),
        "dt_proj": (e, e), "dt_bias": (e,), "a": (e, n), "b_proj": (e, n), "c_proj": (e, n),
        "d_skip": (e,), "out_proj": (e, o),
    }  # fmt: skip
    parameters = BlockParameters(**{k: unknowns(k, *shape) for k, shape in shapes.items()})
    state = BlockState(unknowns("h", 1, e, n), unknowns("past", 1, taps - 1, e))
    return unknowns("x", 1, steps, i), parameters, state


def block_streams(
    kept: Callable[[BlockState], BlockState], sizes: Sizes, channels: int
) -> Iterator[Step]:
    """State and history of a chunk continue it; ``kept`` is what is handed on of them."""
    for taps, first, second in sizes:
        x, parameters, state = block(first + second, taps, channels)
        whole, end = selective_block(x, parameters, state)
        early, middle = selective_block(x[:, :first], parameters, state)
        late, last = selective_block(x[:, first:], parameters, kept(middle))
        label = f"{taps} taps, {first} and {second} inputs"
        yield same(f"{label}: outputs", np.concatenate([early, late], axis=1), whole)
        yield same(f"{label}: the state", last.h, end.h)
        yield same(f"{label}: the history", last.history, end.history)


def _without_history(state: BlockState) -> BlockState:
    return BlockState(state.h, state.history * 0)


Given = dict[str, np.ndarray]


def _selective(batch: int, steps: int) -> Given:
    e, n = 2, 2
    per_step = {"b": (batch, steps, n), "c": (batch, steps, n)}
    shapes: Mapping[str, Shape] = {
        "u": (batch, steps, e), "delta": (batch, steps, e), "a": (e, n), **per_step, "d": (e,),
        "h0": (batch, e, n),
    }  # fmt: skip
    return {k: unknowns(k, *shape) for k, shape in shapes.items()}


def _projected(batch: int, steps: int, **projections: Shape) -> Given:
    e = 2
    shapes: Mapping[str, Shape] = {
        "x": (batch, steps, 1), **dict.fromkeys("abcd", (e,)), **projections, "h0": (batch, e),
    }  # fmt: skip
    return {k: unknowns(k, *shape) for k, shape in shapes.items()}


def _diagonal(batch: int, steps: int) -> Given:
    return _projected(batch, steps, in_proj=(1, 2), readout=(2, 1))


def _compact(batch: int, steps: int) -> Given:
    return _projected(batch, steps, in_proj=(1, 2), gate_proj=(1, 2), out_proj=(2, 1))


def _taps(batch: int, steps: int) -> Given:
    shapes: Mapping[str, Shape] = {
        "x": (batch, steps, 2), "weight": (3, 2), "bias": (2,), "history": (batch, 2, 2),
    }  # fmt: skip
    return {k: unknowns(k, *shape) for k, shape in shapes.items()}


TIMED = ("x", "u", "delta", "b", "c")
BLOCKS: tuple[tuple[str, Layer, Callable[[int, int], Given]], ...] = (
    ("diagonal_ssm", diagonal_ssm, _diagonal),
    ("compact_ssm", compact_ssm, _compact),
    ("selective_scan", selective_scan, _selective),
)


def _part(given: Given, steps: slice) -> Given:
    return {k: v[:, steps] if k in TIMED and v.ndim == 3 else v for k, v in given.items()}


def states_stream(layers: Any, most: int, keep: bool = True) -> Iterator[Step]:
    """Each block continues from its last state, and a batch of two is its rows."""
    for (name, layer, make), first, second in itertools.product(
        layers, range(most + 1), range(most + 1)
    ):
        given = make(1, first + second)
        whole, end = layer(**given)
        early, middle = layer(**_part(given, slice(first)))
        h0 = middle if keep else given["h0"]
        late, last = layer(**{**_part(given, slice(first, None)), "h0": h0})
        label = f"{name}, {first} and {second} inputs"
        yield same(f"{label}: outputs", np.concatenate([early, late], axis=1), whole)
        yield same(f"{label}: state", last, end)


def prefixes(layers: Any, most: int) -> Iterator[Step]:
    """The outputs of a prefix are the first outputs of the whole."""
    for name, layer, make in layers:
        given = make(1, most)
        whole = layer(**given)[0]
        for steps in range(most):
            part = layer(**_part(given, slice(steps)))[0]
            yield same(f"{name}, {steps} of {most}", part, whole[:, :steps])


def idle(size: int) -> Iterator[Step]:
    """Steps of size 0 leave the state as it is, over the reals."""
    for steps in range(1, 4):
        names = {k: unknowns(k, *v.shape, make=real) for k, v in _selective(1, steps).items()}
        names["delta"] = names["delta"] * 0 + size
        _, h = selective_scan(**names)
        yield same(f"{steps} steps of size {size}", h, names["h0"])


OLDEST = mutant(causal_conv1d, "extended[:, x.shape[1] :]", "extended[:, : weight.shape[0] - 1]")
PEEKING = mutant(causal_conv1d, "sum_of(products), extended", "sum_of(products)[:, ::-1], extended")
CONV: tuple[tuple[str, Layer, Callable[[int, int], Given]], ...] = (
    ("causal_conv1d", causal_conv1d, _taps),
)
PEEKED = (("causal_conv1d", PEEKING, _taps),)


def _obligation(
    claim: str,
    variant: str,
    statement: str,
    generality: str,
    body: Body,
    twin: Twin,
    trust: tuple[str, ...] = (),
) -> Obligation:
    name = f"scan.{claim}"
    return Obligation(
        f"{name}/{variant}", name, statement, generality, "bounded", "z3", body, twin, trust
    )


ANY = "any arithmetic, bit for bit"
OBLIGATIONS: tuple[Obligation, ...] = (
    _obligation(
        "history",
        "window",
        r"s_t = (x_{t-K+2}, \dots, x_t),\quad y_t = w_0 x_t + \dots + w_{K-1} x_{t-K+1} + \beta",
        f"causal_conv1d taking one at a time of any number of inputs, 1 to 4 taps; {ANY}",
        partial(window, causal_conv1d, 4),
        Twin("the oldest inputs are kept", partial(conv_streams, OLDEST, 2)),
        COURSE,
    ),
    _obligation(
        "history",
        "conv",
        r"f(s, x \frown y) = f(s, x) \frown f(s_{|x|}, y)",
        f"causal_conv1d, chunks of 0 to 3 inputs, 1 to 3 taps; {ANY}",
        partial(conv_streams, causal_conv1d, 3),
        Twin("the oldest inputs are kept", partial(conv_streams, OLDEST, 2)),
    ),
    _obligation(
        "history",
        "block",
        r"f((h, s), x \frown y) = f((h, s), x) \frown f((h_{|x|}, s_{|x|}), y)",
        "selective_block, chunks of 0 to 2 inputs, 3 in all, 1 or 3 taps, two channels of two "
        f"states; {ANY}",
        partial(block_streams, lambda state: state, CHUNKS, 2),
        Twin("the history is dropped", partial(block_streams, _without_history, CHUNKS[2:3], 1)),
    ),
    _obligation(
        "prefix",
        "blocks",
        r"f(h, x \frown y)_{\le |x|} = f(h, x)",
        "diagonal_ssm, compact_ssm, selective_scan and causal_conv1d, up to 4 inputs, two channels;"
        f" {ANY}",
        partial(prefixes, (*BLOCKS, *CONV), 4),
        Twin("outputs are given in reverse", partial(prefixes, PEEKED, 2)),
    ),
    _obligation(
        "streaming",
        "blocks",
        r"f(h, x \frown y) = f(h, x) \frown f(h_{|x|}, y)",
        "diagonal_ssm, compact_ssm and selective_scan, parts of 0 to 2 inputs, two channels of two "
        f"states; {ANY}",
        partial(states_stream, BLOCKS, 2),
        Twin(
            "the second part starts from the first state", partial(states_stream, BLOCKS, 1, False)
        ),
    ),
    _obligation(
        "padding_neutral",
        "step-size",
        r"\Delta_t = 0 \Rightarrow h_t = h_{t-1}",
        "selective_scan, 1 to 3 steps of size 0, two channels of two states, over the reals",
        partial(idle, 0),
        Twin("a step of size 1", partial(idle, 1)),
    ),
)
