"""Known wrong variants of recurrent layers, scans and state-space blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from assay.properties.recipes.sequences import CELLS, STREAMS
from assay.spec.ops import op as catalogue

Arrays = dict[str, np.ndarray]
Variant = tuple[str, Callable[[], np.ndarray]]
Changed = tuple[str, Arrays, dict[str, Any]]
"""What is wrong, and the inputs and attributes on which the op gives the same."""

GATES = {
    "lstm": ("the gates are read as input, forget, candidate, output", [1, 0, 2, 3]),
    "gru": ("the gates are read as update, reset, new", [1, 0, 2]),
}


def sequence_variants(name: str, x: Arrays, attributes: dict[str, Any]) -> Iterator[Variant]:
    """Every output of each variant of one call; the reader tells them apart by shape."""
    if name not in STREAMS:
        return
    for what, inputs, rest in (*_states(name, x, attributes), *_own(name, x, attributes)):
        for output in catalogue(name).outputs:
            yield what, _output(name, inputs, rest, output)


def _output(
    name: str, inputs: Arrays, attributes: dict[str, Any], output: str
) -> Callable[[], np.ndarray]:
    return lambda: np.asarray(catalogue(name).forward(inputs, attributes)[output])


def _states(name: str, x: Arrays, attributes: dict[str, Any]) -> Iterator[Changed]:
    words = {"history": "the history is ignored"}
    for state in STREAMS[name].states:
        if state in x:
            what = words.get(state, f"the initial state {state} is ignored")
            yield what, _without(x, state), attributes


def _own(name: str, x: Arrays, attributes: dict[str, Any]) -> Iterator[Changed]:
    if name in CELLS:
        yield from _cells(name, x, attributes)
    elif name == "causal_conv1d":
        yield "the taps are read from the oldest", {**x, "weight": x["weight"][::-1]}, attributes
    elif name in ("diagonal_ssm", "compact_ssm"):
        yield "the skip d is left out", {**x, "d": 0 * x["d"]}, attributes
    elif name == "selective_scan":
        if "d" in x:
            yield "the skip d is left out", _without(x, "d"), attributes
        yield "the rates are taken negative: states grow", {**x, "a": -x["a"]}, attributes
        yield "the rates are taken for their logarithms", {**x, "a": np.exp(x["a"])}, attributes
    if "bias" in x:
        yield "the bias is left out", {**x, "bias": 0 * x["bias"]}, attributes


def _cells(name: str, x: Arrays, attributes: dict[str, Any]) -> Iterator[Changed]:
    if name in GATES:
        what, order = GATES[name]
        yield what, {**x, "weight": x["weight"][order], "bias": x["bias"][order]}, attributes
    if name == "gru":
        after = not attributes.get("reset_after", False)
        place = "after" if after else "before"
        what = f"the reset gate stands {place} the product"
        yield what, x, {**attributes, "reset_after": after}
        if "hidden_bias" in x:
            yield "the recurrent bias is ignored", _without(x, "hidden_bias"), attributes
    if "lengths" in x:
        yield "lengths are ignored", _without(x, "lengths"), attributes
    if attributes.get("reverse"):
        yield "rows are read forwards", x, {**attributes, "reverse": False}
    width = x["x"].shape[-1]
    turned = np.roll(x["weight"], -width, axis=-1)
    yield "the state's columns of the weight come first", {**x, "weight": turned}, attributes


def _without(x: Arrays, name: str) -> Arrays:
    return {n: a for n, a in x.items() if n != name}
