"""Drawn cases of the recurrent layers, and torch's own layers on the spec's weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st

GATES = {"rnn": (), "lstm": (4,), "gru": (3,)}
ORDER = {"rnn": [0], "lstm": [1, 0, 2, 3], "gru": [0, 1, 2]}
"""For each of torch's gates, which of the spec's it is."""
TORCH = {"rnn": torch.nn.RNN, "lstm": torch.nn.LSTM, "gru": torch.nn.GRU}


@dataclass(frozen=True)
class Case:
    """Inputs and attributes of one call."""

    name: str
    inputs: dict[str, np.ndarray]
    attributes: dict[str, Any] = field(default_factory=dict)


def filled(
    name: str,
    batch: int,
    steps: int,
    width: int,
    hidden: int,
    *,
    seed: int = 0,
    size: float = 0.7,
) -> dict[str, np.ndarray]:
    """Normal inputs, with every optional array but the lengths."""
    rng = np.random.default_rng(seed)
    gates = GATES[name]
    made = {
        "x": rng.normal(size=(batch, steps, width)),
        "weight": rng.normal(size=(*gates, hidden, width + hidden)) * size,
        "bias": rng.normal(size=(*gates, hidden)),
    }
    made["h0"] = rng.normal(size=(batch, hidden))
    if name == "lstm":
        made["c0"] = rng.normal(size=(batch, hidden))
    if name == "gru":
        made["hidden_bias"] = rng.normal(size=hidden)
    return made


@st.composite
def cases(draw: st.DrawFn, name: str, *, smallest: int = 1) -> Case:
    """A call of small, prime and unequal sizes, with some rows short, some states left out."""
    sizes = st.sampled_from([n for n in (0, 1, 2, 3, 5) if n >= smallest])
    batch, width, hidden = (draw(sizes) for _ in range(3))
    steps = draw(st.integers(smallest, 4))
    seed, size = draw(st.integers(0, 2**32 - 1)), draw(st.sampled_from([0.3, 1.0]))
    inputs = filled(name, batch, steps, width, hidden, seed=seed, size=size)
    left_out = draw(st.sets(st.sampled_from(["h0", "c0", "hidden_bias"])))
    inputs = {n: x for n, x in inputs.items() if n not in left_out}
    if draw(st.booleans()):
        lengths = st.integers(smallest, max(steps, smallest))
        inputs["lengths"] = np.array([draw(lengths) for _ in range(batch)], dtype=np.int64)
    attributes: dict[str, Any] = {}
    if draw(st.booleans()):
        attributes["reverse"] = True
    return Case(name, inputs, attributes)


def torch_weights(name: str, tensors: Mapping[str, Any]) -> list[torch.Tensor]:
    """weight_ih, weight_hh, bias_ih, bias_hh, written from torch's documentation."""
    weight, bias = tensors["weight"], tensors["bias"]
    if name == "rnn":
        weight, bias = weight[None], bias[None]
    hidden = weight.shape[1]
    width = weight.shape[2] - hidden
    parts = [weight[g] for g in ORDER[name]]
    biases = [bias[g] for g in ORDER[name]]
    recurrent = [torch.zeros_like(b) for b in biases]
    if "hidden_bias" in tensors:
        recurrent[2] = tensors["hidden_bias"]
    return [
        torch.cat([p[:, :width] for p in parts]),
        torch.cat([p[:, width:] for p in parts]),
        torch.cat(biases),
        torch.cat(recurrent),
    ]


def _torch_layer(
    name: str, tensors: Mapping[str, Any], directions: list[list[torch.Tensor]]
) -> torch.nn.RNNBase:
    width, hidden = directions[0][0].shape[1], directions[0][1].shape[1]
    layer = TORCH[name](width, hidden, batch_first=True, bidirectional=len(directions) == 2)
    layer = layer.to(tensors["x"].dtype)
    layer._flat_weights = [w for direction in directions for w in direction]
    return layer


def _torch_states(name: str, tensors: Mapping[str, Any]) -> Any:
    """Each initial state that is given, zeros for the others; None where none is."""
    zeros = tensors["x"].new_zeros(tensors["x"].shape[0], tensors["bias"].shape[-1])
    states = [tensors.get(n, zeros)[None] for n in ("h0", "c0")[: 2 if name == "lstm" else 1]]
    if not any(n in tensors for n in ("h0", "c0")):
        return None
    return tuple(states) if name == "lstm" else states[0]


def _mirrored(x: torch.Tensor, lengths: torch.Tensor | None) -> torch.Tensor:
    """Rows reversed within their own lengths, row by row."""
    ends = [x.shape[1]] * x.shape[0] if lengths is None else lengths.tolist()
    rows = [torch.cat([r[:n].flip(0), r[n:]]) for r, n in zip(x, ends, strict=True)]
    return torch.stack(rows)


def _called(layer: torch.nn.RNNBase, x: torch.Tensor, states: Any, lengths: Any) -> Any:
    if lengths is None:
        return layer(x, states)
    given = torch.nn.utils.rnn.pack_padded_sequence(
        x, lengths, batch_first=True, enforce_sorted=False
    )
    out, final = layer(given, states)
    padded, _ = torch.nn.utils.rnn.pad_packed_sequence(
        out, batch_first=True, total_length=x.shape[1]
    )
    return padded, final


def torch_layer(name: str) -> Any:
    """What torch.nn computes; ``reverse`` is one direction of rows that are reversed by hand."""

    def function(tensors: dict[str, Any], attributes: Mapping[str, Any]) -> dict[str, Any]:
        x, lengths = tensors["x"], tensors.get("lengths")
        layer = _torch_layer(name, tensors, [torch_weights(name, tensors)])
        if attributes.get("reverse"):
            x = _mirrored(x, lengths)
        out, final = _called(layer, x, _torch_states(name, tensors), lengths)
        if attributes.get("reverse"):
            out = _mirrored(out, lengths)
        finals = final if name == "lstm" else (final,)
        return {"out": out, **{n: s[0] for n, s in zip("hc", finals, strict=False)}}

    return function


def torch_bidirectional(
    name: str, x: Any, forward: Mapping[str, Any], backward: Mapping[str, Any], lengths: Any
) -> Any:
    """torch.nn's own bidirectional layer: outputs, and the last states of each direction."""
    both = [{"x": x, **p} for p in (forward, backward)]
    layer = _torch_layer(name, both[0], [torch_weights(name, p) for p in both])
    states = [_torch_states(name, p) for p in both]
    joined = (
        tuple(torch.cat(pair) for pair in zip(*states, strict=True))
        if name == "lstm"
        else torch.cat(states)
    )
    return _called(layer, x, joined, lengths)
