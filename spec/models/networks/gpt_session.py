"""A decoding session of the course GPT: a script of steps (``spec.decoding``) on one cache, and the
logits of every token that it takes in.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Int, Shaped

from assay.spec.cache import reorder, reset
from assay.spec.decoding import Past, Script, must_overflow, pasts, steps
from assay.spec.layers.layer import Params
from assay.spec.models.gpt import GPTConfig
from assay.spec.models.networks.gpt import Ids, Logits, decode, empty_cache, forward
from assay.spec.scalars import Array


class Session(NamedTuple):
    """What a session shows.

    out      logits of every token; 0 for refused tokens
    lengths  tokens held after each step
    refused  1 where a step was refused
    """

    out: Logits
    lengths: Shaped[np.ndarray, " Na"]
    refused: Shaped[np.ndarray, " Na"]


def _padding(pads: tuple[int, ...], batch: int) -> Int[np.ndarray, " B"]:
    if pads and len(pads) != batch:
        raise ValueError(f"pads={pads!r} must have one number for each of {batch} rows")
    return np.array(pads or (0,) * batch, dtype=int)


def play(
    config: GPTConfig,
    params: Params,
    ids: Ids,
    *,
    script: Script = (),
    pads: tuple[int, ...] = (),
) -> Session:
    """Run a script on the tokens ``ids`` with one cache of the whole context.

    ``pads``: padding tokens that row b begins with, again after a reset; (): none. A chunk beyond
    the context is refused, and the session goes on as if it had not come.
    """
    batch, kind = ids.shape[0], params["token"].dtype
    first = padding = _padding(pads, batch)
    begin = cache = empty_cache(config, batch, kind)
    chunks: list[Array] = []
    lengths, every = [], steps(script, ids.shape[1])
    for step in every:
        chunk = ids[:, step.start : step.start + step.tokens]
        logits = np.zeros((*chunk.shape, config.vocabulary), kind)
        if step.action == "append":
            logits, cache = decode(config, params, chunk, cache, pads=padding)
        elif step.action == "overflow":
            must_overflow(cache.length, step.tokens, config.context)
        elif step.action == "reset":
            cache, padding = reset(begin), first
        else:
            rows = np.array(step.numbers, dtype=int)
            cache, padding = reorder(cache, rows), padding[rows]
        chunks.append(logits)
        lengths.append(cache.length)
    refused = [int(step.action == "overflow") for step in every]
    return Session(np.concatenate(chunks, axis=1), np.array(lengths), np.array(refused))


def replay(
    config: GPTConfig,
    params: Params,
    ids: Ids,
    *,
    script: Script = (),
    pads: tuple[int, ...] = (),
) -> Logits:
    """The logits of ``play`` without a cache: the whole model on all that a row was given since the
    last reset, of which the rows of the newest chunk count.

    No logit depends on how its past was cut into chunks, so that this is the same function.
    """
    batch, tokens = ids.shape
    appended, parts = pasts(script, batch, tokens, pads), []
    for step in steps(script, tokens):
        if step.action == "append":
            parts.append(_newest(config, params, ids, next(appended)))
        else:
            parts.append(np.zeros((batch, step.tokens, config.vocabulary), params["token"].dtype))
    return np.concatenate(parts, axis=1)


def _newest(config: GPTConfig, params: Params, ids: Ids, past: Past) -> Logits:
    """The logits of the chunk at the end of ``past``."""
    known = ids[past.rows, past.tokens]
    whole = forward(config, params, known, pads=past.pads)
    return whole[:, len(past.tokens) - past.step.tokens :]
