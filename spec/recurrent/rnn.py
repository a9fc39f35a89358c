"""Elman network: h_t = tanh(W [x_t; h_{t-1}] + b)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Shaped

from assay.spec.contraction import product_plus
from assay.spec.functions import tanh
from assay.spec.recurrent.cell import Reading, State
from assay.spec.recurrent.gates import check_shapes, gate_gradients, joined, weighted
from assay.spec.recurrent.lengths import Lengths
from assay.spec.recurrent.sequence import (
    arranged,
    back_through,
    cotangents,
    history,
    initial,
    outputs_of,
    restored,
    stacked,
)
from assay.spec.scalars import Array

X = Shaped[np.ndarray, "B T I"]
H = Shaped[np.ndarray, "B Hd"]
Outputs = Shaped[np.ndarray, "B T Hd"]
Weight = Shaped[np.ndarray, "Hd K"]
Bias = Shaped[np.ndarray, "Hd"]


class RnnResult(NamedTuple):
    """Outputs of all steps, and the state after the last one."""

    outputs: Outputs
    h: H


class RnnGradients(NamedTuple):
    """Cotangents of the inputs, each in its input's shape."""

    x: X
    weight: Weight
    bias: Bias
    h0: H


@dataclass(frozen=True)
class RnnCell:
    """The parameters of one cell."""

    weight: Weight
    bias: Bias

    def read(self, state: State, x: Array) -> Reading:
        """W [x; h] + b.

        >>> cell = RnnCell(np.array([[1.0, 2.0]]), np.zeros(1))
        >>> cell.read((np.array([[-1.0]]),), np.array([[5.0]]))[0].tolist()
        [[3.0]]
        """
        return (weighted(joined(x, state[0]), self.weight, self.bias),)

    def after(self, reading: Reading) -> State:
        """Its tanh."""
        return (tanh(reading[0]),)

    def back(self, reading: Reading, after: State, d: State, before: Array) -> tuple[State, Array]:
        """dz = dh (1 - h^2), and dz W_h into the state before."""
        dz = d[0] * (1 - after[0] * after[0])
        width = self.weight.shape[1] - self.weight.shape[0]
        return (product_plus(dz, self.weight[:, width:], before),), dz


def rnn(
    x: X,
    weight: Weight,
    bias: Bias,
    h0: H | None = None,
    *,
    lengths: Lengths | None = None,
    reverse: bool = False,
) -> RnnResult:
    """All outputs and the last state of a tanh recurrence.

    x [B, T, I], weight [Hd, I+Hd] with the input's columns first, bias [Hd], h0 [B, Hd] (zeros
    unless given). The returned state continues the sequence. T = 0 returns h0. ``lengths`` [B]:
    row b ends after lengths[b] steps; its outputs beyond are 0, what x holds there has no
    influence, and h is the state at its own end. ``reverse``: each row is read from its last step
    to its first, and outputs stand at the position that was read. Source: J. Elman, "Finding
    structure in time" (1990).

    >>> x = np.array([[[1.0], [0.0]]])
    >>> run = rnn(x, np.array([[1.0, 0.0]]), np.zeros(1))
    >>> run.outputs.round(4).ravel().tolist(), run.h.tolist()
    ([0.7616, 0.0], [[0.0]])
    """
    check_shapes(x, weight, bias, None)
    steps = arranged(x, lengths, reverse)
    (h,) = history(RnnCell(weight, bias), (initial("h0", h0, steps, len(bias)),), steps)
    return RnnResult(restored(outputs_of(h, steps), lengths, reverse), h[-1])


def rnn_backward(
    x: X,
    weight: Weight,
    bias: Bias,
    cotangent: Outputs,
    h_cotangent: H | None = None,
    h0: H | None = None,
    *,
    lengths: Lengths | None = None,
    reverse: bool = False,
) -> RnnGradients:
    """Gradients of sum(outputs * cotangent) + sum(h * h_cotangent), back through time.

    dz_t = dh_t (1 - h_t^2) and dh_{t-1} = dz_t W_h + cotangent_{t-1}. Source: P. Werbos,
    "Backpropagation through time" (1990), equations 13 to 15.
    """
    check_shapes(x, weight, bias, None)
    steps = arranged(x, lengths, reverse)
    cell = RnnCell(weight, bias)
    states = history(cell, (initial("h0", h0, steps, len(bias)),), steps)
    arriving = cotangents(cotangent, h_cotangent, steps, lengths, reverse)
    each, (dh0,) = back_through(cell, states, (arriving.last,), arriving.before, steps)
    dz = stacked(each, steps, len(bias))
    grads = gate_gradients(dz, steps.x, states[0][:-1], weight[None])
    return RnnGradients(restored(grads.x, lengths, reverse), grads.weight[0], grads.bias[0], dh0)
