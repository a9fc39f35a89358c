"""Recurrent layers in the catalogue.

The bounds hold for every order of a gate's sum and of what flows into a state, for both forms of a
GRU's blend, and for gates as exp(x) / (1 + exp(x)) or 1 / (1 + exp(-x)). Not covered is (1 +
tanh(x/2)) / 2, which keeps no digit of a gate that is nearly shut (``layers.activation_bounds``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from assay.spec.arithmetic import Arithmetic
from assay.spec.inexact import widest
from assay.spec.ops.entry import Arrays, Attribute, Input, Op, running, running_backward
from assay.spec.recurrent.gru import CONVEX, LEANING, gru, gru_backward
from assay.spec.recurrent.lstm import lstm, lstm_backward
from assay.spec.recurrent.rnn import rnn, rnn_backward

Results = dict[str, np.ndarray]
Attributes = Mapping[str, Any]

_OUT = ("B", "T", "Hd")
_STATE = ("B", "Hd")
_X = Input("x", ("B", "T", "I"))
_LENGTHS = Input("lengths", ("B",), differentiable=False, optional=True, holds="int")
_REVERSE = Attribute("reverse", False, "each row is read from its last step to its first")


def _state(name: str) -> Input:
    return Input(name, _STATE, optional=True)


def _forward(function: Callable[..., Any], **form: Any) -> Callable[..., Results]:
    def forward(inputs: Arrays, attributes: Attributes) -> Results:
        result = function(**inputs, **attributes, **form)._asdict()
        return {"out": result.pop("outputs"), **result}

    return forward


def _backward(function: Callable[..., Any], **form: Any) -> Callable[..., Results]:
    def backward(inputs: Arrays, cotangents: Arrays, attributes: Attributes) -> Results:
        final = {f"{n}_cotangent": g for n, g in cotangents.items() if n != "out"}
        given = {**inputs, **final, "cotangent": cotangents["out"]}
        grads = function(**given, **attributes, **form)._asdict()
        return {n: g for n, g in grads.items() if n in inputs}

    return backward


def _gru_bound(inputs: Arrays, attributes: Attributes, arithmetic: Arithmetic) -> Results:
    """Either form of the blend may be evaluated."""
    return widest(
        *(
            running(_forward(gru, blend=blend))(inputs, attributes, arithmetic)
            for blend in (CONVEX, LEANING)
        )
    )


def _gru_backward_bound(
    inputs: Arrays, cotangents: Arrays, attributes: Attributes, arithmetic: Arithmetic
) -> Results:
    """Either form of the blend, and its gradient alike."""
    return widest(
        *(
            running_backward(_backward(gru_backward, blend=blend))(
                inputs, cotangents, attributes, arithmetic
            )
            for blend in (CONVEX, LEANING)
        )
    )


RNN = Op(
    name="rnn",
    summary="tanh recurrence: h = tanh(W [x; h] + b)",
    inputs=(
        _X,
        Input("weight", ("Hd", "I+Hd")),
        Input("bias", ("Hd",)),
        _state("h0"),
        _LENGTHS,
    ),
    attributes=(_REVERSE,),
    outputs={"out": _OUT, "h": _STATE},
    forward=_forward(rnn),
    backward=_backward(rnn_backward),
)

LSTM = Op(
    name="lstm",
    summary="long short-term memory: gates forget, input, candidate, output",
    inputs=(
        _X,
        Input("weight", ("4", "Hd", "I+Hd")),
        Input("bias", ("4", "Hd")),
        _state("h0"),
        _state("c0"),
        _LENGTHS,
    ),
    attributes=(_REVERSE,),
    outputs={"out": _OUT, "h": _STATE, "c": _STATE},
    forward=_forward(lstm),
    backward=_backward(lstm_backward),
)

GRU = Op(
    name="gru",
    summary="gated recurrent unit: gates reset, update, new; reset before or after the product",
    inputs=(
        _X,
        Input("weight", ("3", "Hd", "I+Hd")),
        Input("bias", ("3", "Hd")),
        Input("hidden_bias", ("Hd",), optional=True),
        _state("h0"),
        _LENGTHS,
    ),
    attributes=(
        _REVERSE,
        Attribute("reset_after", False, "the reset gate scales W_h h + c, and not h"),
    ),
    outputs={"out": _OUT, "h": _STATE},
    forward=_forward(gru),
    backward=_backward(gru_backward),
    bound=_gru_bound,
    backward_bound=_gru_backward_bound,
)

RECURRENT: tuple[Op, ...] = (RNN, LSTM, GRU)
