"""Known wrong variants of an op, by the words of a blame hint: what faulty kernels often compute.

A variant is a spec of its own; the hint names the one whose values match the faulty output within
the bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from assay.properties import reference
from assay.properties.context import Context
from assay.properties.variants_blocks import block_variants
from assay.properties.variants_cache import cache_variants
from assay.properties.variants_grids import grid_variants
from assay.properties.variants_layers import layer_variants
from assay.properties.variants_models import model_variants
from assay.properties.variants_sequences import sequence_variants
from assay.spec.attention import attention, attention_scores, expand_kv, visible
from assay.spec.softmax import masked_softmax, penalty_softmax, sentinel_softmax

Arrays = dict[str, np.ndarray]
Variant = tuple[str, Callable[[], np.ndarray]]


def variants(ctx: Context, inputs: Arrays, attributes: dict[str, Any]) -> Iterator[Variant]:
    """Names and values of the wrong variants of one call, those that apply to it."""
    wide = {name: reference.widen(a, "float32") for name, a in inputs.items()}
    if ctx.op.name == "attention":
        yield from _attention(wide, attributes)
    elif ctx.op.name == "masked_softmax":
        yield from _softmax(wide)
    if ctx.op.name == "kv_cache":
        yield from cache_variants(wide, attributes)
    yield from grid_variants(ctx.op.name, wide, attributes)
    yield from layer_variants(ctx.op.name, wide, attributes)
    yield from block_variants(ctx.op.name, wide, attributes)
    yield from sequence_variants(ctx.op.name, wide, attributes)
    yield from model_variants(ctx.op.name, wide, attributes)


def _attention(x: Arrays, attributes: dict[str, Any]) -> Iterator[Variant]:
    q, k, v, mask = x["q"], x["k"], x["v"], x.get("mask")
    rest = {n: a for n, a in attributes.items() if n not in ("mask",)}

    def run(**changed: Any) -> Callable[[], np.ndarray]:
        final = {"mask": mask, **rest, **changed}
        final = {n: a for n, a in final.items() if a is not None}
        return lambda: attention(q, k, v, **final)

    if "scale" in rest and rest["scale"] < 0:
        yield "the sign of the given scale is lost", run(scale=-rest["scale"])
    if "scale" in rest:
        yield "the given scale is ignored: 1/sqrt(D) is used", run(scale=None)
    yield "scores are not scaled", run(scale=1.0)
    yield "scores are scaled by 1/D instead of 1/sqrt(D)", run(scale=1.0 / max(q.shape[3], 1))
    if rest.get("causal"):
        yield "the causal mask is ignored", run(causal=False)
        if rest.get("offset"):
            yield "the causal triangle is aligned top-left: the offset is ignored", run(offset=0)
        yield "the causal triangle is aligned bottom-right", run(offset=k.shape[2] - q.shape[2])
        yield (
            "the causal mask is off by one: a query does not see itself",
            run(offset=rest.get("offset", 0) - 1),
        )
        yield (
            "the causal mask is off by one: a query sees the next key",
            run(offset=rest.get("offset", 0) + 1),
        )
    if rest.get("window"):
        yield "the window is ignored", run(window=None)
    if mask is not None:
        yield "the mask is ignored", run(mask=None)
        if mask.dtype == bool:
            yield "the mask's polarity is flipped", run(mask=~mask)
        else:
            yield "the additive mask's finite part is ignored", run(mask=~np.isneginf(mask))
    if k.shape[1] != q.shape[1]:
        order = [h % k.shape[1] for h in range(q.shape[1])]
        yield (
            "query head h reads key/value head h % Hkv",
            lambda: attention(
                q,
                k[:, order],
                v[:, order],
                **{n: a for n, a in {"mask": mask, **rest}.items() if a is not None},
            ),
        )
    yield from _soft_masks(q, k, v, mask, rest)


def _soft_masks(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray | None, rest: dict[str, Any]
) -> Iterator[Variant]:
    rules = {n: rest[n] for n in ("causal", "offset", "window") if n in rest}
    allowed = visible(q, k, mask=mask, **rules)
    if allowed.all():
        return
    scores = attention_scores(q, k, mask, rest.get("scale"))
    values = expand_kv(v, q.shape[1])
    some, keys = allowed.any(axis=-1, keepdims=True), max(allowed.shape[-1], 1)
    yield (
        "blocked keys are scored 0 instead of being left out",
        lambda: np.matmul(masked_softmax(np.where(allowed, scores, 0.0)), values),
    )
    for penalty in (1e4, 1e9):
        yield (
            f"blocked keys get a finite penalty of about -{penalty:g}",
            partial(_apply, values, penalty_softmax, scores, allowed, penalty),
        )
        yield (
            f"blocked scores are replaced by about -{penalty:g}",
            partial(_apply, values, sentinel_softmax, scores, allowed, -penalty),
        )
    yield (
        "queries that see no key get the mean of all values",
        lambda: np.matmul(np.where(some, masked_softmax(scores, allowed), 1.0 / keys), values),
    )


def _apply(
    values: np.ndarray, soft: Callable[..., np.ndarray], scores: np.ndarray, *rest: Any
) -> np.ndarray:
    """Values weighted by another softmax."""
    return np.asarray(np.matmul(soft(scores, *rest), values))


def _softmax(x: Arrays) -> Iterator[Variant]:
    scores, mask = x["scores"], x.get("mask")
    if mask is None:
        return
    yield "the mask is ignored", lambda: masked_softmax(scores)
    yield "the mask's polarity is flipped", lambda: masked_softmax(scores, ~mask)
    yield (
        "blocked entries are scored 0 instead of being left out",
        lambda: masked_softmax(np.where(mask, scores, 0.0)),
    )
    for penalty in (30.0, 1e4, 1e9):
        yield (
            f"blocked entries get a finite penalty of about -{penalty:g}",
            partial(penalty_softmax, scores, mask, penalty),
        )
        yield (
            f"blocked scores are replaced by about -{penalty:g}",
            partial(sentinel_softmax, scores, mask, -penalty),
        )
