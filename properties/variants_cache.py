"""Known wrong variants of decoding with a cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from assay.spec.attention import attention
from assay.spec.decoding import Past, pasts, recompute, sight, steps

Stream = dict[str, Any]
Variant = tuple[str, Callable[[], np.ndarray]]
Change = Callable[[dict[str, Any], Past], dict[str, Any]]


def cache_variants(x: Stream, attributes: dict[str, Any]) -> Iterator[Variant]:
    """Names and outputs of the wrong variants of one session, those that apply to it."""
    script = attributes.get("script", ())
    every = steps(script, x["k"].shape[3])
    chunks = [step for step in every if step.action == "append" and step.tokens > 1]
    yield "a chunk sees nothing of what was held", partial(_changed, x, attributes, _alone)
    yield (
        "the causal triangle of a chunk is aligned top-left: what was held counts as its own",
        partial(_changed, x, attributes, _top_left),
    )
    if chunks:
        yield (
            "the tokens of a chunk see each other whatever their order",
            partial(_changed, x, attributes, _not_causal),
        )
    for action in ("reorder", "reset"):
        if any(step.action == action for step in every):
            yield f"{action} is ignored", partial(_without, x, attributes, action)
    if any(attributes.get("pads", ())):
        yield "padding is seen", lambda: recompute(**x, **{**attributes, "pads": ()})
    if attributes.get("rolling"):
        slots: int = attributes.get("capacity") or x["k"].shape[3]
        for by, words in ((1, "one token too many"), (-1, "one token too few")):
            other = {**attributes, "capacity": slots + by}
            yield f"the ring holds {words}", partial(recompute, **x, **other)


def _without(x: Stream, attributes: dict[str, Any], action: str) -> np.ndarray:
    lines = attributes["script"]
    kept = tuple(line for line in lines if not line.startswith(action))
    return recompute(**x, **{**attributes, "script": kept})


def _alone(rules: dict[str, Any], past: Past) -> dict[str, Any]:
    held = len(past.tokens) - past.step.tokens
    window = (None, None) if not held else (past.step.tokens - 1, None)
    own = np.arange(len(past.tokens)) >= held
    return {**rules, "window": window, "mask": own[None, None, None]}


def _top_left(rules: dict[str, Any], past: Past) -> dict[str, Any]:
    return {**rules, "offset": 0}


def _not_causal(rules: dict[str, Any], past: Past) -> dict[str, Any]:
    return {n: rule for n, rule in rules.items() if n not in ("causal", "mask")}


def _changed(x: Stream, attributes: dict[str, Any], change: Change) -> np.ndarray:
    """Attention over the whole past by other rules of what is seen."""
    q, k, v = x["q"], x["k"], x["v"]
    out = np.zeros((*q.shape[:-1], v.shape[4]))
    script, pads = attributes.get("script", ()), attributes.get("pads", ())
    for past in pasts(script, q.shape[1], q.shape[3], pads):
        rules = sight(
            past,
            q.shape[0],
            attributes.get("capacity"),
            rolling=attributes.get("rolling", False),
        )
        found = attention(past.chunk(q), past.of(k), past.of(v), **change(rules, past))
        out[:, :, :, past.place] = found.reshape(out[:, :, :, past.place].shape)
    return out
