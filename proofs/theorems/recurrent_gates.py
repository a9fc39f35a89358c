"""Recurrent cells, gate by gate: what each of them computes, and that another order is another
map.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np

from assay.proofs.obligation import Body, Case, Obligation, Step, Twin
from assay.proofs.scalars.balls import Ball, precision
from assay.proofs.scalars.opaque import Opaque
from assay.proofs.scalars.rationals import array
from assay.proofs.theorems.scan_blocks import same, unknowns
from assay.spec.functions import tanh
from assay.spec.layers.activations import sigmoid
from assay.spec.recurrent.gru import gru
from assay.spec.recurrent.lstm import lstm
from assay.spec.recurrent.rnn import rnn

Layer = Callable[..., Any]
Order = Sequence[int]
GATES = {"lstm": (0, 1, 2, 3), "gru": (0, 1, 2)}
BITS = 100


def _sum(read: Any, weight: np.ndarray, *biases: Any) -> Opaque:
    """r_0 w_0 + r_1 w_1 + ... + the biases, from the left: the order of the spec."""
    terms = [*(r * w for r, w in zip(read, weight, strict=True)), *biases]
    result: Opaque = reduce(operator.add, terms)
    return result


def _vector(*values: Any) -> np.ndarray:
    result = np.empty((1, len(values)), dtype=object)
    result[0] = values
    return result


def _sums(read: Any, weight: np.ndarray, *biases: np.ndarray) -> np.ndarray:
    """[1, Hd]: the sum of each row of one gate's weight."""
    return _vector(*(_sum(read, *row) for row in zip(weight, *biases, strict=True)))


def lstm_step(layer: Layer, order: Order) -> Iterator[Step]:
    """c = f c + i g, then h = o tanh(c), gate by gate; ``order`` holds the places of f, i, g, o."""
    x, weight, bias = unknowns("x", 1, 1, 1), unknowns("w", 4, 2, 3), unknowns("b", 4, 2)
    h, c = unknowns("h", 1, 2), unknowns("c", 1, 2)
    got = layer(x, weight, bias, h, c)
    read = (x[0, 0, 0], *h[0])
    f, i, g, o = (_sums(read, weight[place], bias[place]) for place in order)
    after = sigmoid(f) * c + sigmoid(i) * tanh(g)
    yield same("c", got.c, after)
    yield same("h", got.h, sigmoid(o) * tanh(after))


def rnn_step(layer: Layer, leading: bool) -> Iterator[Step]:
    """h' = tanh(W [x; h] + b), the columns that read the input ``leading``."""
    x, weight, bias = unknowns("x", 1, 1, 1), unknowns("w", 2, 3), unknowns("b", 2)
    h = unknowns("h", 1, 2)
    columns = weight if leading else np.concatenate([weight[:, 2:], weight[:, :2]], axis=1)
    sums = _sums((x[0, 0, 0], *h[0]), columns, bias)
    yield same("h", layer(x, weight, bias, h).h, tanh(sums))


def gru_step(layer: Layer, reset_after: bool, order: Order) -> Iterator[Step]:
    """h' = (1 - z) n + z h, with either form of n; ``order`` holds the places of r, z, n."""
    x, weight, bias = unknowns("x", 1, 1, 1), unknowns("w", 3, 2, 3), unknowns("b", 3, 2)
    c, h = unknowns("c", 2), unknowns("h", 1, 2)
    got = layer(x, weight, bias, c, h, reset_after=reset_after)
    now = x[0, 0, 0]
    r, z = (sigmoid(_sums((now, *h[0]), weight[place], bias[place])) for place in order[:2])
    w, b = weight[order[2]], bias[order[2]]
    if reset_after:
        n = tanh(_sums((now,), w[:, :1], b) + r * _sums(h[0], w[:, 1:], c))
    else:
        n = tanh(_sums((now, *(r * h)[0]), w, c, b))
    yield same("h", got.h, (1 - z) * n + z * h)


def _example(gates: int) -> tuple[np.ndarray, ...]:
    """x, weight, bias and two more vectors of dyadic numbers, as balls of one number each."""
    weight = [[[1 + g, 2 - g]] for g in range(gates)]
    bias = [[g / 2] for g in range(gates)]
    return tuple(array(v, Ball) for v in ([[[0.5]]], weight, bias, [[0.75]], [[-1.25]]))


def orders(layer: Layer, stored: int) -> Iterator[Case]:
    """Every order of the gates but the one that is stored gives another state; ``stored`` counts
    the orders before it in the list.
    """
    gates = GATES["lstm"] if layer is lstm else GATES["gru"]
    with precision(BITS):
        x, weight, bias, h, c = _example(len(gates))
        states: dict[str, np.ndarray] = {"h0": h, "c0": c} if layer is lstm else {"h0": h}
        want = layer(x, weight, bias, **states).h[0, 0]
        for place, order in enumerate(itertools.permutations(gates)):
            if place != stored:
                got = layer(x, weight[list(order)], bias[list(order)], **states).h[0, 0]
                yield Case(f"{order}: {got}", got.apart(want))


def reset_forms(first: bool, second: bool) -> Iterator[Case]:
    """The two forms differ once a gate is partly open and reads more than one number."""
    with precision(BITS):
        x, weight, bias, h, c = _example(3)
        one, two = (gru(x, weight, bias, c[0], h, reset_after=f).h[0, 0] for f in (first, second))
        yield Case(f"{one} and {two}", one.apart(two))


ANY = "one step, inputs of width 1, states of width 2; any arithmetic, bit for bit"
BALLS = "weights and inputs of one example, in balls that do not meet"


def _obligation(
    claim: str, variant: str, statement: str, generality: str, body: Body, twin: Twin
) -> Obligation:
    name = f"recurrent.{claim}"
    enclosed = generality.endswith(BALLS)
    return Obligation(
        f"{name}/{variant}",
        name,
        statement,
        generality,
        "enclosed" if enclosed else "bounded",
        "arb" if enclosed else "z3",
        body,
        twin,
    )


OBLIGATIONS: tuple[Obligation, ...] = (
    _obligation(
        "gate_order",
        "lstm",
        r"c' = \sigma(z_0) c + \sigma(z_1) \tanh(z_2),\quad h' = \sigma(z_3) \tanh(c')",
        ANY,
        partial(lstm_step, lstm, (0, 1, 2, 3)),
        Twin("input before forget", partial(lstm_step, lstm, (1, 0, 2, 3))),
    ),
    _obligation(
        "gate_order",
        "gru",
        r"h' = (1 - \sigma(z_1)) n + \sigma(z_1) h,\quad"
        r" n = \tanh(W_x x + W_h (\sigma(z_0) h) + c + b)",
        ANY,
        partial(gru_step, gru, False, (0, 1, 2)),
        Twin("update before reset", partial(gru_step, gru, False, (1, 0, 2))),
    ),
    _obligation(
        "gate_order",
        "columns",
        r"h' = \tanh(W_x x + W_h h + b),\quad W = [W_x \; W_h]",
        f"rnn, {ANY}",
        partial(rnn_step, rnn, True),
        Twin("the state's columns come first", partial(rnn_step, rnn, False)),
    ),
    _obligation(
        "gate_order",
        "lstm-orders",
        r"\pi \ne \operatorname{id} \Rightarrow h(W_\pi, b_\pi) \ne h(W, b)",
        f"each of the 23 other orders of four gates; {BALLS}",
        partial(orders, lstm, 0),
        Twin("the order that is stored", partial(orders, lstm, 23)),
    ),
    _obligation(
        "gate_order",
        "gru-orders",
        r"\pi \ne \operatorname{id} \Rightarrow h(W_\pi, b_\pi) \ne h(W, b)",
        f"each of the 5 other orders of three gates; {BALLS}",
        partial(orders, gru, 0),
        Twin("the order that is stored", partial(orders, gru, 5)),
    ),
    _obligation(
        "reset_variant",
        "after",
        r"n = \tanh(W_x x + b + \sigma(z_0) (W_h h + c))",
        ANY,
        partial(gru_step, gru, True, (0, 1, 2)),
        Twin("update before reset", partial(gru_step, gru, True, (1, 0, 2))),
    ),
    _obligation(
        "reset_variant",
        "differ",
        r"\tanh(W_x x + W_h (r h) + b + c) \ne \tanh(W_x x + b + r (W_h h + c))",
        f"both forms of gru; {BALLS}",
        partial(reset_forms, False, True),
        Twin("twice the same form", partial(reset_forms, True, True)),
    ),
)
