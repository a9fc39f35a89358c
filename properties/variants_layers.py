"""Known wrong variants of pointwise ops, embeddings, dropout, norms and losses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from assay.spec.layers.slices import Slices, by_channel, by_group, by_row
from assay.spec.ops import op as catalogue

Arrays = dict[str, np.ndarray]
Variant = tuple[str, Callable[[], np.ndarray]]


def layer_variants(name: str, x: Arrays, attributes: dict[str, Any]) -> Iterator[Variant]:
    """The variants of one call."""
    own = {"gelu": _gelu, "softplus": _softplus, "dropout": _dropout, "cross_entropy": _entropy}
    if name in own:
        yield from own[name](x, attributes)
    elif name in ("layer_norm", "group_norm", "batch_norm", "rms_norm"):
        yield from _norm(name, x, attributes)


def _run(
    name: str, x: Arrays, attributes: dict[str, Any], **changed: Any
) -> Callable[[], np.ndarray]:
    (output,) = catalogue(name).outputs
    return lambda: np.asarray(catalogue(name).forward(x, {**attributes, **changed})[output])


def _gelu(x: Arrays, attributes: dict[str, Any]) -> Iterator[Variant]:
    tanh = attributes.get("approximate") == "tanh"
    wrong, right = ("erf", "tanh") if tanh else ("tanh", "erf")
    form = "none" if tanh else "tanh"
    yield f"the {wrong} form for the {right} form", _run("gelu", x, {}, approximate=form)
    yield "x sigmoid(1.702 x) for GELU", lambda: x["x"] / (1 + np.exp(-1.702 * x["x"]))


def _softplus(x: Arrays, attributes: dict[str, Any]) -> Iterator[Variant]:
    plain = _run("softplus", x, attributes)
    yield "x itself above 20", lambda: np.where(x["x"] > 20, x["x"], plain())


def _dropout(x: Arrays, attributes: dict[str, Any]) -> Iterator[Variant]:
    p = attributes.get("p", 0.5)
    yield "kept entries are not divided by 1 - p", lambda: np.where(x["keep"], x["x"], 0)
    yield (
        "kept entries are divided by p",
        lambda: np.where(x["keep"], x["x"] / p, 0) if p else x["x"],
    )
    yield "the mask is inverted", _run("dropout", {**x, "keep": ~x["keep"]}, attributes)
    yield "training is ignored", _run("dropout", x, attributes, training=True)


def _entropy(x: Arrays, attributes: dict[str, Any]) -> Iterator[Variant]:
    counts = x["targets"] != attributes.get("ignore_index", -100)
    if attributes.get("label_smoothing"):
        yield "label smoothing is ignored", _run("cross_entropy", x, attributes, label_smoothing=0)
    if attributes.get("reduction", "mean") == "mean":
        total = _run("cross_entropy", x, attributes, reduction="sum")
        yield "the sum for the mean", total
        yield "ignored rows count in the mean", lambda: np.asarray(total() / max(counts.size, 1))


def _slices(name: str, x: np.ndarray, attributes: dict[str, Any]) -> Slices:
    if name == "group_norm":
        return by_group(x, attributes.get("groups", 1))
    return by_channel(x) if name == "batch_norm" else by_row(x)


def _norm(name: str, x: Arrays, attributes: dict[str, Any]) -> Iterator[Variant]:
    eps = attributes.get("eps", 1e-5)
    slices = _slices(name, x["x"], attributes)
    rows = slices.cut(x["x"])
    n = rows.shape[-1]
    centre = 0.0 if name == "rms_norm" else rows.mean(axis=-1, keepdims=True)
    away = rows - centre
    square = (away * away).mean(axis=-1, keepdims=True)

    def form(z: Callable[[], np.ndarray], extra: float = 0.0) -> Callable[[], np.ndarray]:
        def run() -> np.ndarray:
            y = slices.join(z())
            y = y * (slices.spread(x["weight"]) + extra) if "weight" in x else y
            return y + slices.spread(x["bias"]) if "bias" in x else y

        return run

    yield "eps is added outside of the root", form(lambda: away / (np.sqrt(square) + eps))
    yield "eps is left out", form(lambda: away / np.sqrt(square))
    if eps != 1e-5:
        yield "the given eps is ignored", form(lambda: away / np.sqrt(square + 1e-5))
    if n > 1:
        unbiased = square * (n / (n - 1))
        yield "the variance is divided by n - 1", form(lambda: away / np.sqrt(unbiased + eps))
    if name != "rms_norm":
        mass = (rows * rows).mean(axis=-1, keepdims=True)
        yield "the mean is not subtracted", form(lambda: rows / np.sqrt(mass + eps))
    if "weight" in x:
        plain = form(lambda: away / np.sqrt(square + eps), extra=1.0)
        yield "1 is added to the weight", plain
    for left in ("weight", "bias"):
        if left in x:
            rest = {k: v for k, v in x.items() if k != left}
            yield f"the {left} is left out", _run(name, rest, attributes)
