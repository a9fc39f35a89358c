"""Known wrong variants of transformer layers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from assay.spec.ops import op

Arrays = dict[str, np.ndarray]
Variant = tuple[str, Callable[[], np.ndarray]]
OPS = ("encoder_layer", "decoder_layer")


def block_variants(name: str, x: Arrays, attributes: dict[str, Any]) -> Iterator[Variant]:
    """Names and values of the wrong variants of a layer's output."""
    if name not in OPS:
        return
    if attributes.get("causal"):
        yield "the causal mask is ignored", _run(name, x, attributes, causal=False)
    for keys in ("keys", "memory_keys"):
        if keys in x:
            rest = {n: a for n, a in x.items() if n != keys}
            yield f"{keys} is ignored: padding is seen", _run(name, rest, attributes)
    first = attributes.get("norm_first", False)
    where = "after the additions" if first else "before the branches"
    yield f"the norms stand {where}", _run(name, x, attributes, norm_first=not first)
    if attributes.get("activation", "relu") != "relu":
        yield "relu for the given activation", _run(name, x, attributes, activation="relu")


def _run(
    name: str, x: Arrays, attributes: dict[str, Any], **changed: Any
) -> Callable[[], np.ndarray]:
    return lambda: op(name).forward(x, {**attributes, **changed})["out"]
