"""Recipes of recurrent layers, scans, state-space blocks and the causal convolution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from assay.properties.case import Case
from assay.properties.context import Context
from assay.properties.draw import HALVES, Draw, choice
from assay.properties.recipe import Inputs, Recipe, Structure, any_number
from assay.spec.ops import op as catalogue


@dataclass(frozen=True)
class Stream:
    """Where time and state are in an op.

    timed   inputs and output with a time axis, which is their second
    states  output that holds the last state, by the input that continues from it
    """

    timed: tuple[str, ...]
    out: str
    states: Mapping[str, str]


STREAMS: Mapping[str, Stream] = {
    "rnn": Stream(("x",), "out", {"h0": "h"}),
    "lstm": Stream(("x",), "out", {"h0": "h", "c0": "c"}),
    "gru": Stream(("x",), "out", {"h0": "h"}),
    "affine_scan": Stream(("a", "b", "x"), "states", {"h0": "states"}),
    "diagonal_ssm": Stream(("x",), "out", {"h0": "state"}),
    "compact_ssm": Stream(("x",), "out", {"h0": "state"}),
    "causal_conv1d": Stream(("x",), "out", {"history": "history"}),
    "selective_scan": Stream(("u", "delta", "b", "c"), "out", {"h0": "state"}),
    "selective_block": Stream(("x",), "out", {"h0": "state", "history": "history"}),
}

CELLS = ("rnn", "lstm", "gru")
SHORT = (1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 6, 8)
"""Steps of a recurrent layer: a bound takes some milliseconds for each."""
HIDDEN = (1, 2, 3, 4, 5, 7, 8)
EDGES = (15, 16, 17, 33)
"""Widths about those of vectors, for a step or two."""
STEPS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 65)
CHANNELS = (1, 2, 3, 4, 5, 8)
WORK = 600
"""Entries of all states of a scan."""


def sizes_of(case: Case) -> dict[str, tuple[int, ...]]:
    """The shape of every input by the op's own letters."""
    d = case.dims

    def size(symbol: str) -> int:
        if symbol.isdigit():
            return int(symbol)
        if symbol == "I+Hd":
            return d["I"] + d["Hd"]
        return d["Kt"] - 1 if symbol == "Kt-1" else d[symbol]

    return {i.name: tuple(map(size, i.dims)) for i in catalogue(case.op).inputs}


def _recurrent(draw: Draw, ctx: Context) -> Structure:
    steps, hidden = draw(choice(*SHORT)), draw(choice(*HIDDEN, *EDGES))
    if hidden in EDGES:
        steps = 1 + steps % 2
    dims = {
        "B": draw(choice(1, 2, 3)),
        "T": steps,
        "I": draw(choice(1, 2, 3, 5, 8, 16, 17)),
        "Hd": hidden,
    }
    attributes = {"reverse": draw(HALVES)}
    if ctx.op.name == "gru":
        attributes["reset_after"] = draw(HALVES)
    return dims, attributes


def _scan(draw: Draw, ctx: Context) -> Structure:
    """Every letter of the op but time is small."""
    dims = {"B": draw(choice(1, 2, 3)), "T": draw(choice(*STEPS)), "E": draw(choice(*CHANNELS))}
    used = {symbol for i in ctx.op.inputs for symbol in i.dims}
    dims |= {n: draw(choice(1, 2, 3, 5)) for n in ("I", "O", "Ns") if n in used}
    if "Kt" in used:
        dims["Kt"] = draw(choice(1, 2, 3, 4, 7))
    while dims["B"] * dims["T"] * dims["E"] * dims.get("Ns", 1) > WORK and dims["E"] > 1:
        dims["E"] -= 1
    return dims, {}


def lengths(case: Case, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Rows that end anywhere, with none without steps in most batches."""
    steps = case.dims["T"]
    least = min(1, steps) if rng.random() < 0.8 else 0
    return rng.integers(least, steps + 1, shape)


def factors(case: Case, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Decays, factors near 1, signs and zeros among halves, or any: one kind for each array."""
    kinds = (
        rng.uniform(0.0, 1.0, shape),
        1.0 - 2.0 ** -rng.integers(1, 12, shape),
        rng.integers(-2, 3, shape) / 2.0,
        rng.uniform(-1.25, 1.25, shape),
    )
    return np.asarray(kinds[rng.integers(len(kinds))])


def steps(case: Case, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Step sizes: of order 1, from tiny to large, or none in places."""
    kinds = (
        np.log1p(np.exp(rng.standard_normal(shape))),
        2.0 ** rng.uniform(-10.0, 5.0, shape),
        rng.integers(0, 3, shape) / 2.0,
    )
    return np.asarray(kinds[rng.integers(len(kinds))])


def rates(case: Case, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Rates of decay: 1, 2, 3, ... for the states as they are first set, or any."""
    ordered = np.broadcast_to(np.arange(1.0, shape[-1] + 1), shape)
    kinds = (ordered, 2.0 ** rng.uniform(-6.0, 3.0, shape))
    return np.asarray(kinds[rng.integers(len(kinds))])


def _legal_steps(case: Case, array: np.ndarray) -> np.ndarray:
    """No step goes back."""
    return np.abs(array)


def _legal_rates(case: Case, array: np.ndarray) -> np.ndarray:
    """Every state decays."""
    return np.where(array > 0, array, np.ones_like(array))


def _longer(x: np.ndarray, axis: int) -> np.ndarray:
    """One entry more along an axis."""
    return np.concatenate([x, np.take(x, [0], axis=axis)], axis=axis)


SPOILT: Mapping[str, int] = {
    "weight": -1,
    "bias": -1,
    "h0": -1,
    "c0": -1,
    "lengths": 0,
    "delta": 1,
    "c": -1,
    "in_proj": 0,
    "out_proj": 0,
    "readout": 0,
    "dt_proj": 0,
    "history": 1,
}
"""Inputs that no longer fit when they are one entry longer along this axis."""


def _spoil(case: Case, inputs: Inputs) -> dict[str, Inputs]:
    return {
        f"{name} with one entry too many along axis {axis}": {
            **inputs,
            name: _longer(inputs[name], axis),
        }
        for name, axis in SPOILT.items()
        if name in inputs and inputs[name].size
    }


_WEIGHTS = (
    "normal", "integers", "dyadic", "positive", "alternating", "one_hot", "tiny", "near_ties",
    "ones", "zeros",
)  # fmt: skip
"""Numbers of order 1: larger weights shut gates for good, or make a recurrence that forgets no
rounding.
"""


def _weights(op: str, *others: str) -> dict[str, tuple[str, ...]]:
    """Such numbers for all inputs but these, which are no weights."""
    names = (i.name for i in catalogue(op).inputs if i.name not in others)
    return dict.fromkeys(names, _WEIGHTS)


SEQUENCES: tuple[Recipe, ...] = (
    *(
        Recipe(
            op,
            _recurrent,
            sizes_of,
            special={"lengths": lengths},
            values=_weights(op, "x", "h0", "c0", "lengths"),
            batched=("x", "h0", "c0", "lengths"),
            empties=("B", "T", "I", "Hd"),
            spoil=_spoil,
        )
        for op in CELLS
    ),
    Recipe(
        "affine_scan",
        _scan,
        sizes_of,
        special={"a": factors},
        legal={"a": any_number},
        batched=("a", "b", "x", "h0"),
        empties=("B", "T", "E"),
        spoil=_spoil,
    ),
    *(
        Recipe(
            op,
            _scan,
            sizes_of,
            special={"a": factors},
            legal={"a": any_number},
            values=_weights(op, "x", "a", "h0"),
            batched=("x", "h0"),
            empties=("B", "T", "I", "E", "O"),
            spoil=_spoil,
        )
        for op in ("diagonal_ssm", "compact_ssm")
    ),
    Recipe(
        "causal_conv1d",
        _scan,
        sizes_of,
        batched=("x", "history"),
        empties=("B", "T", "E"),
        spoil=_spoil,
    ),
    Recipe(
        "selective_scan",
        _scan,
        sizes_of,
        special={"delta": steps, "a": rates},
        legal={"delta": _legal_steps, "a": _legal_rates},
        batched=("u", "delta", "b", "c", "h0"),
        empties=("B", "T", "E", "Ns"),
        spoil=_spoil,
    ),
    Recipe(
        "selective_block",
        _scan,
        sizes_of,
        special={"a": rates},
        legal={"a": _legal_rates},
        values=_weights("selective_block", "x", "a", "h0", "history"),
        batched=("x", "h0", "history"),
        empties=("B", "T", "I", "E", "Ns", "O"),
        spoil=_spoil,
    ),
)
