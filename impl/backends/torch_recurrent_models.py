"""Recurrent language models on torch's fused recurrences, their weights cut from one vector."""

from __future__ import annotations

import json
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn.functional import linear

Kind = Literal["rnn", "lstm"]

FIELDS: dict[str, int] = {"vocabulary": 65, "hidden": 32, "layers": 1, "context": 16}
GATES = {"rnn": 1, "lstm": 4}
"""Matrices of one cell; of an LSTM those of the forget, input, candidate and output gate."""
ORDER = {"rnn": (0,), "lstm": (1, 0, 2, 3)}
"""Where torch's gates stand: input, forget, candidate, output."""


def _sizes(config: str) -> dict[str, int]:
    given: dict[str, Any] = json.loads(config or "{}")
    unknown = [name for name in given if name not in FIELDS]
    wrong = [f"{n}={v!r}" for n, v in given.items() if type(v) is not int or v < 1]
    if unknown or wrong:
        reasons = [*(f"{n} is unknown" for n in unknown), *wrong]
        valid = f"whole numbers of at least 1 for {', '.join(FIELDS)}"
        raise ValueError(f"{', '.join(reasons)}; valid: {valid}")
    return {**FIELDS, **given}


def run(kind: Kind, config: str, state: Tensor, x: Tensor) -> Tensor:
    """[B, T, V] -> [B, T, V]: a stack of cells from a state of zeros, and a linear head."""
    sizes = _sizes(config)
    symbols, hidden, layers = sizes["vocabulary"], sizes["hidden"], sizes["layers"]
    if x.shape[2] != symbols:
        raise ValueError(f"x has {x.shape[2]} symbols; vocabulary={symbols}")
    shapes: list[tuple[int, ...]] = []
    for layer in range(layers):
        width = (hidden if layer else symbols) + hidden
        shapes += [(hidden, width), (hidden,)] * GATES[kind]
    shapes += [(symbols, hidden), (symbols,)]
    parts = _cut(state, shapes)
    *cells, head, head_bias = parts
    flat: list[Tensor] = []
    each = 2 * GATES[kind]
    for layer in range(layers):
        own = cells[layer * each : (layer + 1) * each]
        weight = torch.cat([own[2 * gate] for gate in ORDER[kind]])
        bias = torch.cat([own[2 * gate + 1] for gate in ORDER[kind]])
        width = weight.shape[1] - hidden
        flat += [weight[:, :width], weight[:, width:], bias, torch.zeros_like(bias)]
    first = x.new_zeros((layers, x.shape[0], hidden))
    rest = (flat, True, layers, 0.0, False, False, True)
    if kind == "rnn":
        y = torch.rnn_tanh(x, first, *rest)[0]
    else:
        y = torch.lstm(x, (first, first), *rest)[0]
    return linear(y, head, head_bias)


def _cut(state: Tensor, shapes: list[tuple[int, ...]]) -> list[Tensor]:
    counts = [torch.Size(shape).numel() for shape in shapes]
    if sum(counts) != state.shape[0]:
        raise ValueError(f"state has {state.shape[0]} numbers; the model has {sum(counts)}")
    pieces = state.split(counts)
    return [piece.reshape(shape) for piece, shape in zip(pieces, shapes, strict=True)]
