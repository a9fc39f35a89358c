"""Sound kernels along sequences to plant faults in: recurrent cells and scans, step by step."""

from __future__ import annotations

from typing import Any

import numpy as np

from assay.impl.contract import Contract
from assay.impl.numpy_backend import NumpyBackend
from assay.impl.protocol import implements, implements_vjp

Array = np.ndarray


def along_steps(name: str, **promises: Any) -> Contract:
    """The contract of these kernels under a name, with what differs."""
    return Contract(name, **{"provider": "zoo", **promises})


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x))."""
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-x)))


def fits(**wanted: tuple[Array | None, tuple[int, ...]]) -> None:
    """ValueError for an input of another shape."""
    for name, (given, shape) in wanted.items():
        if given is not None and given.shape != shape:
            raise ValueError(f"{name} has shape {given.shape}, should be {shape}")


class LoopCells(NumpyBackend):
    """RNN, LSTM and GRU in float32, step by step; the gradient of an RNN by hand."""

    contract = along_steps("zoo.cells")

    @implements("rnn")
    def rnn(
        self,
        x: Array,
        weight: Array,
        bias: Array,
        *,
        h0: Array | None = None,
        lengths: Array | None = None,
        reverse: bool = False,
    ) -> tuple[Array, Array]:
        """Outputs [B, T, Hd] and the last state."""
        self.check(x, weight, bias, (), h0=h0)
        out, (h,) = self.run("rnn", x, weight, bias, (h0,), lengths, reverse)
        return out, h

    @implements("lstm")
    def lstm(
        self,
        x: Array,
        weight: Array,
        bias: Array,
        *,
        h0: Array | None = None,
        c0: Array | None = None,
        lengths: Array | None = None,
        reverse: bool = False,
    ) -> tuple[Array, Array, Array]:
        """Outputs [B, T, Hd] and both parts of the last state."""
        self.check(x, weight, bias, (4,), h0=h0, c0=c0)
        out, (h, c) = self.run("lstm", x, weight, bias, (h0, c0), lengths, reverse)
        return out, h, c

    @implements("gru")
    def gru(
        self,
        x: Array,
        weight: Array,
        bias: Array,
        *,
        h0: Array | None = None,
        lengths: Array | None = None,
        reverse: bool = False,
        reset_after: bool = False,
    ) -> tuple[Array, Array]:
        """Outputs [B, T, Hd] and the last state."""
        self.check(x, weight, bias, (3,), h0=h0)
        kind = "gru_after" if reset_after else "gru"
        out, (h,) = self.run(kind, x, weight, bias, (h0,), lengths, reverse)
        return out, h

    @implements_vjp("rnn")
    def rnn_vjp(
        self,
        x: Array,
        weight: Array,
        bias: Array,
        *,
        out: Array,
        h: Array,
        h0: Array | None = None,
    ) -> dict[str, Array]:
        """``out`` and ``h`` are the cotangents; rows are read forwards, to their ends."""
        y, _ = self.rnn(x, weight, bias, h0=h0)
        start = self.start(h0, x, weight)
        before = np.concatenate([start[:, None], y[:, :-1]], 1) if x.shape[1] else y
        dh, dx = h.copy(), np.zeros_like(x)
        grads = {"weight": np.zeros_like(weight), "bias": np.zeros_like(bias)}
        for t in range(x.shape[1])[::-1]:
            dz = (dh + out[:, t]) * (1 - y[:, t] ** 2)
            read = np.concatenate([x[:, t], before[:, t]], -1)
            grads["weight"] += dz.T @ read
            grads["bias"] += dz.sum(0)
            flow = dz @ weight
            dx[:, t], dh = flow[:, : x.shape[-1]], flow[:, x.shape[-1] :]
        given = {} if h0 is None else {"h0": self.into_start(dh)}
        return {"x": dx, **grads, **given}

    def into_start(self, dh: Array) -> Array:
        """The gradient into the given state."""
        return dh

    def check(
        self, x: Array, weight: Array, bias: Array, lead: tuple[int, ...], **states: Any
    ) -> None:
        """Refuse shapes that do not fit together."""
        hidden = weight.shape[-2]
        fits(
            weight=(weight, (*lead, hidden, x.shape[-1] + hidden)),
            bias=(bias, (*lead, hidden)),
            **{n: (s, (x.shape[0], hidden)) for n, s in states.items()},
        )

    def start(self, given: Array | None, x: Array, weight: Array) -> Array:
        """The state before the first step."""
        shape = (x.shape[0], weight.shape[-2])
        return np.zeros(shape, x.dtype) if given is None else given

    def turned(self, x: Array, ends: Array) -> Array:
        """Each row from its end to its start; what lies beyond stays."""
        steps = np.arange(x.shape[1])
        order = np.where(steps < ends[:, None], ends[:, None] - 1 - steps, steps)
        return np.asarray(np.take_along_axis(x, order[..., None], 1))

    def blanked(self, x: Array, exists: Array) -> Array:
        """The input with zeros beyond each row's end."""
        return np.where(exists[..., None], x, np.zeros_like(x))

    def seen(self, x: Array, t: int) -> Array:
        """What step t reads."""
        return np.asarray(x[:, t])

    def kept(self, exists: Array, new: Array, old: Array) -> Array:
        """The state after a step; a row that has ended keeps its own."""
        return np.where(exists[:, None], new, old)

    def final(self, state: tuple[Array, ...], steps: int) -> tuple[Array, ...]:
        """The last state."""
        return tuple(s.copy() for s in state)

    def run(
        self,
        kind: str,
        x: Array,
        weight: Array,
        bias: Array,
        given: tuple[Array | None, ...],
        lengths: Array | None,
        reverse: bool,
    ) -> tuple[Array, tuple[Array, ...]]:
        """Outputs and the last state of one kind of cell."""
        ends = np.full(len(x), x.shape[1]) if lengths is None else lengths
        if ends.shape != (len(x),) or np.any(ends > x.shape[1]):
            raise ValueError(f"lengths {ends.tolist()} do not fit x {x.shape}")
        exists = np.arange(x.shape[1]) < ends[:, None]
        read = self.blanked(x, exists)
        read = self.turned(read, ends) if reverse else read
        state = tuple(self.start(s, x, weight) for s in given)
        out = np.zeros((*x.shape[:2], weight.shape[-2]), x.dtype)
        for t in range(x.shape[1]):
            new = self.step(kind, self.seen(read, t), state, weight, bias)
            state = tuple(self.kept(exists[:, t], a, b) for a, b in zip(new, state, strict=True))
            out[:, t] = np.where(exists[:, t, None], new[0], 0)
        out = self.turned(out, ends) if reverse else out
        return self.rows(out), self.final(state, x.shape[1])

    def rows(self, out: Array) -> Array:
        """The outputs as they are handed back."""
        return out

    def step(
        self, kind: str, x: Array, state: tuple[Array, ...], weight: Array, bias: Array
    ) -> tuple[Array, ...]:
        """The state after one step."""
        h, width = state[0], x.shape[-1]
        z = np.moveaxis(np.concatenate([x, h], -1) @ np.swapaxes(weight, -1, -2), -2, -2) + (
            bias if bias.ndim == 1 else bias[:, None]
        )
        if kind == "rnn":
            return (np.tanh(z),)
        if kind == "lstm":
            return self.lstm_gates(z, state[1])
        r, u = sigmoid(z[0]), sigmoid(z[1])
        of_x, of_h = weight[2][:, :width], weight[2][:, width:]
        if self.after_product(kind):
            n = np.tanh(x @ of_x.T + bias[2] + r * (h @ of_h.T))
        else:
            n = np.tanh(x @ of_x.T + (r * h) @ of_h.T + bias[2])
        return ((1 - u) * n + u * h,)

    def after_product(self, kind: str) -> bool:
        """Whether the reset gate scales the product."""
        return kind == "gru_after"

    def lstm_gates(self, z: Array, c: Array) -> tuple[Array, Array]:
        """Forget, input, candidate and output."""
        c = sigmoid(z[0]) * c + sigmoid(z[1]) * np.tanh(z[2])
        return sigmoid(z[3]) * np.tanh(c), c


class LoopScans(NumpyBackend):
    """Affine and selective scan and the causal convolution in float32, step by step; the gradient
    of an affine scan by hand.
    """

    contract = along_steps("zoo.scans")

    @implements("affine_scan")
    def affine_scan(self, a: Array, b: Array, x: Array, *, h0: Array | None = None) -> Array:
        """All states [B, T, E]."""
        fits(h0=(h0, (x.shape[0], x.shape[2])))
        a, b = (self.spread(p, x) for p in (a, b))
        start = np.zeros((x.shape[0], x.shape[2]), x.dtype) if h0 is None else h0
        return self.scan(a, b * x, start)

    @implements_vjp("affine_scan")
    def affine_scan_vjp(
        self, a: Array, b: Array, x: Array, *, states: Array, h0: Array | None = None
    ) -> dict[str, Array]:
        """``states`` is the cotangent; coefficients have all axes."""
        h = self.affine_scan(a, b, x, h0=h0)
        start = np.zeros((x.shape[0], x.shape[2]), x.dtype) if h0 is None else h0
        before = np.concatenate([start[:, None], h[:, :-1]], 1) if x.shape[1] else h
        slopes, carry = np.zeros_like(x), np.zeros_like(start)
        for t in range(x.shape[1])[::-1]:
            slopes[:, t] = states[:, t] + self.carried(carry)
            carry = a[:, t] * slopes[:, t]
        given = {} if h0 is None else {"h0": carry}
        return {"a": slopes * before, "b": slopes * x, "x": slopes * b, **given}

    def carried(self, carry: Array) -> Array:
        """What flows back from the step after."""
        return carry

    def spread(self, p: Array, x: Array) -> Array:
        """A coefficient in the shape of x."""
        if p.shape != x.shape and p.shape[-1:] != x.shape[-1:]:
            raise ValueError(f"a coefficient has shape {p.shape}, x {x.shape}")
        return np.broadcast_to(p, x.shape)

    def scan(self, a: Array, v: Array, start: Array) -> Array:
        """h = a h + v; a and v [B, T, ...], start [B, ...]."""
        states, h = np.zeros(v.shape, v.dtype), self.begun(start)
        for t in range(v.shape[1]):
            h = self.factor(a[:, t]) * self.resumed(h, t, v.shape[1]) + self.added(v, t)
            states[:, t] = h
        return states

    def begun(self, start: Array) -> Array:
        """The state before the first step."""
        return start

    def resumed(self, h: Array, t: int, steps: int) -> Array:
        """The state that step t starts from."""
        return h

    def factor(self, a: Array) -> Array:
        """What a state is multiplied by."""
        return a

    def added(self, v: Array, t: int) -> Array:
        """What step t adds."""
        return np.asarray(v[:, t])

    @implements("selective_scan")
    def selective_scan(
        self,
        u: Array,
        delta: Array,
        a: Array,
        b: Array,
        c: Array,
        *,
        d: Array | None = None,
        h0: Array | None = None,
    ) -> tuple[Array, Array]:
        """Outputs [B, T, E] and the last state [B, E, Ns]."""
        (batch, steps, channels), states = u.shape, a.shape[1]
        mix, shape = (batch, steps, states), (batch, channels, states)
        fits(
            delta=(delta, u.shape), a=(a, (channels, states)), b=(b, mix), c=(c, mix),
            d=(d, (channels,)), h0=(h0, shape),
        )  # fmt: skip
        delta = self.step_size(delta)
        start = np.zeros(shape, u.dtype) if h0 is None else h0
        h = self.decays(delta[..., None] * a, (delta * u)[..., None] * b[:, :, None], start)
        y = (h * c[:, :, None]).sum(-1)
        last = h[:, -1].copy() if steps else start.copy()
        return y if d is None else y + d * u, last

    def step_size(self, delta: Array) -> Array:
        """The step sizes as they are used."""
        return delta

    def decays(self, z: Array, v: Array, start: Array) -> Array:
        """The scan with factors exp(-z)."""
        return self.scan(np.exp(-z), v, start)

    @implements("causal_conv1d")
    def causal_conv1d(
        self,
        x: Array,
        weight: Array,
        *,
        bias: Array | None = None,
        history: Array | None = None,
    ) -> tuple[Array, Array]:
        """Outputs [B, T, E] and the inputs that later taps still see."""
        (batch, steps, channels), taps = x.shape, weight.shape[0]
        past = (batch, taps - 1, channels)
        fits(weight=(weight, (taps, channels)), bias=(bias, (channels,)), history=(history, past))
        seen = np.concatenate([np.zeros(past, x.dtype) if history is None else history, x], 1)
        y = np.zeros(x.shape, x.dtype)
        for k in range(taps):
            y += weight[k] * seen[:, taps - 1 - k : taps - 1 - k + steps]
        y = y if bias is None else y + bias
        return y, self.remembered(seen, y, steps)

    def remembered(self, seen: Array, y: Array, steps: int) -> Array:
        """The last inputs, of which those before the first step are some where there are few."""
        return seen[:, steps:].copy()


class DoublingScans(LoopScans):
    """Scans as trees: maps composed with those 1, 2, 4, ... steps before."""

    contract = along_steps("zoo.scans-doubling")

    def scan(self, a: Array, v: Array, start: Array) -> Array:
        """Without a loop over all steps."""
        a, reach = np.broadcast_to(a, v.shape), 1
        while reach < v.shape[1]:
            v = np.concatenate([v[:, :reach], a[:, reach:] * v[:, :-reach] + v[:, reach:]], axis=1)
            a = np.concatenate([a[:, :reach], a[:, reach:] * a[:, :-reach]], axis=1)
            reach *= 2
        return np.asarray(a * start[:, None] + v)
