"""Gated recurrent unit: h_t = (1 - z) n + z h_{t-1}, with the gates (r, z, n) from x_t and h_{t-1}.

Reset before: n = tanh(W_x x + W_h (r h) + b + c). Reset after: n = tanh(W_x x + b + r (W_h h + c)).
The two are different functions.
"""

from __future__ import annotations

from collections.abc import Callable
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
    gate_sums,
    joined,
    opened,
    outer_sum,
    weighted,
)
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
Weight = Shaped[np.ndarray, "3 Hd K"]
Bias = Shaped[np.ndarray, "3 Hd"]
HiddenBias = Shaped[np.ndarray, "Hd"]


class GruResult(NamedTuple):
    """Outputs of all steps, and the state after the last one."""

    outputs: Outputs
    h: H


class GruGradients(NamedTuple):
    """Cotangents of the inputs, each in its input's shape."""

    x: X
    weight: Weight
    bias: Bias
    hidden_bias: HiddenBias
    h0: H


@dataclass(frozen=True)
class Blend:
    """A way to evaluate (1 - z) n + z h, and the gradient dh (1 - z) into n. All are equal."""

    mix: Callable[[Array, Array, Array], Array]
    share: Callable[[Array, Array], Array]


CONVEX = Blend(lambda z, n, h: (1 - z) * n + z * h, lambda dh, z: dh * (1 - z))
LEANING = Blend(lambda z, n, h: n + z * (h - n), lambda dh, z: dh - dh * z)


@dataclass(frozen=True)
class GruCell:
    """The parameters of one cell, and how it is evaluated.

    weight [3, Hd, I+Hd] and bias [3, Hd] hold reset, update and new gate; hidden_bias [Hd] is c.
    """

    weight: Weight
    bias: Bias
    hidden_bias: HiddenBias
    reset_after: bool
    blend: Blend = CONVEX

    def reset_and_update(self, x: Array, h: Array) -> tuple[Array, Array]:
        """The gates r and z, for one step or for all steps at once."""
        r, z = opened(gate_sums(x, h, self.weight[:2], self.bias[:2]))
        return r, z

    def recurrent_sum(self, h: Array) -> Array:
        """W_h h + c of the new gate."""
        width = self.weight.shape[-1] - h.shape[-1]
        return weighted(h, self.weight[2][:, width:], self.hidden_bias)

    def new(self, x: Array, h: Array, r: Array, s: Array) -> Array:
        """The candidate state n."""
        if self.reset_after:
            inputs = weighted(x, self.weight[2][:, : x.shape[-1]], self.bias[2])
            return tanh(inputs + r * s)
        return tanh(weighted(joined(x, r * h), self.weight[2], self.hidden_bias, self.bias[2]))

    def read(self, state: State, x: Array) -> Reading:
        """The gates r, z, n, the recurrent half of n's sum (reset after), and h before."""
        (h,) = state
        r, z = self.reset_and_update(x, h)
        s = self.recurrent_sum(h) if self.reset_after else h
        return r, z, self.new(x, h, r, s), s, h

    def after(self, reading: Reading) -> State:
        """(1 - z) n + z h."""
        _, z, n, _, h = reading
        return (self.blend.mix(z, n, h),)

    def back(self, reading: Reading, after: State, d: State, before: Array) -> tuple[State, Array]:
        """Gradients into h before; into the sums of r, z, n and, as a fourth, into W_h (r h) or
        W_h h + c.
        """
        (r, z, n, s, h), (dh,) = reading, d
        hidden = h.shape[-1]
        columns = columns_of(self.weight, self.weight.shape[-1] - hidden, self.weight.shape[-1])
        dn = self.blend.share(dh, z) * (1 - n * n)
        dz = dh * (h - n) * (z * (1 - z))
        if self.reset_after:
            dr, ds = dn * s * (r * (1 - r)), dn * r
            flowing = product_plus(np.concatenate([dr, dz, ds], axis=-1), columns, dh * z, before)
        else:
            into_reset = np.matmul(dn, columns[2 * hidden :])
            dr, ds = into_reset * h * (r * (1 - r)), dn
            gates = np.concatenate([dr, dz], axis=-1)
            flowing = product_plus(gates, columns[: 2 * hidden], into_reset * r, dh * z, before)
        return (flowing,), np.concatenate([dr, dz, dn, ds], axis=-1)


def _cell(
    x: Array,
    weight: Weight,
    bias: Bias,
    hidden_bias: HiddenBias | None,
    reset_after: bool,
    blend: Blend,
) -> GruCell:
    check_shapes(x, weight, bias, 3)
    hidden = bias.shape[-1:]
    if hidden_bias is None:
        hidden_bias = np.zeros(hidden, dtype=bias.dtype)
    if hidden_bias.shape != hidden:
        raise ValueError(f"hidden_bias has shape {hidden_bias.shape}, should be [hidden] {hidden}")
    return GruCell(weight, bias, hidden_bias, reset_after, blend)


def gru(
    x: X,
    weight: Weight,
    bias: Bias,
    hidden_bias: HiddenBias | None = None,
    h0: H | None = None,
    *,
    lengths: Lengths | None = None,
    reverse: bool = False,
    reset_after: bool = False,
    blend: Blend = CONVEX,
) -> GruResult:
    """All outputs and the last state of a GRU.

    x [B, T, I]; weight [3, Hd, I+Hd] and bias [3, Hd] hold the gates in the order reset, update,
    new, the input's columns first; hidden_bias [Hd] (zeros unless given) is the bias c of the new
    gate's recurrent half; h0 [B, Hd] (zeros unless given). ``lengths`` and ``reverse`` as in
    ``rnn``; ``blend`` is a way of evaluation and changes no value. Sources: K. Cho et al.,
    "Learning phrase representations" (2014), equations 5 to 8, with z and 1 - z exchanged as is
    usual (reset before); the reset-after form is that of cuDNN.

    >>> still = np.zeros((3, 1, 2))
    >>> gru(np.ones((1, 2, 1)), still, np.zeros((3, 1)), h0=np.ones((1, 1))).h.tolist()
    [[0.25]]
    """
    cell = _cell(x, weight, bias, hidden_bias, reset_after, blend)
    steps = arranged(x, lengths, reverse)
    (h,) = history(cell, (initial("h0", h0, steps, bias.shape[-1]),), steps)
    return GruResult(restored(outputs_of(h, steps), lengths, reverse), h[-1])


def _parameter_gradients(
    cell: GruCell, d: Shaped[np.ndarray, "T B 4Hd"], x: Array, h: Array
) -> tuple[Weight, Bias, HiddenBias]:
    """Sums over steps and rows of each gate's gradient times what the gate read."""
    hidden = h.shape[-1]
    gates, dn, ds = d[..., : 2 * hidden], d[..., 2 * hidden : 3 * hidden], d[..., 3 * hidden :]
    read = h if cell.reset_after else cell.reset_and_update(x, h)[0] * h
    new = joined(outer_sum(dn, x), outer_sum(ds, read))
    weight = np.concatenate([outer_sum(gates, joined(x, h)), new], axis=0)
    bias = d[..., : 3 * hidden].sum(axis=(0, 1))
    return (
        weight.reshape(*cell.weight.shape),
        bias.reshape(*cell.bias.shape),
        ds.sum(axis=(0, 1)),
    )


def gru_backward(
    x: X,
    weight: Weight,
    bias: Bias,
    cotangent: Outputs,
    h_cotangent: H | None = None,
    hidden_bias: HiddenBias | None = None,
    h0: H | None = None,
    *,
    lengths: Lengths | None = None,
    reverse: bool = False,
    reset_after: bool = False,
    blend: Blend = CONVEX,
) -> GruGradients:
    """Gradients of sum(outputs * cotangent) + sum(h * h_cotangent), back through time.

    With dn = dh (1-z)(1-n^2) into the new gate's sum: z's sum gets dh (h - n) z(1-z). Reset after:
    r's gets dn s r(1-r) for s = W_h h + c, and W_h h gets dn r. Reset before: with m = dn W_h, r's
    gets m h r(1-r), and h gets m r.
    """
    cell = _cell(x, weight, bias, hidden_bias, reset_after, blend)
    steps = arranged(x, lengths, reverse)
    hidden = bias.shape[-1]
    states = history(cell, (initial("h0", h0, steps, hidden),), steps)
    arriving = cotangents(cotangent, h_cotangent, steps, lengths, reverse)
    each, (dh0,) = back_through(cell, states, (arriving.last,), arriving.before, steps)
    d = stacked(each, steps, 4 * hidden)
    dx = np.matmul(d[..., : 3 * hidden], columns_of(weight, 0, x.shape[-1]))
    parameters = _parameter_gradients(cell, d, steps.x, states[0][:-1])
    return GruGradients(restored(dx, lengths, reverse), *parameters, dh0)
