"""Known wrong variants of convolution, pooling, patches and spectral convolution."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import prod
from typing import Any

import numpy as np

from assay.spec.spatial.convolution import convolution
from assay.spec.spatial.patches import patch_embedding
from assay.spec.spatial.pooling import max_pool, mean_pool
from assay.spec.spatial.windows import PerAxis, per_axis
from assay.spec.spectral.bands import modes_of
from assay.spec.spectral.fno_block import fno_block
from assay.spec.spectral.rfft_conv import spectral_conv_rfft
from assay.spec.spectral.spectral_conv import spectral_conv

Arrays = dict[str, np.ndarray]
Variant = tuple[str, Callable[[], np.ndarray]]


def grid_variants(op: str, x: Arrays, attributes: dict[str, Any]) -> Iterator[Variant]:
    """Names and values of the wrong variants of one call, in wide precision."""
    known: dict[str, Callable[[Arrays, dict[str, Any]], Iterator[Variant]]] = {
        "convolution": _convolution,
        "patch_embedding": _patches,
        "pooling": _pooling,
        "spectral_conv": _spectral,
        "spectral_conv_rfft": _half,
        "fno_block": _block,
    }
    if op in known:
        yield from known[op](x, attributes)


def _flipped(weight: np.ndarray) -> np.ndarray:
    return np.flip(weight, axis=tuple(range(2, weight.ndim)))


def _convolution(x: Arrays, attributes: dict[str, Any]) -> Iterator[Variant]:
    def run(inputs: Arrays | None = None, **changed: Any) -> Callable[[], np.ndarray]:
        given, rules = {**x, **(inputs or {})}, {**attributes, **changed}
        return lambda: convolution(given["x"], given["weight"], given.get("bias"), **rules)

    if "bias" in x:
        yield "the bias is ignored", run({"bias": 0 * x["bias"]})
        yield "the bias is added twice", run({"bias": 2 * x["bias"]})
    yield "the kernel is flipped", run({"weight": _flipped(x["weight"])})
    if attributes.get("dilation", 1) != 1:
        yield "the dilation is ignored", run(dilation=1)
    for name in ("stride", "padding", "dilation"):
        value = attributes.get(name)
        if isinstance(value, tuple) and len(set(value)) > 1:
            turned: dict[str, Any] = {name: value[::-1]}
            yield f"each axis has another axis' {name}", run(None, **turned)
    groups = attributes.get("groups", 1)
    if groups > 1:
        order = np.arange(x["weight"].shape[0]).reshape(groups, -1)
        yield "output channel o reads group o % G", lambda: _interleaved(run()(), order)
        yield (
            "input channel c is read by group c % G",
            run({"x": _interleaved(x["x"], np.arange(x["x"].shape[1]).reshape(groups, -1))}),
        )


def _interleaved(x: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Channels of the groups taken in turn."""
    return np.asarray(x[:, order.T.reshape(-1)])


def _patches(x: Arrays, attributes: dict[str, Any]) -> Iterator[Variant]:
    token = x.get("class_token")

    def run(inputs: Arrays) -> np.ndarray:
        bias = inputs.get("bias")
        return patch_embedding(inputs["x"], inputs["weight"], bias, token, **attributes)

    if token is not None:
        yield "the class token is appended", lambda: np.roll(run(x), -1, axis=1)
        yield (
            "the class token gets the bias as well",
            lambda: np.concatenate([run(x)[:, :1] + x.get("bias", 0), run(x)[:, 1:]], axis=1),
        )
    if "bias" in x:
        yield "the bias is ignored", lambda: run({**x, "bias": 0 * x["bias"]})
    if x["x"].ndim > 3:
        yield "patches are taken column by column", lambda: _by_column(x, attributes)
        yield (
            "the kernel's axes are swapped",
            lambda: run({**x, "weight": np.swapaxes(x["weight"], -1, -2)}),
        )
    yield "the kernel is flipped", lambda: run({**x, "weight": _flipped(x["weight"])})


def _by_column(x: Arrays, attributes: dict[str, Any]) -> np.ndarray:
    kernel = tuple(x["weight"].shape[2:])
    stride = kernel if attributes.get("stride") is None else attributes["stride"]
    grid = convolution(
        x["x"], x["weight"], x.get("bias"), stride=stride, padding=attributes.get("padding", 0)
    )
    tokens = np.swapaxes(np.swapaxes(grid, 2, 3).reshape(*grid.shape[:2], -1), 1, 2)
    if "class_token" not in x:
        return np.asarray(tokens)
    first = np.broadcast_to(x["class_token"], (tokens.shape[0], 1, tokens.shape[2]))
    return np.concatenate([first, tokens], axis=1)


def _pooling(x: Arrays, attributes: dict[str, Any]) -> Iterator[Variant]:
    rules = {n: v for n, v in attributes.items() if n != "kind"}
    if attributes.get("kind", "mean") == "mean":
        yield "the maximum is taken for the mean", lambda: max_pool(x["x"], **rules)
        if rules.get("padding"):
            share = mean_pool(np.ones_like(x["x"]), **rules)
            yield "padding is not counted", lambda: mean_pool(x["x"], **rules) / share
        return
    yield "the mean is taken for the maximum", lambda: mean_pool(x["x"], **rules)
    if rules.get("padding"):
        yield "padding is taken for zeros", lambda: _padded_max(x["x"], rules)


def _padded_max(x: np.ndarray, rules: dict[str, Any]) -> np.ndarray:
    axes = x.ndim - 2
    padding = per_axis("padding", rules["padding"], axes, 0)
    wide = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in padding)])
    window = rules["window"]
    return max_pool(wide, window=window, stride=rules.get("stride"))


def _bands(x: Arrays, modes: PerAxis) -> dict[str, Arrays]:
    """The matrices of the frequencies that wrong bands keep, the others being 0."""
    n = x["x"].shape[1:-1]
    rules: dict[str, Callable[[np.ndarray, int, int], np.ndarray]] = {
        "the frequency +m is kept too": lambda k, size, m: (k <= m) | (size - m <= k),
        "the frequency -m is left out": lambda k, size, m: (k < m) | (size - m < k),
        "only frequencies 0 .. m - 1 are kept": lambda k, size, m: k < m,
    }
    found = {}
    for name, rule in rules.items():
        kept = np.ones((), dtype=bool)
        for size, m in zip(n, modes_of(modes, n), strict=True):
            kept = np.logical_and.outer(kept, rule(np.arange(size), size, m))
        flat = kept.reshape(-1, 1, 1)
        found[name] = {part: np.where(flat, x[part], 0) for part in ("re", "im")}
    return found


def _spectral(x: Arrays, attributes: dict[str, Any]) -> Iterator[Variant]:
    def run(inputs: Arrays | None = None, **changed: Any) -> np.ndarray:
        given = {**x, **(inputs or {})}
        rules = {**attributes, **changed}
        return spectral_conv(given["x"], given["re"], given["im"], **rules)

    modes, n = attributes.get("modes"), x["x"].shape[1:-1]
    if modes is not None:
        for name, changed in _bands(x, modes).items():
            yield name, partial(run, changed, modes=None)
        yield "the band is ignored", lambda: run(modes=None)
    yield from _weights(x, lambda inputs: run(inputs))
    count = prod(n)
    yield "the result is not divided by N", lambda: run() * count
    yield "the result is divided by N twice", lambda: run() / count
    if len(n) > 1 and modes is None:
        flat = x["x"].reshape(x["x"].shape[0], count, -1)
        yield (
            "the grid is transformed as if it were flat",
            lambda: run({"x": flat}).reshape(x["x"].shape),
        )


def _weights(x: Arrays, run: Callable[[Arrays], np.ndarray]) -> Iterator[Variant]:
    """What the matrices of the frequencies may be taken for."""
    width = np.eye(x["re"].shape[-1])
    changes: dict[str, Arrays] = {
        "the imaginary weights are ignored": {"im": 0 * x["im"]},
        "the imaginary weights have the other sign": {"im": -x["im"]},
        "the matrices are transposed": {m: np.swapaxes(x[m], 1, 2) for m in ("re", "im")},
        "channels are not mixed": {m: x[m] * width for m in ("re", "im")},
    }
    for name, changed in changes.items():
        yield name, partial(run, {**x, **changed})


def _half(x: Arrays, attributes: dict[str, Any]) -> Iterator[Variant]:
    def run(inputs: Arrays) -> np.ndarray:
        return spectral_conv_rfft(inputs["x"], inputs["re"], inputs["im"])

    n, bins = x["x"].shape[1], x["re"].shape[0]
    paired = (2 * np.arange(bins) % max(n, 1) != 0)[:, None, None]
    once = {m: np.where(paired, x[m] / 2, x[m]) for m in ("re", "im")}
    twice = {m: np.where(paired, x[m], 2 * x[m]) for m in ("re", "im")}
    yield "bins between 0 and n / 2 count once", lambda: run({**x, **once})
    yield "bins 0 and n / 2 count twice", lambda: run({**x, **twice})
    yield "the result is not divided by n", lambda: run(x) * n
    yield from _weights(x, run)


def _block(x: Arrays, attributes: dict[str, Any]) -> Iterator[Variant]:
    def run(inputs: Arrays, **changed: Any) -> np.ndarray:
        given = {**x, **inputs}
        names = ("x", "re", "im", "skip", "bias")
        return fno_block(*(given[n] for n in names), **{**attributes, **changed})

    yield "the bias is ignored", lambda: run({"bias": 0 * x["bias"]})
    yield "the skip is ignored", lambda: run({"skip": 0 * x["skip"]})
    yield "the skip is applied transposed", lambda: run({"skip": x["skip"].T})
    other = {"gelu": "gelu_tanh", "gelu_tanh": "gelu", "silu": "gelu", "relu": "identity"}
    name = attributes.get("activation", "tanh")
    if name in other:
        yield f"{other[name]} is taken for {name}", lambda: run({}, activation=other[name])
    if name != "identity":
        yield "the activation is left out", lambda: run({}, activation="identity")
    modes = attributes.get("modes")
    for words, changed in ({} if modes is None else _bands(x, modes)).items():
        yield words, partial(run, changed, modes=None)
    yield from _weights(x, run)
