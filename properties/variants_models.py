"""Known wrong variants of whole models: what is often mistaken when one is written anew or when
weights are taken over from another library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from assay.spec.models.flat import configure, unpack
from assay.spec.models.networks.catalogue import NETWORKS
from assay.spec.ops import op as catalogue

Arrays = dict[str, np.ndarray]
Params = Mapping[str, np.ndarray]
Variant = tuple[str, Callable[[], np.ndarray]]
Changed = tuple[str, Any, Params]
"""What is wrong, and the configuration and parameters on which the model gives the same."""

ACTIVATIONS = {"gelu": "gelu_tanh", "gelu_tanh": "gelu", "silu": "relu", "relu": "gelu"}
PLACES = {"gpt": "position", "char_gpt": "position", "vit": "position"}


def model_variants(name: str, x: Arrays, attributes: dict[str, Any]) -> Iterator[Variant]:
    """Names and outputs of the wrong variants of one model, those that apply to it."""
    if name not in NETWORKS:
        return
    config = configure(name, attributes.get("config", catalogue(name).attributes[0].default))
    params = unpack(name, config, x["state"])
    read = x["ids"] if "ids" in x else x["x"]
    for what, other, changed in _changes(name, config, params):
        yield what, _run(name, other, changed, read)


def _run(name: str, config: Any, params: Params, read: np.ndarray) -> Callable[[], np.ndarray]:
    return lambda: NETWORKS[name].forward(config, params, read)


def _changes(name: str, config: Any, params: Params) -> Iterator[Changed]:
    known = {field.name for field in fields(config)}
    if "activation" in known and config.activation in ACTIVATIONS:
        other = ACTIVATIONS[config.activation]
        changed = replace(config, activation=other)
        yield f"the activation is {other} and not {config.activation}", changed, params
    if "pre_norm" in known:
        yield "norms stand on the other side of the branches", _turned(config), params
    if name in PLACES:
        yield "positions are left out", config, _zeroed(params, PLACES[name])
    if "heads" in known and config.heads > 1:
        yield "heads are cut from the features the other way", config, _interleaved(config, params)
    own = {"lstm_lm": _gates, "lstm_regression": _gates, "mamba_lm": _mamba, "fno": _fno}
    if name in own:
        yield from own[name](config, params)


def _turned(config: Any) -> Any:
    return replace(config, pre_norm=not config.pre_norm)


def _with(params: Params, change: Callable[[np.ndarray], np.ndarray], *ends: str) -> Params:
    return {n: change(x) if n.endswith(ends) else x for n, x in params.items()}


def _zeroed(params: Params, *ends: str) -> Params:
    return _with(params, np.zeros_like, *ends)


def _interleaved(config: Any, params: Params) -> Params:
    """Feature d H + h in place of h Dh + d, of queries, keys, values and what reads them."""
    heads = config.heads

    def cut(x: np.ndarray, axis: int) -> np.ndarray:
        order = np.arange(x.shape[axis]).reshape(-1, heads).T.ravel()
        return np.take(x, order, axis)

    def fused(x: np.ndarray) -> np.ndarray:
        return np.concatenate([cut(part, 0) for part in np.split(x, 3)])

    def columns(x: np.ndarray) -> np.ndarray:
        return cut(x, 1)

    changed = _with(params, fused, "qkv.weight", "qkv.bias")
    changed = _with(changed, columns, "attention.output.weight", ".query", ".key", ".value")
    return _with(
        changed, lambda x: cut(x, 0), "attention.output", "query_bias", "key_bias", "value_bias"
    )


def _swapped(params: Params, a: str, b: str) -> Params:
    def other(name: str) -> str:
        if f".{a}." in name:
            return name.replace(f".{a}.", f".{b}.")
        return name.replace(f".{b}.", f".{a}.")

    return {n: params[other(n)] for n in params}


def _gates(config: Any, params: Params) -> Iterator[Changed]:
    swapped = _swapped(params, "forget", "input")
    yield "the gates are read as input, forget, candidate, output", config, swapped
    swapped = _swapped(params, "candidate", "output")
    yield "the gates are read as forget, input, output, candidate", config, swapped


def _mamba(config: Any, params: Params) -> Iterator[Changed]:
    turned = _with(params, lambda x: x[::-1], ".conv_kernel")
    yield "the taps are read from the oldest", config, turned
    yield "the skip is left out", config, _zeroed(params, ".d_skip")
    yield "the bias of the step size is left out", config, _zeroed(params, ".dt_bias")
    swapped = {
        n: params[n.replace("b_proj", "?").replace("c_proj", "b_proj").replace("?", "c_proj")]
        for n in params
    }
    yield "B and C are exchanged", config, swapped


def _fno(config: Any, params: Params) -> Iterator[Changed]:
    yield "the skip is left out", config, _zeroed(params, ".skip")
    yield "the skip is applied out-by-in", config, _with(params, np.transpose, ".skip")
    turned = _with(params, lambda x: x.swapaxes(1, 2), ".real", ".imaginary")
    yield "spectral weights are applied out-by-in", config, turned
    negative = _with(params, np.negative, ".imaginary")
    yield "spectral weights are conjugated", config, negative
    if config.spectrum == "full":
        wider = replace(config, modes=tuple(m + 1 for m in config.modes))
        yield "one frequency too many passes on each side", wider, params
        every = replace(config, modes=tuple(n + 1 for n in config.spatial))
        yield "every frequency passes", every, params
