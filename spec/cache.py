"""Key/value cache: a chunk of T tokens is written to slots length..length+T, and its queries see
slots 0..length+i. The length grows once a step, after the last layer.

Everything is a function from a cache to a new one: a cache that is refused an append is as it was.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Int, Shaped

from assay.spec.attention import attention
from assay.spec.masks import causal_mask, causal_visible
from assay.spec.scalars import Array

K = Shaped[np.ndarray, "B Hkv T D"]
V = Shaped[np.ndarray, "B Hkv T Dv"]
Q = Shaped[np.ndarray, "B H T D"]


@dataclass(frozen=True)
class Cache:
    """Keys and values of every layer in preallocated slots.

    k, v    [layers, B, Hkv, M, D or Dv]; what stands in slots from ``length`` on means nothing
    length  tokens held, which is also the position of the next token
    """

    k: Shaped[np.ndarray, "layers B Hkv M D"]
    v: Shaped[np.ndarray, "layers B Hkv M Dv"]
    length: int = 0

    @property
    def layers(self) -> int:
        """Number of layers."""
        return self.k.shape[0]

    @property
    def capacity(self) -> int:
        """Number of slots."""
        return self.k.shape[3]


class Entries(NamedTuple):
    """Keys and values of one layer."""

    k: Array
    v: Array


def empty(
    layers: int,
    batch: int,
    heads: int,
    capacity: int,
    width: int,
    value_width: int | None = None,
    dtype: Any = np.float64,
) -> Cache:
    """A cache of ``capacity`` slots that holds nothing; values are as wide as keys unless told.

    >>> empty(2, 1, 3, 8, 4).k.shape
    (2, 1, 3, 8, 4)
    """
    shape = (layers, batch, heads, capacity)
    wide = width if value_width is None else value_width
    return Cache(np.zeros((*shape, width), dtype), np.zeros((*shape, wide), dtype))


def position(length: Any, i: Any) -> Any:
    """Position of token i of the next chunk: the token that is appended at step t stands at t.

    >>> position(5, 0)
    5
    """
    return length + i


def sees(i: Any, j: Any, length: Any) -> Any:
    """Query i of the next chunk sees slot j: j <= length + i, as if the whole were run at once.

    >>> sees(0, 5, 5), sees(0, 6, 5)
    (True, False)
    """
    return causal_visible(i, j, offset=length)


def _check(cache: Cache, layer: int, k: K, v: V) -> None:
    if not 0 <= layer < cache.layers:
        raise ValueError(f"layer={layer!r} must lie within 0..{cache.layers - 1}")
    for name, new, old in (("k", k, cache.k), ("v", v, cache.v)):
        want = (*old.shape[1:3], k.shape[2] if k.ndim == 4 else None, old.shape[4])
        if new.shape != want:
            raise ValueError(
                f"{name} has shape {new.shape}, should be [batch, heads, tokens, width] "
                f"{old.shape[1:3]} + (tokens, {old.shape[4]})"
            )


def _room(cache: Cache, tokens: int) -> None:
    if cache.length + tokens > cache.capacity:
        raise ValueError(
            f"length={cache.length} + tokens={tokens} exceeds capacity={cache.capacity}: "
            f"at most {cache.capacity - cache.length} more fit"
        )


def _put(old: Array, layer: int, start: int, new: Array) -> Array:
    """``new`` in slots start.. of one layer; everything else kept."""
    row = old[layer]
    parts = [row[:, :, :start], new, row[:, :, start + new.shape[2] :]]
    filled = np.concatenate(parts, axis=2)[None]
    return np.concatenate([old[:layer], filled, old[layer + 1 :]], axis=0)


def write(cache: Cache, layer: int, k: K, v: V) -> Cache:
    """The chunk in slots length..length+T of one layer; the length is as before.

    ValueError when it does not fit, naming length, tokens and capacity.

    >>> chunk = np.full((1, 1, 2, 1), 7.0)
    >>> after = write(empty(1, 1, 1, 3, 1), 0, chunk, chunk)
    >>> after.k.ravel().tolist(), after.length
    ([7.0, 7.0, 0.0], 0)
    """
    _check(cache, layer, k, v)
    _room(cache, k.shape[2])
    start = cache.length
    return replace(cache, k=_put(cache.k, layer, start, k), v=_put(cache.v, layer, start, v))


def advance(cache: Cache, tokens: int) -> Cache:
    """The length grown by ``tokens``: called once a step, when the last layer has written.

    >>> advance(empty(2, 1, 1, 3, 1), 2).length
    2
    """
    if tokens < 0:
        raise ValueError(f"tokens={tokens!r} must not be negative")
    _room(cache, tokens)
    return replace(cache, length=cache.length + tokens)


def held(cache: Cache, layer: int, tokens: int = 0) -> Entries:
    """Keys and values in slots 0..length+tokens: those held, and a chunk just written."""
    _room(cache, tokens)
    end = cache.length + tokens
    return Entries(cache.k[layer, :, :, :end], cache.v[layer, :, :, :end])


def decode_attention(
    q: Q, k: K, v: V, cache: Cache, layer: int = 0, *, pads: Int[np.ndarray, " B"] | None = None
) -> tuple[Shaped[np.ndarray, "B H T Dv"], Cache]:
    """Causal attention of a chunk over everything before it, and the cache with the chunk written.

    Equals rows length..length+T of the full causal run, however the sequence is cut into chunks.
    The length is as before: ``advance`` after the last layer. ``pads`` as in ``padded_visible``.

    >>> x = np.ones((1, 1, 1, 1))
    >>> out, cache = decode_attention(x, x, 2 * x, empty(1, 1, 1, 4, 1))
    >>> decode_attention(x, x, 4 * x, advance(cache, 1))[0].ravel().tolist()
    [3.0]
    """
    cache = write(cache, layer, k, v)
    tokens = k.shape[2]
    keys, values = held(cache, layer, tokens)
    mask = None if pads is None else padded_visible(pads, tokens, cache.length)
    return attention(q, keys, values, mask=mask, causal=True, offset=cache.length), cache


def reset(cache: Cache) -> Cache:
    """Nothing held. The slots keep what they had: no query sees it."""
    return replace(cache, length=0)


def reorder(cache: Cache, rows: Int[np.ndarray, " B2"]) -> Cache:
    """Row b of the result is row rows[b] of every layer: a beam carries its own past.

    >>> cache = Cache(np.arange(2.0).reshape(1, 2, 1, 1, 1), np.zeros((1, 2, 1, 1, 1)), 1)
    >>> reorder(cache, np.array([1, 1])).k.ravel().tolist()
    [1.0, 1.0]
    """
    batch = cache.k.shape[1]
    if ((rows < 0) | (rows >= batch)).any():
        raise ValueError(f"rows={rows.tolist()} must lie within 0..{batch - 1}")
    return replace(cache, k=cache.k[:, rows], v=cache.v[:, rows])


# Left padding


def padded_positions(
    pads: Int[np.ndarray, " B"], tokens: int, length: int = 0
) -> Int[np.ndarray, "B T"]:
    """Positions of a chunk whose row b begins with pads[b] padding tokens: counted from the first
    real token; 0 for padding.

    >>> padded_positions(np.array([0, 2]), 4).tolist()
    [[0, 1, 2, 3], [0, 0, 0, 1]]
    """
    slots = position(length, np.arange(tokens))
    return np.maximum(slots - pads[:, None], 0)


def padded_visible(
    pads: Int[np.ndarray, " B"], tokens: int, length: int = 0
) -> Bool[np.ndarray, "B 1 T S"]:
    """Which slots a chunk sees when row b begins with pads[b] padding tokens: the causal rule, no
    padding, and every token itself, so that a padding query has a key.

    >>> padded_visible(np.array([1]), 3)[0, 0].astype(int).tolist()
    [[1, 0, 0], [0, 1, 0], [0, 1, 1]]
    """
    slots = np.arange(length + tokens)
    itself = slots == position(length, np.arange(tokens))[:, None]
    real = (slots >= pads[:, None])[:, None, None, :]
    return causal_mask(tokens, length + tokens, length) & (real | itself)


# Rolling window


def ring_slot(t: Any, window: Any) -> Any:
    """Slot of the token at position t: the one of the token that it pushes out, t - window.

    >>> ring_slot(5, 4), ring_slot(1, 4)
    (1, 1)
    """
    return t % window


def ring_position(slot: Any, length: Any, window: Any) -> Any:
    """Position of the token in a slot when ``length`` tokens were appended; negative: none yet.

    It is the last t < length with t = slot modulo window.

    >>> [ring_position(s, 6, 4) for s in range(4)]
    [4, 5, 2, 3]
    >>> [ring_position(s, 2, 4) for s in range(4)]
    [0, 1, -2, -1]
    """
    last = length - 1
    return last - (last - slot) % window


def rolling_attention(
    q: Q, k: K, v: V, cache: Cache, layer: int = 0
) -> tuple[Shaped[np.ndarray, "B H T Dv"], Cache]:
    """Attention over the last ``capacity`` tokens, the query's own among them, in a ring of slots.

    Equals full attention with window (capacity - 1, 0). A chunk of any length is looked at before
    it is written: its first queries see tokens that its last ones push out. Length as in
    ``decode_attention``; ``roll`` after the last layer.
    """
    _check(cache, layer, k, v)
    window, length, tokens = cache.capacity, cache.length, k.shape[2]
    old = ring_position(np.arange(window), length, window)
    new = position(length, np.arange(tokens))
    stands, query = np.concatenate([old, new]), new[:, None]
    allowed = (stands >= 0) & (stands <= query) & (stands > query - window)
    keys = np.concatenate([cache.k[layer], k], axis=2)
    values = np.concatenate([cache.v[layer], v], axis=2)
    out = attention(q, keys, values, mask=allowed[None, None])
    # For each slot, the newest token that belongs there: in the chunk, or the one it has.
    after = ring_position(np.arange(window), length + tokens, window)
    source = np.where(after >= length, window + after - length, np.arange(window))
    k_after, v_after = keys[:, :, source], values[:, :, source]
    return out, replace(
        cache, k=_put(cache.k, layer, 0, k_after), v=_put(cache.v, layer, 0, v_after)
    )


def roll(cache: Cache, tokens: int) -> Cache:
    """``advance`` of a ring: there is always room.

    >>> roll(empty(1, 1, 1, 2, 1), 5).length
    5
    """
    if tokens < 0:
        raise ValueError(f"tokens={tokens!r} must not be negative")
    return replace(cache, length=cache.length + tokens)
