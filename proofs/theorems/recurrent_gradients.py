"""Gradients of recurrent cells through time are derivatives: into inputs, parameters and the state
before the first step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from assay.proofs.derivation import FLINT, pullback_case
from assay.proofs.mutants import mutant, rebound
from assay.proofs.obligation import Case, Obligation, Twin
from assay.spec.recurrent.gru import LEANING, GruCell, gru, gru_backward
from assay.spec.recurrent.lstm import LstmCell, lstm, lstm_backward
from assay.spec.recurrent.rnn import RnnCell, rnn, rnn_backward

Layer = Callable[..., Any]
Shapes = dict[str, tuple[int, ...]]
COTANGENTS = {"cotangent": "g", "h_cotangent": "H"}
LSTM_COTANGENTS = {**COTANGENTS, "c_cotangent": "C"}
ENDED = {"lengths": np.array([1, 2])}


def _cell(gates: int, hidden: int, batch: int, steps: int) -> Shapes:
    """Inputs of width 1."""
    lead = (gates,) if gates else ()
    return {
        "x": (batch, steps, 1), "weight": (*lead, hidden, 1 + hidden), "bias": (*lead, hidden),
        "h0": (batch, hidden),
    }  # fmt: skip


def _rnn(hidden: int, batch: int, steps: int) -> Shapes:
    return _cell(0, hidden, batch, steps)


def _lstm(hidden: int, batch: int, steps: int) -> Shapes:
    return {**_cell(4, hidden, batch, steps), "c0": (batch, hidden)}


def _gru(hidden: int, batch: int, steps: int) -> Shapes:
    return {**_cell(3, hidden, batch, steps), "hidden_bias": (hidden,)}


def derivative(
    forward: Layer,
    backward: Layer,
    shapes: Callable[[int, int, int], Shapes],
    cotangents: Mapping[str, str],
) -> Iterator[Case]:
    """Steps after each other, states that mix, rows read in reverse and rows that end early."""
    case = partial(pullback_case, cotangents=cotangents)
    yield case("one step", forward, backward, shapes(1, 1, 1), shown="bias")
    yield case("two steps of two units", forward, backward, shapes(2, 1, 2))
    for label, options in (("in reverse", {"reverse": True}), ("of lengths 1 and 2", ENDED)):
        there, back = (partial(f, **options) for f in (forward, backward))
        yield case(f"two steps {label}", there, back, shapes(1, 2, 2))


def gru_derivative(backward: Layer, reset_after: bool) -> Iterator[Case]:
    """One form of the gated unit, by either way to blend."""
    there, back = (partial(f, reset_after=reset_after) for f in (gru, backward))
    yield from derivative(there, back, _gru, COTANGENTS)
    there, back = (partial(f, blend=LEANING) for f in (there, back))
    yield pullback_case("n + z (h - n)", there, back, _gru(1, 1, 2), COTANGENTS)


def _with_cell(backward: Layer, cell: Any, old: str, new: str) -> Layer:
    """``backward`` with one edit of the way back through the cell."""
    wrong = type(cell.__name__, (cell,), {"back": mutant(cell.back, old, new)})
    if backward is gru_backward:  # its cell is made by a function that checks shapes first
        return rebound(backward, _cell=lambda x, *given: wrong(*given))
    return rebound(backward, **{cell.__name__: wrong})


RNN_OPEN = _with_cell(rnn_backward, RnnCell, "d[0] * (1 - after[0] * after[0])", "d[0]")
LSTM_OPEN = _with_cell(lstm_backward, LstmCell, "dc * i * (1 - g * g)", "dc * i")
GRU_RESET = _with_cell(gru_backward, GruCell, "into_reset * h * (r", "into_reset * (r")
GRU_BLEND = _with_cell(gru_backward, GruCell, "dh * (h - n)", "dh * h")


def _derived(
    variant: str, formula: str, generality: str, body: Callable[[], Iterator[Case]], twin: Twin
) -> Obligation:
    name = "recurrent.vjp_refines"
    return Obligation(
        f"{name}/{variant}",
        name,
        rf"\frac{{\partial}}{{\partial \theta}} \left(\sum_t g_t h_t(\theta) + {formula}\right)"
        r" = \bar\theta",
        f"{generality}: one step, two steps of one and of two units, in reverse and with a row "
        "that ends early; into every input and the state before the first step",
        "derived",
        "sympy",
        body,
        twin,
        ("the derivatives of exp and tanh, and the chain rule", FLINT),
    )


OBLIGATIONS: tuple[Obligation, ...] = (
    _derived(
        "rnn",
        r"H h_T(\theta)",
        "rnn_backward",
        partial(derivative, rnn, rnn_backward, _rnn, COTANGENTS),
        Twin(
            "the factor 1 - h^2 is left out",
            partial(derivative, rnn, RNN_OPEN, _rnn, COTANGENTS),
        ),
    ),
    _derived(
        "lstm",
        r"H h_T(\theta) + C c_T(\theta)",
        "lstm_backward",
        partial(derivative, lstm, lstm_backward, _lstm, LSTM_COTANGENTS),
        Twin(
            "the candidate's factor 1 - g^2 is left out",
            partial(derivative, lstm, LSTM_OPEN, _lstm, LSTM_COTANGENTS),
        ),
    ),
    _derived(
        "gru",
        r"H h_T(\theta)",
        "gru_backward, reset before the product, both ways to blend",
        partial(gru_derivative, gru_backward, False),
        Twin(
            "the reset gate's gradient lacks the state",
            partial(gru_derivative, GRU_RESET, False),
        ),
    ),
    _derived(
        "gru-after",
        r"H h_T(\theta)",
        "gru_backward, reset after the product, both ways to blend",
        partial(gru_derivative, gru_backward, True),
        Twin(
            "the update gate's gradient lacks the new state",
            partial(gru_derivative, GRU_BLEND, True),
        ),
    ),
)
