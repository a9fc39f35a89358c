"""A decoding session: a script of steps on one cache, and what stands in it after each of them.

A script is a tuple of lines; the tokens of a stream are used up from left to right.

append n           the next n tokens as one chunk
overflow n         the next n tokens, which cannot fit: refused, and the cache is as before
reorder r0 r1 ...  row b goes on with the past of row r_b
reset              nothing held
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int, Shaped

from assay.spec.attention import attention
from assay.spec.cache import (
    Cache,
    advance,
    decode_attention,
    empty,
    held,
    padded_positions,
    padded_visible,
    reorder,
    reset,
    ring_position,
    ring_slot,
    roll,
    rolling_attention,
)
from assay.spec.scalars import Array

Script = tuple[str, ...]
Q = Shaped[np.ndarray, "Nl B H T D"]
K = Shaped[np.ndarray, "Nl B Hkv T D"]
V = Shaped[np.ndarray, "Nl B Hkv T Dv"]

ACTIONS = ("append", "overflow", "reorder", "reset")


class Step(NamedTuple):
    """One line of a script.

    action   one of ACTIONS
    numbers  tokens of a chunk, or the rows that go on
    start    tokens of the stream that are used up before
    """

    action: str
    numbers: tuple[int, ...]
    start: int

    @property
    def tokens(self) -> int:
        """Tokens of the stream that the step uses up."""
        return self.numbers[0] if self.action in ("append", "overflow") else 0


def steps(script: Script, tokens: int) -> tuple[Step, ...]:
    """The steps of a script on a stream of ``tokens``; no script: one chunk of all of them.

    ValueError when a line says nothing, or when the steps do not use up the stream.

    >>> [step.start for step in steps(("append 2", "reset", "append 1"), 3)]
    [0, 2, 2]
    """
    read, start = [], 0
    for line in script or (f"append {tokens}",):
        action, *words = line.split()
        if action not in ACTIONS or not all(word.isdecimal() for word in words):
            raise ValueError(f"line={line!r} is no step; valid: {', '.join(ACTIONS)} and numbers")
        if action in ("append", "overflow") and len(words) != 1:
            raise ValueError(f"line={line!r} needs one number of tokens")
        read.append(Step(action, tuple(map(int, words)), start))
        start += read[-1].tokens
    if start != tokens:
        raise ValueError(f"script={script!r} takes {start} tokens of a stream of {tokens}")
    return tuple(read)


class Decoded(NamedTuple):
    """What a session shows: outputs by token, and the state after each step.

    out        outputs; 0 for refused tokens
    positions  of each token in its row; 0 for padding and for refused tokens
    k, v       what is held, oldest first; 0 beyond
    lengths    tokens appended since the last reset
    refused    1 where a step was refused
    """

    out: Shaped[np.ndarray, "Nl B H T Dv"]
    positions: Shaped[np.ndarray, "B T"]
    k: Shaped[np.ndarray, "Na Nl B Hkv M D"]
    v: Shaped[np.ndarray, "Na Nl B Hkv M Dv"]
    lengths: Shaped[np.ndarray, " Na"]
    refused: Shaped[np.ndarray, " Na"]


@dataclass(frozen=True)
class _Session:
    cache: Cache
    pads: Int[np.ndarray, " B"]
    rolling: bool

    def append(self, q: Q, k: K, v: V) -> tuple[Array, Array, _Session]:
        """Outputs [Nl, B, H, T, Dv], positions [B, T], and the session with the chunk."""
        cache, tokens, outputs = self.cache, k.shape[3], []
        for layer in range(cache.layers):
            chunk = (q[layer], k[layer], v[layer], cache, layer)
            out, cache = (
                rolling_attention(*chunk)
                if self.rolling
                else decode_attention(*chunk, pads=self.pads)
            )
            outputs.append(out)
        positions = padded_positions(self.pads, tokens, cache.length)
        after = (roll if self.rolling else advance)(cache, tokens)
        return np.stack(outputs), positions, replace(self, cache=after)

    def kept(self) -> tuple[Array, Array]:
        """Keys and values held, oldest first, and zeros up to the capacity."""
        cache = self.cache
        if not self.rolling:
            layers = [held(cache, layer) for layer in range(cache.layers)]
            return _filled([e.k for e in layers], cache.k), _filled([e.v for e in layers], cache.v)
        stands = ring_position(np.arange(cache.capacity), cache.length, cache.capacity)
        slots = ring_slot(np.sort(stands[stands >= 0]), max(cache.capacity, 1))
        return (
            _filled(list(cache.k[:, :, :, slots]), cache.k),
            _filled(list(cache.v[:, :, :, slots]), cache.v),
        )


def _filled(parts: list[Array], like: Array) -> Array:
    whole = np.stack(parts)
    free = like.shape[3] - whole.shape[3]
    return np.concatenate([whole, np.zeros_like(like[:, :, :, :free])], axis=3)


def decode(
    q: Q,
    k: K,
    v: V,
    *,
    script: Script = (),
    capacity: int | None = None,
    pads: tuple[int, ...] = (),
    rolling: bool = False,
) -> Decoded:
    """Run a script on the stream q, k, v with one cache.

    capacity  slots; None: one for each token of the stream
    pads      padding tokens that row b begins with, again after a reset; (): none
    rolling   a ring: attention over the last ``capacity`` tokens

    >>> x = np.ones((1, 1, 1, 2, 1))
    >>> decode(x, x, x, script=("append 1", "overflow 1"), capacity=1).lengths.tolist()
    [1, 1]
    """
    begin = new_session(k, v, capacity=capacity, pads=pads, rolling=rolling)
    session, seen = begin, []
    for step in steps(script, k.shape[3]):
        chunk = [x[:, :, :, step.start : step.start + step.tokens] for x in (q, k, v)]
        shape = (*chunk[0].shape[:-1], v.shape[4])
        out, positions = np.zeros(shape), np.zeros((shape[1], shape[3]))
        if step.action == "append":
            out, positions, session = session.append(*chunk)
        elif step.action == "overflow":
            must_overflow(session.cache.length, step.tokens, session.cache.capacity)
        else:
            session = _moved(step, session, begin)
        seen.append((out, positions, session))
    kept = [after.kept() for *_, after in seen]
    return Decoded(
        np.concatenate([out for out, *_ in seen], axis=3),
        np.concatenate([positions for _, positions, _ in seen], axis=1),
        np.stack([keys for keys, _ in kept]),
        np.stack([values for _, values in kept]),
        np.array([after.cache.length for *_, after in seen]),
        np.array([int(step.action == "overflow") for step in steps(script, k.shape[3])]),
    )


def new_session(
    k: K, v: V, *, capacity: int | None, pads: tuple[int, ...], rolling: bool
) -> _Session:
    """Nothing held yet."""
    layers, batch, heads, tokens, width = k.shape
    if rolling and any(pads):
        raise ValueError(f"pads={pads!r} must be 0 in a ring: padding would push tokens out")
    if pads and len(pads) != batch:
        raise ValueError(f"pads={pads!r} must have one number for each of {batch} rows")
    slots = tokens if capacity is None else capacity
    cache = empty(layers, batch, heads, slots, width, v.shape[4], dtype=k.dtype)
    return _Session(cache, np.array(pads or (0,) * batch, dtype=int), rolling)


def must_overflow(length: int, tokens: int, capacity: int) -> None:
    """ValueError when the tokens fit: the script is wrong."""
    if length + tokens <= capacity:
        raise ValueError(f"overflow of tokens={tokens} fits: length={length}, capacity={capacity}")


def _moved(step: Step, session: _Session, begin: _Session) -> _Session:
    """After a reorder or a reset."""
    if step.action == "reset":
        return replace(begin, cache=reset(session.cache))
    rows = np.array(step.numbers, dtype=int)
    return replace(session, cache=reorder(session.cache, rows), pads=session.pads[rows])


# Without a cache


class Past(NamedTuple):
    """All that a row was given since the last reset, a chunk of ``step`` at its end.

    rows    row of the stream from which each token came
    tokens  its place in the stream
    pads    padding tokens at the beginning
    """

    step: Step
    rows: Int[np.ndarray, "B S"]
    tokens: Int[np.ndarray, " S"]
    pads: Int[np.ndarray, " B"]

    def of(self, x: Shaped[np.ndarray, "Nl B G T W"]) -> Shaped[np.ndarray, "Nl*B G S W"]:
        """What the rows were given, layers and rows on one axis."""
        found = x[:, self.rows, :, self.tokens].transpose(2, 0, 3, 1, 4)
        return found.reshape(found.shape[0] * found.shape[1], *found.shape[2:])

    def chunk(self, x: Shaped[np.ndarray, "Nl B G T W"]) -> Shaped[np.ndarray, "Nl*B G n W"]:
        """The rows' own part of the chunk, layers and rows on one axis."""
        found = x[:, :, :, self.place]
        return found.reshape(found.shape[0] * found.shape[1], *found.shape[2:])

    @property
    def place(self) -> slice:
        """Where the chunk stands in the stream."""
        return slice(self.step.start, self.step.start + self.step.tokens)


def pasts(script: Script, batch: int, tokens: int, pads: tuple[int, ...] = ()) -> Iterator[Past]:
    """What each appended chunk looks back on. Rows swap their pasts where they are reordered.

    >>> [p.tokens.tolist() for p in pasts(("append 2", "reset", "append 1"), 1, 3)]
    [[0, 1], [2]]
    """
    first = np.array(pads or (0,) * batch, dtype=int)
    own = np.arange(batch)[:, None]
    rows, known, padding = own[:, :0], np.arange(0), first
    for step in steps(script, tokens):
        if step.action == "reset":
            rows, known, padding = own[:, :0], known[:0], first
        elif step.action == "reorder":
            order = np.array(step.numbers, dtype=int)
            rows, padding = rows[order], padding[order]
        elif step.action == "append":
            new = step.start + np.arange(step.tokens)
            rows = np.concatenate([rows, np.broadcast_to(own, (batch, step.tokens))], axis=1)
            known = np.concatenate([known, new])
            yield Past(step, rows, known, padding)


def sight(past: Past, layers: int, capacity: int | None, *, rolling: bool) -> dict[str, Any]:
    """What the chunk may see of its past, as keywords of ``attention``."""
    count, whole = past.step.tokens, len(past.tokens)
    rules: dict[str, Any] = {"causal": True, "offset": whole - count}
    if rolling:
        window = whole if capacity is None else capacity
        return {**rules, "window": (window - 1, 0)}
    if past.pads.any():
        return {**rules, "mask": padded_visible(np.tile(past.pads, layers), count, whole - count)}
    return rules


def recompute(
    q: Q,
    k: K,
    v: V,
    *,
    script: Script = (),
    capacity: int | None = None,
    pads: tuple[int, ...] = (),
    rolling: bool = False,
) -> Shaped[np.ndarray, "Nl B H T Dv"]:
    """The outputs of ``decode`` without a cache: causal attention over all that a row was given.

    >>> x = np.array([1.0, 3.0]).reshape(1, 1, 1, 2, 1)
    >>> recompute(0 * x, x, x, script=("append 1", "append 1")).ravel().tolist()
    [1.0, 2.0]
    """
    out = np.zeros((*q.shape[:-1], v.shape[4]), dtype=v.dtype)
    for past in pasts(script, q.shape[1], q.shape[3], pads):
        rules = sight(past, q.shape[0], capacity, rolling=rolling)
        found = attention(past.chunk(q), past.of(k), past.of(v), **rules)
        out[:, :, :, past.place] = found.reshape(out[:, :, :, past.place].shape)
    return out
