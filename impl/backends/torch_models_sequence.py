"""Models that carry a state through time as torch modules: RNN, LSTM and Mamba, with a head."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from assay.impl.backends import torch_models_fields as rules
from assay.impl.backends.torch_models_state import (
    Part,
    Tensors,
    every,
    joined,
    parts_of,
    same,
    turned,
    under,
)
from assay.impl.backends.torch_scan import loop, tree

Past = dict[int, Any]
"""What each layer keeps between chunks; empty before the first one."""

Kind = Literal["rnn", "lstm"]
ORDER = {"rnn": (0,), "lstm": (1, 0, 2, 3)}
"""torch stacks an LSTM's gates as input, forget, candidate, output; stored is the forget gate
first.
"""


class Recurrent(nn.Module):
    """nn.RNN or nn.LSTM, and a linear map of every output.

    torch adds two biases in each gate. One is all that the model has: the other stays at 0 and is
    not trained, or a step would move their sum twice as far.

    explicit  cells in a loop in place of the fused recurrence
    """

    def __init__(
        self, kind: Kind, inputs: int, hidden: int, outputs: int, layers: int, *, explicit: bool
    ) -> None:
        super().__init__()
        self.kind: Kind = kind
        self.explicit = explicit
        made = nn.RNN if kind == "rnn" else nn.LSTM
        self.add_module(kind, made(inputs, hidden, layers, batch_first=True))
        self.head = nn.Linear(hidden, outputs)
        for name, p in self.cells.named_parameters():
            p.requires_grad_(not name.startswith("bias_hh"))

    @property
    def cells(self) -> nn.RNNBase:
        """The recurrence."""
        found: nn.RNNBase = getattr(self, self.kind)
        return found

    def forward(self, x: Tensor, past: Past | None = None) -> Tensor:
        """[B, T, I] -> [B, T, O]; behind ``past``, which then holds this as well."""
        if x.shape[2] != self.cells.input_size:
            raise ValueError(f"x has {x.shape[2]} entries; the model has {self.cells.input_size}")
        shape = (self.cells.num_layers, x.shape[0], self.cells.hidden_size)
        start = (past or {}).get(0, (x.new_zeros(shape),) * (2 if self.kind == "lstm" else 1))
        y, after = self._loop(x, start) if self.explicit else self._fused(x, start)
        if past is not None:
            past[0] = after
        return self.head(y)

    def _fused(self, x: Tensor, start: Tensors) -> tuple[Tensor, Tensors]:
        if self.kind == "lstm":
            return self.cells(x, start)
        y, h = self.cells(x, start[0])
        return y, (h,)

    def _loop(self, x: Tensor, start: Tensors) -> tuple[Tensor, Tensors]:
        after: list[Tensors] = []
        for layer, weights in enumerate(self.cells.all_weights):
            state, outputs = tuple(part[layer] for part in start), []
            for step in x.unbind(1):
                if self.kind == "lstm":
                    state = torch.lstm_cell(step, state, *weights)
                else:
                    state = (torch.rnn_tanh_cell(step, state[0], *weights),)
                outputs.append(state[0])
            x = torch.stack(outputs, dim=1)
            after.append(state)
        return x, tuple(torch.stack(part) for part in zip(*after, strict=True))

    def parts(self) -> Iterator[Part]:
        """The gates of each layer, and the head."""
        for layer in range(self.cells.num_layers):
            yield from under(self.kind, [gates(self.cells, self.kind, layer)])
        yield from under("head", every(self.head))


def gates(cells: nn.RNNBase, kind: Kind, layer: int) -> Part:
    """For each gate a matrix [Hd, I + Hd] and a bias [Hd]; torch has all of them in one matrix of
    the inputs, one of the hidden state, and two biases of which the second is 0.
    """
    hidden, order = cells.hidden_size, ORDER[kind]
    inputs = hidden if layer else cells.input_size
    back_order = [order.index(gate) for gate in range(len(order))]

    def there(*arrays: Tensor) -> Tensors:
        weight = torch.cat([arrays[2 * gate] for gate in order])
        bias = torch.cat([arrays[2 * gate + 1] for gate in order])
        return weight[:, :inputs], weight[:, inputs:], bias, torch.zeros_like(bias)

    def back(into: Tensor, across: Tensor, bias: Tensor, _: Tensor) -> Tensors:
        weights = torch.cat([into, across], dim=1).chunk(len(order))
        biases = bias.chunk(len(order))
        return tuple(x for place in back_order for x in (weights[place], biases[place]))

    shapes = ((hidden, inputs + hidden), (hidden,)) * len(order)
    names = tuple(f"{n}_l{layer}" for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    return Part(shapes, names, there, back)


def language(
    kind: Kind,
    vocabulary: int = 65,
    hidden: int = 32,
    layers: int = 1,
    context: int = 16,
    *,
    explicit: bool = False,
) -> Recurrent:
    """Symbols in, logits of the next symbol out."""
    sizes = {"vocabulary": vocabulary, "hidden": hidden, "layers": layers, "context": context}
    rules.refuse(*rules.not_whole(**sizes))
    return Recurrent(kind, vocabulary, hidden, vocabulary, layers, explicit=explicit)


def regression(
    inputs: int = 1,
    hidden: int = 16,
    outputs: int = 1,
    layers: int = 1,
    context: int = 16,
    *,
    explicit: bool = False,
) -> Recurrent:
    """A sequence of numbers in, one out, by LSTM cells."""
    sizes = {"inputs": inputs, "hidden": hidden, "outputs": outputs, "layers": layers}
    rules.refuse(*rules.not_whole(**sizes, context=context))
    return Recurrent("lstm", inputs, hidden, outputs, layers, explicit=explicit)


class SelectiveLayer(nn.Module):
    """A Mamba layer whose step size has a square projection.

    explicit  the scan goes step by step; else maps of 1, 2, 4, ... steps are composed
    """

    def __init__(
        self, inputs: int, hidden: int, inner: int, states: int, taps: int, *, explicit: bool
    ) -> None:
        super().__init__()
        self.scan = loop if explicit else tree
        self.in_proj = nn.Linear(inputs, 2 * inner, bias=False)
        self.conv1d = nn.Conv1d(inner, inner, taps, groups=inner)
        self.x_proj = nn.Linear(inner, 2 * states, bias=False)
        self.dt_proj = nn.Linear(inner, inner)
        self.A_log = nn.Parameter(torch.zeros(inner, states))
        self.D = nn.Parameter(torch.zeros(inner))
        self.out_proj = nn.Linear(inner, hidden, bias=False)

    def forward(self, x: Tensor, past: Tensors | None = None) -> tuple[Tensor, Tensors]:
        """[B, T, I] -> [B, T, O]; what is kept are the inputs that later taps see, and the state.

        The softplus is torch's up to 40, from where on x itself is right to the last bit.
        """
        inner, gate = self.in_proj(x).chunk(2, dim=-1)
        rates = self.A_log.exp()
        if past is None:
            history = inner.new_zeros(x.shape[0], self.conv1d.kernel_size[0] - 1, inner.shape[2])
            past = history, inner.new_zeros(x.shape[0], *rates.shape)
        seen = torch.cat([past[0], inner], dim=1)
        u = functional.silu(self.conv1d(seen.mT).mT)
        delta = functional.softplus(self.dt_proj(u), threshold=40)
        b, c = self.x_proj(u).chunk(2, dim=-1)
        added = (delta * u)[..., None] * b[:, :, None]
        states = self.scan(torch.exp(-delta[..., None] * rates), added, past[1])
        y = torch.einsum("bten,btn->bte", states, c) + self.D * u
        return self.out_proj(y * functional.silu(gate)), (seen[:, x.shape[1] :], states[:, -1])

    def parts(self) -> Iterator[Part]:
        """Eleven arrays; matrices in-by-out, the newest tap first."""
        inner, states = self.A_log.shape
        yield joined("in_proj.weight", self.in_proj.weight, (inner, inner))
        yield Part(
            ((self.conv1d.kernel_size[0], inner),),
            ("conv1d.weight",),
            lambda taps: (taps.flip(0).T[:, None],),
            lambda kernel: (kernel[:, 0].T.flip(0),),
        )
        yield same("conv1d.bias", self.get_parameter("conv1d.bias"))
        yield turned("dt_proj.weight", self.dt_proj.weight)
        yield same("dt_proj.bias", self.dt_proj.bias)
        yield same("A_log", self.A_log)
        yield joined("x_proj.weight", self.x_proj.weight, (states, states))
        yield same("D", self.D)
        yield turned("out_proj.weight", self.out_proj.weight)


class Mamba(nn.Module):
    """Selective layers, and a linear map of every output."""

    def __init__(
        self,
        vocabulary: int = 65,
        hidden: int = 32,
        layers: int = 1,
        expansion: int = 2,
        states: int = 16,
        taps: int = 4,
        context: int = 16,
        *,
        explicit: bool = False,
    ) -> None:
        super().__init__()
        rules.refuse(
            *rules.not_whole(vocabulary=vocabulary, hidden=hidden, layers=layers, states=states),
            *rules.not_whole(expansion=expansion, taps=taps, context=context),
        )
        self.layers = nn.ModuleList(
            SelectiveLayer(width, hidden, expansion * hidden, states, taps, explicit=explicit)
            for width in (vocabulary, *(hidden,) * (layers - 1))
        )
        self.head = nn.Linear(hidden, vocabulary)

    def forward(self, x: Tensor, past: Past | None = None) -> Tensor:
        """[B, T, V] -> [B, T, V]; behind ``past``, which then holds this as well."""
        for index, layer in enumerate(self.layers):
            x, after = layer(x, (past or {}).get(index))
            if past is not None:
                past[index] = after
        return self.head(x)

    def parts(self) -> Iterator[Part]:
        """Layers, head."""
        for i, layer in enumerate(self.layers):
            yield from under(f"layers.{i}", parts_of(layer))
        yield from under("head", every(self.head))
