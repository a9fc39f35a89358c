"""Long short-term memory: c_t = f c_{t-1} + i g and h_t = o tanh(c_t), where the gates f, i, g, o
read W [x_t; h_{t-1}] + b.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Shaped

from assay.spec.contraction import product_plus
from assay.spec.functions import tanh
from assay.spec.recurrent.cell import Reading, State
from assay.spec.recurrent.gates import (
    check_shapes,
    columns_of,
    gate_gradients,
    gate_sums,
    opened,
)
from assay.spec.recurrent.lengths import Lengths
from assay.spec.recurrent.sequence import (
    Arranged,
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
Weight = Shaped[np.ndarray, "4 Hd K"]
Bias = Shaped[np.ndarray, "4 Hd"]


class LstmResult(NamedTuple):
    """Outputs of all steps, and both parts of the state after the last one."""

    outputs: Outputs
    h: H
    c: H


class LstmGradients(NamedTuple):
    """Cotangents of the inputs, each in its input's shape."""

    x: X
    weight: Weight
    bias: Bias
    h0: H
    c0: H


@dataclass(frozen=True)
class LstmCell:
    """The parameters of one cell: weight [4, Hd, I+Hd] and bias [4, Hd] in storage order."""

    weight: Weight
    bias: Bias

    def read(self, state: State, x: Array) -> Reading:
        """Forget, input, candidate and output gate, and c before: sigmoids, but tanh of the
        candidate's sum.
        """
        h, c = state
        sums = gate_sums(x, h, self.weight, self.bias)
        f, i, o = opened(sums[[0, 1, 3]])
        return f, i, tanh(sums[2]), o, c

    def after(self, reading: Reading) -> State:
        """The state (h, c) after the step.

        >>> half, one = np.full((1, 1), 0.5), np.ones((1, 1))
        >>> h, c = LstmCell(np.zeros((4, 1, 2)), np.zeros((4, 1))).after((half, half, 0, half, one))
        >>> c.tolist(), h.round(6).tolist()
        ([[0.5]], [[0.231059]])
        """
        f, i, g, o, c = reading
        c = f * c + i * g
        return o * tanh(c), c

    def back(self, reading: Reading, after: State, d: State, before: Array) -> tuple[State, Array]:
        """Gradients into (h, c) before, and into the gates' sums, beside each other."""
        f, i, g, o, c = reading
        squashed = tanh(after[1])
        dh, dc = d[0], d[1] + d[0] * o * (1 - squashed * squashed)
        dz = np.concatenate(
            [
                dc * c * (f * (1 - f)),
                dc * g * (i * (1 - i)),
                dc * i * (1 - g * g),
                dh * squashed * (o * (1 - o)),
            ],
            axis=-1,
        )
        width = self.weight.shape[-1] - self.weight.shape[-2]
        recurrent = columns_of(self.weight, width, self.weight.shape[-1])
        return (product_plus(dz, recurrent, before), dc * f), dz


def _states(cell: LstmCell, steps: Arranged, h0: H | None, c0: H | None) -> tuple[Array, ...]:
    hidden = cell.bias.shape[-1]
    start = tuple(initial(name, given, steps, hidden) for name, given in (("h0", h0), ("c0", c0)))
    return history(cell, start, steps)


def lstm(
    x: X,
    weight: Weight,
    bias: Bias,
    h0: H | None = None,
    c0: H | None = None,
    *,
    lengths: Lengths | None = None,
    reverse: bool = False,
) -> LstmResult:
    """All outputs and the last state of an LSTM.

    x [B, T, I]; weight [4, Hd, I+Hd] and bias [4, Hd] hold the gates in the order forget, input,
    candidate, output, the input's columns first; h0 and c0 [B, Hd] (zeros unless given). The
    returned pair (h, c) continues the sequence: h alone does not. T = 0 returns it as given.
    ``lengths`` and ``reverse`` as in ``rnn``. Source: F. Gers, J. Schmidhuber, F. Cummins,
    "Learning to forget" (2000), without peepholes.

    >>> still = np.zeros((4, 1, 2))
    >>> run = lstm(np.ones((1, 3, 1)), still, np.zeros((4, 1)), c0=np.ones((1, 1)))
    >>> run.c.tolist()
    [[0.125]]
    """
    check_shapes(x, weight, bias, 4)
    steps = arranged(x, lengths, reverse)
    h, c = _states(LstmCell(weight, bias), steps, h0, c0)
    return LstmResult(restored(outputs_of(h, steps), lengths, reverse), h[-1], c[-1])


def lstm_backward(
    x: X,
    weight: Weight,
    bias: Bias,
    cotangent: Outputs,
    h_cotangent: H | None = None,
    c_cotangent: H | None = None,
    h0: H | None = None,
    c0: H | None = None,
    *,
    lengths: Lengths | None = None,
    reverse: bool = False,
) -> LstmGradients:
    """Gradients of sum(outputs * cotangent) + sum(h * h_cotangent) + sum(c * c_cotangent).

    dc_t += dh_t o (1 - tanh(c_t)^2); the gates' sums get dc c_{t-1} f(1-f), dc g i(1-i),
    dc i (1-g^2) and dh tanh(c_t) o(1-o); dc_{t-1} = dc f and dh_{t-1} = dz W_h + cotangent_{t-1}.
    Source: K. Greff et al., "LSTM: a search space odyssey" (2017),
    appendix.
    """
    check_shapes(x, weight, bias, 4)
    steps = arranged(x, lengths, reverse)
    cell = LstmCell(weight, bias)
    states = _states(cell, steps, h0, c0)
    arriving = cotangents(cotangent, h_cotangent, steps, lengths, reverse)
    dc = np.zeros_like(arriving.last) if c_cotangent is None else c_cotangent
    last = (arriving.last, dc)
    each, (dh0, dc0) = back_through(cell, states, last, arriving.before, steps)
    dz = stacked(each, steps, bias.shape[0] * bias.shape[1])
    grads = gate_gradients(dz, steps.x, states[0][:-1], weight)
    return LstmGradients(restored(grads.x, lengths, reverse), grads.weight, grads.bias, dh0, dc0)
