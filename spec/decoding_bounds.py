"""Error bound of a decoding session: that of attention for every chunk; the state is exact."""

from __future__ import annotations

import numpy as np

from assay.spec.arithmetic import Arithmetic
from assay.spec.attention_bounds import attention_bound
from assay.spec.decoding import Decoded, K, Q, Script, V, pasts, sight, steps


def decode_bound(
    q: Q,
    k: K,
    v: V,
    *,
    arithmetic: Arithmetic,
    script: Script = (),
    capacity: int | None = None,
    pads: tuple[int, ...] = (),
    rolling: bool = False,
) -> Decoded:
    """Bound on |computed - exact| of everything that a session shows.

    A cache moves keys and values and never rounds them, so a chunk sees exactly what was appended:
    its error is that of one attention over its past. Keys that a kernel blocks instead of leaving
    out have weight 0 and add nothing. Held arrays, positions, lengths and refusals are exact.
    """
    layers, batch, heads, tokens, _ = q.shape
    out = np.zeros((layers, batch, heads, tokens, v.shape[4]))
    for past in pasts(script, batch, tokens, pads):
        rules = sight(past, layers, capacity, rolling=rolling)
        found = attention_bound(
            past.chunk(q), past.of(k), past.of(v), arithmetic=arithmetic, **rules
        )
        out[:, :, :, past.place] = found.reshape(out[:, :, :, past.place].shape)
    count = len(steps(script, tokens))
    slots = tokens if capacity is None else capacity
    held = (count, layers, batch, k.shape[2], slots)
    return Decoded(
        out,
        np.zeros((batch, tokens)),
        np.zeros((*held, k.shape[4])),
        np.zeros((*held, v.shape[4])),
        np.zeros(count),
        np.zeros(count),
    )
