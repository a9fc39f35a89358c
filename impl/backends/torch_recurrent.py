"""torch.rnn and torch.rnn.loop: torch's recurrent modules and cells, and the recurrences written
out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from assay.impl.contract import Contract
from assay.impl.protocol import Unsupported, implements
from assay.impl.torch_backend import TorchBackend

LSTM_ORDER = (1, 0, 2, 3)
"""torch stores an LSTM's gates as input, forget, candidate, output."""


class Halves(NamedTuple):
    """Parameters as torch names them: one layer, one direction."""

    weight_ih: Tensor
    weight_hh: Tensor
    bias_ih: Tensor
    bias_hh: Tensor


def check_cell(x: Tensor, weight: Tensor, bias: Tensor, gates: int | None, **states: Any) -> None:
    """ValueError for shapes that do not fit together: torch.cat would take some of them."""
    lead = () if gates is None else (gates,)
    hidden = weight.shape[-2]
    wanted = {
        "weight": (weight, (*lead, hidden, x.shape[-1] + hidden)),
        "bias": (bias, (*lead, hidden)),
        **{n: (s, (x.shape[0], hidden)) for n, s in states.items()},
    }
    for name, (given, shape) in wanted.items():
        if given is not None and tuple(given.shape) != shape:
            raise ValueError(f"{name} has shape {tuple(given.shape)}, should be {shape}")


def check_lengths(lengths: Tensor | None, x: Tensor) -> None:
    """ValueError unless there is one length for each row, none beyond the last step."""
    if lengths is None:
        return
    if tuple(lengths.shape) != (x.shape[0],) or bool((lengths > x.shape[1]).any()):
        raise ValueError(f"lengths {lengths.tolist()} do not fit x {tuple(x.shape)}")


def reversed_rows(x: Tensor, lengths: Tensor | None) -> Tensor:
    """Each row [B, T, ...] from its end to its start; what lies beyond stays."""
    if lengths is None:
        return x.flip(1)
    steps = torch.arange(x.shape[1], device=x.device)
    ends = lengths[:, None]
    order = torch.where(steps < ends, ends - 1 - steps, steps)
    return x.gather(1, order[..., None].expand(x.shape))


def _halves(weight: Tensor, bias: Tensor, hidden_bias: Tensor | None = None) -> Halves:
    """Gates [G, Hd, I+Hd] below each other; the bias of a GRU's recurrent half at its place."""
    width = weight.shape[-1] - weight.shape[-2]
    recurrent = torch.zeros_like(bias)
    if hidden_bias is not None:
        recurrent = torch.cat([recurrent[:2], hidden_bias[None]])
    return Halves(
        weight[..., :width].flatten(0, 1),
        weight[..., width:].flatten(0, 1),
        bias.flatten(),
        recurrent.flatten(),
    )


MODULES: dict[str, Any] = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}
CELLS: dict[str, Any] = {"rnn": nn.RNNCell, "lstm": nn.LSTMCell, "gru": nn.GRUCell}


class TorchRnn(TorchBackend):
    """``nn.RNN``, ``nn.LSTM`` and ``nn.GRU``: batch first, with time first, as one direction of a
    bidirectional module, and their cells in a loop. Rows that end early are packed.

    oneDNN's sigmoid gives 0 where the result is subnormal.
    """

    contract = Contract(
        name="torch.rnn",
        dtypes=("float32", "float64"),
        provider="ATen, oneDNN",
        block_sizes=(8, 16),
        modes=("no_grad", "grad", "time_first.grad", "bidirectional.grad", "cell.grad"),
        subnormals=False,
        requires=("torch",),
    )

    @implements("rnn")
    def rnn(
        self,
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        *,
        h0: Tensor | None = None,
        lengths: Tensor | None = None,
        reverse: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """Outputs [B, T, Hd] and the last state."""
        check_cell(x, weight, bias, None, h0=h0)
        out, h, _ = self._run(
            "rnn", _halves(weight[None], bias[None]), x, h0, None, lengths, reverse
        )
        return out, h

    @implements("lstm")
    def lstm(
        self,
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        *,
        h0: Tensor | None = None,
        c0: Tensor | None = None,
        lengths: Tensor | None = None,
        reverse: bool = False,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Outputs [B, T, Hd] and both parts of the last state."""
        check_cell(x, weight, bias, 4, h0=h0, c0=c0)
        order = list(LSTM_ORDER)
        halves = _halves(weight[order], bias[order])
        return self._run("lstm", halves, x, h0, c0, lengths, reverse)

    @implements("gru")
    def gru(
        self,
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        *,
        hidden_bias: Tensor | None = None,
        h0: Tensor | None = None,
        lengths: Tensor | None = None,
        reverse: bool = False,
        reset_after: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """Outputs [B, T, Hd] and the last state."""
        check_cell(x, weight, bias, 3, h0=h0)
        if hidden_bias is not None and hidden_bias.shape != weight.shape[1:2]:
            raise ValueError(f"hidden_bias has shape {tuple(hidden_bias.shape)}")
        if not reset_after:
            raise Unsupported("gru", "torch has the reset gate after the product alone")
        halves = _halves(weight, bias, hidden_bias)
        out, h, _ = self._run("gru", halves, x, h0, None, lengths, reverse)
        return out, h

    def _run(
        self,
        kind: str,
        halves: Halves,
        x: Tensor,
        h0: Tensor | None,
        c0: Tensor | None,
        lengths: Tensor | None,
        reverse: bool,
    ) -> tuple[Tensor, Tensor, Tensor]:
        check_lengths(lengths, x)
        hidden = halves.weight_hh.shape[1]
        if 0 in x.shape or not hidden:
            raise Unsupported(kind, "torch refuses inputs without rows, steps or features")
        if lengths is not None and bool((lengths < 1).any()):
            raise Unsupported(kind, "torch refuses to pack rows without steps")
        zeros = x.new_zeros(x.shape[0], hidden)
        state = tuple(zeros if s is None else s for s in (h0, c0))
        if self.mode.startswith("cell"):
            return _cells(kind, halves, x, state, lengths, reverse)
        both = self.mode.startswith("bidirectional")
        if both or not reverse:
            return self._module(kind, halves, x, state, lengths, int(reverse) if both else None)
        turned = self._module(kind, halves, reversed_rows(x, lengths), state, lengths, None)
        return (reversed_rows(turned[0], lengths), *turned[1:])

    def _module(
        self,
        kind: str,
        halves: Halves,
        x: Tensor,
        state: tuple[Tensor, ...],
        lengths: Tensor | None,
        direction: int | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The module with these parameters, made on no device; ``direction`` of two, or only one.

        The other direction of two gets the negative parameters, so that they cannot be mixed up.
        """
        first = not self.mode.startswith("time_first")
        ways = 1 if direction is None else 2
        with torch.device("meta"):
            module = MODULES[kind](
                halves.weight_ih.shape[1],
                halves.weight_hh.shape[1],
                batch_first=first,
                bidirectional=ways == 2,
                dtype=x.dtype,
            )
        parameters: dict[str, Tensor] = {}
        for way in range(ways):
            own = way == (direction or 0)
            suffix = "_l0_reverse" if way else "_l0"
            parameters |= {n + suffix: p if own else -p for n, p in halves._asdict().items()}
        given = tuple(s.expand(ways, *s.shape).contiguous() for s in state)
        start = given if kind == "lstm" else given[0]
        read: Any = x if first else x.transpose(0, 1)
        if lengths is not None:
            read = nn.utils.rnn.pack_padded_sequence(
                read, lengths.cpu(), batch_first=first, enforce_sorted=False
            )
        out, last = torch.func.functional_call(module, parameters, (read, start))
        if lengths is not None:
            steps = x.shape[1]
            out, _ = nn.utils.rnn.pad_packed_sequence(out, batch_first=first, total_length=steps)
        if not first:
            out = out.transpose(0, 1)
        hidden, way = halves.weight_hh.shape[1], direction or 0
        out = out[..., way * hidden : (way + 1) * hidden].contiguous()
        h, c = last if kind == "lstm" else (last, last)
        return out, h[way].clone(), c[way].clone()


Step = Callable[[Tensor, tuple[Tensor, ...]], tuple[Tensor, ...]]


def looped(
    step: Step,
    x: Tensor,
    state: tuple[Tensor, ...],
    lengths: Tensor | None,
    reverse: bool,
) -> tuple[Tensor, ...]:
    """Outputs [B, T, Hd] and the last state of a step that is taken again and again; a row that has
    ended keeps its state.
    """
    exists = None
    if lengths is not None:
        exists = torch.arange(x.shape[1], device=x.device) < lengths[:, None]
        x = torch.where(exists[..., None], x, torch.zeros_like(x))
    read = reversed_rows(x, lengths) if reverse else x
    outputs = []
    for t in range(x.shape[1]):
        new = step(read[:, t], state)
        if exists is not None:
            new = tuple(
                torch.where(exists[:, t, None], a, b) for a, b in zip(new, state, strict=True)
            )
        state = new
        out = state[0]
        if exists is not None:
            out = torch.where(exists[:, t, None], out, torch.zeros_like(out))
        outputs.append(out)
    shape = (x.shape[0], 0, state[0].shape[1])
    out = torch.stack(outputs, 1) if outputs else x.new_zeros(shape)
    out = reversed_rows(out, lengths) if reverse else out
    return (out, *(s.clone() for s in state))


def _cells(
    kind: str,
    halves: Halves,
    x: Tensor,
    state: tuple[Tensor, ...],
    lengths: Tensor | None,
    reverse: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """``nn.RNNCell``, ``nn.LSTMCell`` or ``nn.GRUCell``, step by step."""
    with torch.device("meta"):
        cell = CELLS[kind](halves.weight_ih.shape[1], halves.weight_hh.shape[1], dtype=x.dtype)
    parameters = halves._asdict()

    def step(now: Tensor, before: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        start = before if kind == "lstm" else before[0]
        after = torch.func.functional_call(cell, parameters, (now, start))
        return tuple(after) if kind == "lstm" else (after, after)

    out, h, c = looped(step, x, state, lengths, reverse)
    return out, h, c


class TorchRnnLoop(TorchBackend):
    """The recurrences in tensor operations, step by step: any lengths, both places of a GRU's reset
    gate. Padding is replaced by zeros before it is read.
    """

    contract = Contract(
        name="torch.rnn.loop",
        dtypes=("float32", "bfloat16", "float16", "float64"),
        provider="ATen",
        intermediate="input",
        requires=("torch",),
    )

    @implements("rnn")
    def rnn(
        self,
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        *,
        h0: Tensor | None = None,
        lengths: Tensor | None = None,
        reverse: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """tanh(W [x; h] + b)."""
        check_cell(x, weight, bias, None, h0=h0)
        check_lengths(lengths, x)

        def step(now: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            return (torch.tanh(torch.addmm(bias, torch.cat([now, state[0]], 1), weight.T)),)

        out, h = looped(step, x, (_start(h0, x, weight),), lengths, reverse)
        return out, h

    @implements("lstm")
    def lstm(
        self,
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        *,
        h0: Tensor | None = None,
        c0: Tensor | None = None,
        lengths: Tensor | None = None,
        reverse: bool = False,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """c = f c + i g, h = o tanh(c)."""
        check_cell(x, weight, bias, 4, h0=h0, c0=c0)
        check_lengths(lengths, x)
        columns, shift = weight.flatten(0, 1).T, bias.flatten()

        def step(now: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            h, c = state
            f, i, g, o = torch.addmm(shift, torch.cat([now, h], 1), columns).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            return torch.sigmoid(o) * torch.tanh(c), c

        start = (_start(h0, x, weight), _start(c0, x, weight))
        out, h, c = looped(step, x, start, lengths, reverse)
        return out, h, c

    @implements("gru")
    def gru(
        self,
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        *,
        hidden_bias: Tensor | None = None,
        h0: Tensor | None = None,
        lengths: Tensor | None = None,
        reverse: bool = False,
        reset_after: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """h = (1 - z) n + z h."""
        check_cell(x, weight, bias, 3, h0=h0)
        check_lengths(lengths, x)
        if hidden_bias is None:
            hidden_bias = torch.zeros_like(bias[0])
        if hidden_bias.shape != bias[0].shape:
            raise ValueError(f"hidden_bias has shape {tuple(hidden_bias.shape)}")
        width = x.shape[-1]
        gates, shift = weight[:2].flatten(0, 1).T, bias[:2].flatten()
        of_x, of_h = weight[2, :, :width].T, weight[2, :, width:].T

        def step(now: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            (h,) = state
            r, z = torch.sigmoid(torch.addmm(shift, torch.cat([now, h], 1), gates)).chunk(2, 1)
            plain = torch.addmm(bias[2], now, of_x)
            if reset_after:
                n = torch.tanh(plain + r * torch.addmm(hidden_bias, h, of_h))
            else:
                n = torch.tanh(plain + torch.addmm(hidden_bias, r * h, of_h))
            return ((1 - z) * n + z * h,)

        out, h = looped(step, x, (_start(h0, x, weight),), lengths, reverse)
        return out, h


def _start(given: Tensor | None, x: Tensor, weight: Tensor) -> Tensor:
    return x.new_zeros(x.shape[0], weight.shape[-2]) if given is None else given
