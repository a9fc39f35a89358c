"""To and from the layout of torch.nn.RNN, LSTM and GRU: input and recurrent half apart, two biases,
gates below each other, and the LSTM's in the order input, forget, candidate, output.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Shaped

from assay.spec.scalars import Array

LSTM_ORDER = (1, 0, 2, 3)
"""Position in (f, i, g, o) of each gate of (i, f, g, o); its own inverse."""


class Halves(NamedTuple):
    """One layer and direction as torch names it: W_ih x + b_ih and W_hh h + b_hh, G gates each."""

    weight_ih: Shaped[np.ndarray, "GHd I"]
    weight_hh: Shaped[np.ndarray, "GHd Hd"]
    bias_ih: Shaped[np.ndarray, "GHd"]
    bias_hh: Shaped[np.ndarray, "GHd"]


class Parameters(NamedTuple):
    """Weight, bias, and for a GRU the bias of the new gate's recurrent half."""

    weight: Array
    bias: Array
    hidden_bias: Array | None = None


def stack_gates(*gates: Array) -> Array:
    """Matrices or biases of one gate each on a new leading axis, in the order given.

    >>> stack_gates(np.zeros(2), np.ones(2)).tolist()
    [[0.0, 0.0], [1.0, 1.0]]
    """
    return np.stack(gates)


def split_gates(stacked: Array) -> tuple[Array, ...]:
    """Inverse of ``stack_gates``.

    >>> [gate.tolist() for gate in split_gates(np.array([[0.0], [1.0]]))]
    [[0.0], [1.0]]
    """
    return tuple(stacked[g] for g in range(stacked.shape[0]))


def _below(stacked: Array) -> Array:
    return stacked.reshape(stacked.shape[0] * stacked.shape[1], *stacked.shape[2:])


def _halves(weight: Array, bias: Array, hidden_bias: Array) -> Halves:
    width = weight.shape[-1] - weight.shape[-2]
    parts = (weight[..., :width], weight[..., width:], bias, hidden_bias)
    return Halves(*(_below(part) for part in parts))


def _stacked(halves: Halves, gates: int) -> tuple[Array, Array, Array]:
    hidden = halves.weight_hh.shape[-1]
    for name, part in halves._asdict().items():
        if part.shape[0] != gates * hidden:
            raise ValueError(
                f"{name} has {part.shape[0]} rows, should be {gates} gates x hidden width "
                f"({hidden}) = {gates * hidden}"
            )
    ih, hh, b_ih, b_hh = (part.reshape(gates, hidden, *part.shape[1:]) for part in halves)
    return np.concatenate([ih, hh], axis=-1), b_ih, b_hh


def rnn_to_torch(weight: Array, bias: Array) -> Halves:
    """The whole bias goes to b_ih; b_hh is 0.

    >>> rnn_to_torch(np.array([[1.0, 2.0]]), np.array([3.0])).weight_hh.tolist()
    [[2.0]]
    """
    return _halves(weight[None], bias[None], np.zeros_like(bias)[None])


def rnn_from_torch(halves: Halves) -> Parameters:
    """The two biases are added: their sum is all that the cell depends on."""
    weight, b_ih, b_hh = _stacked(halves, 1)
    return Parameters(weight[0], (b_ih + b_hh)[0])


def lstm_to_torch(weight: Array, bias: Array) -> Halves:
    """Gates (f, i, g, o) become (i, f, g, o); the whole bias goes to b_ih.

    >>> bias = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> lstm_to_torch(np.zeros((4, 1, 2)), bias).bias_ih.tolist()
    [1.0, 0.0, 2.0, 3.0]
    """
    order = list(LSTM_ORDER)
    return _halves(weight[order], bias[order], np.zeros_like(bias))


def lstm_from_torch(halves: Halves) -> Parameters:
    """Gates (i, f, g, o) become (f, i, g, o); the two biases are added."""
    weight, b_ih, b_hh = _stacked(halves, 4)
    order = list(LSTM_ORDER)
    return Parameters(weight[order], (b_ih + b_hh)[order])


def gru_to_torch(weight: Array, bias: Array, hidden_bias: Array) -> Halves:
    """For the reset-after form: ``hidden_bias`` is the new gate's b_hh, the other gates' are 0.

    >>> gru_to_torch(np.zeros((3, 1, 2)), np.zeros((3, 1)), np.ones(1)).bias_hh.tolist()
    [0.0, 0.0, 1.0]
    """
    zero = np.zeros_like(hidden_bias)
    return _halves(weight, bias, np.stack([zero, zero, hidden_bias]))


def gru_from_torch(halves: Halves) -> Parameters:
    """Biases of the reset and update gate are added; those of the new gate stay apart."""
    weight, b_ih, b_hh = _stacked(halves, 3)
    both = np.stack([b_ih[0] + b_hh[0], b_ih[1] + b_hh[1], b_ih[2]])
    return Parameters(weight, both, b_hh[2])
