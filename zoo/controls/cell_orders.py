"""Sound recurrent cells whose products and memory are arranged in other ways, in numpy."""

from __future__ import annotations

import numpy as np

from assay.zoo.sound_sequences import Array, LoopCells, along_steps, sigmoid

States = tuple[Array, ...]


class GatesApart(LoopCells):
    """Each gate has two products of its own: one of the input, one of the state."""

    contract = along_steps("zoo.cells-gates-apart")

    def step(self, kind: str, x: Array, state: States, weight: Array, bias: Array) -> States:
        """The state after one step."""
        h = state[0]
        if kind == "rnn":
            return (np.tanh(self.gate(x, h, weight, bias)),)
        if kind == "lstm":
            return self.lstm_gates(
                np.stack([self.gate(x, h, w, b) for w, b in zip(weight, bias, strict=True)]),
                state[1],
            )
        r, z = (sigmoid(self.gate(x, h, weight[i], bias[i])) for i in (0, 1))
        of_x, of_h = self.halves(weight[2], x)
        inner = r * (h @ of_h.T) if self.after_product(kind) else (r * h) @ of_h.T
        n = np.tanh(inner + (bias[2] + x @ of_x.T))
        return (n - z * n + z * h,)

    def gate(self, x: Array, h: Array, weight: Array, bias: Array) -> Array:
        """[B, I] and [B, Hd] to [B, Hd], the bias first."""
        of_x, of_h = self.halves(weight, x)
        return np.asarray(bias + x @ of_x.T + h @ of_h.T)

    def halves(self, weight: Array, x: Array) -> tuple[Array, Array]:
        """The columns of the input and those of the state."""
        return weight[:, : x.shape[-1]], weight[:, x.shape[-1] :]


class StateFirst(GatesApart):
    """The product of the state comes before that of the input."""

    contract = along_steps("zoo.cells-state-first")

    def gate(self, x: Array, h: Array, weight: Array, bias: Array) -> Array:
        """Transposed weights in memory of their own."""
        of_x, of_h = (np.ascontiguousarray(half.T) for half in self.halves(weight, x))
        return np.asarray(h @ of_h + x @ of_x + bias)


class WideCells(GatesApart):
    """Gates and products in float64; the state is float32 between steps."""

    contract = along_steps("zoo.cells-double")

    def step(self, kind: str, x: Array, state: States, weight: Array, bias: Array) -> States:
        """Rounded once a step."""
        wide = tuple(s.astype(np.float64) for s in state)
        arrays = (a.astype(np.float64) for a in (weight, bias))
        after = super().step(kind, x.astype(np.float64), wide, *arrays)
        return tuple(s.astype(x.dtype) for s in after)


class RowsOneByOne(LoopCells):
    """Each sample by itself, only as far as it is long."""

    contract = along_steps("zoo.cells-rows")

    def run(
        self,
        kind: str,
        x: Array,
        weight: Array,
        bias: Array,
        given: tuple[Array | None, ...],
        lengths: Array | None,
        reverse: bool,
    ) -> tuple[Array, States]:
        """Outputs and the last states, stacked."""
        if not len(x) or (lengths is not None and lengths.shape != x.shape[:1]):
            return super().run(kind, x, weight, bias, given, lengths, reverse)
        outs, lasts = [], []
        for b in range(len(x)):
            row = slice(b, b + 1)
            own = tuple(None if s is None else s[row] for s in given)
            end = None if lengths is None else lengths[row]
            out, last = super().run(kind, x[row], weight, bias, own, end, reverse)
            outs.append(out)
            lasts.append(last)
        return np.concatenate(outs), tuple(
            np.concatenate(part) for part in zip(*lasts, strict=True)
        )
