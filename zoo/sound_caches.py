"""A sound key/value cache to plant faults in: slots written in place, read layer by layer, in
float32; a ring where the session rolls.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from assay.impl.backends.shapes import check_attention
from assay.impl.contract import Contract
from assay.impl.numpy_backend import NumpyBackend
from assay.impl.protocol import implements
from assay.zoo.sound import row_softmax

Array = np.ndarray
Shown = tuple[Array, Array, Array, Array, Array, Array]


def in_slots(name: str, **promises: Any) -> Contract:
    """The contract of these caches under a name, with what differs."""
    common: dict[str, Any] = {
        "provider": "zoo",
        "gradients": False,
        "grouped_heads": True,
        "value_width": True,
        "blocked_nonfinite": "propagates",
    }
    return Contract(name, **{**common, **promises})


@dataclass
class Session:
    """What is kept from step to step.

    k, v     [Nl, B, Hkv, M, D or Dv];  length: tokens since the last reset
    pads     padding that each row begins with [B];  first: the same before any reorder
    rolling  slots are a ring
    """

    k: Array
    v: Array
    first: Array
    pads: Array
    rolling: bool
    length: int = 0

    @property
    def slots(self) -> int:
        """How many tokens fit."""
        return self.k.shape[3]


class SlotCache(NumpyBackend):
    """Every stage of a step is a method of its own."""

    contract = in_slots("zoo.slot-cache")

    @implements("kv_cache")
    def kv_cache(
        self,
        q: Array,
        k: Array,
        v: Array,
        *,
        script: Sequence[str] = (),
        capacity: int | None = None,
        pads: Sequence[int] = (),
        rolling: bool = False,
    ) -> Shown:
        """Outputs, positions, and after each step: keys, values, length, whether refused."""
        if not q.ndim == k.ndim == v.ndim == 5 or not len(q) == len(k) == len(v):
            raise ValueError(f"q {q.shape}, k {k.shape}, v {v.shape} do not fit together")
        check_attention(q[0], k[0], v[0])
        slots = k.shape[3] if capacity is None else capacity
        first = np.array(pads or [0] * q.shape[1])
        keys, values = (np.zeros((*x.shape[:3], slots, x.shape[4]), np.float32) for x in (k, v))
        return self.played(Session(keys, values, first, first, rolling), q, k, v, script)

    def played(self, s: Session, q: Array, k: Array, v: Array, script: Sequence[str]) -> Shown:
        """The script, a line at a time."""
        lines = [line.split() for line in script or (f"append {k.shape[3]}",)]
        counts = [int(w[1]) if w[0] in ("append", "overflow") else 0 for w in lines]
        out = np.zeros((*q.shape[:4], v.shape[4]), np.float32)
        positions = np.zeros((q.shape[1], q.shape[3]))
        states = []
        for words, count, end in zip(lines, counts, accumulate(counts), strict=True):
            chunk = slice(end - count, end)
            refused = 0
            if words[0] in ("append", "overflow"):
                new = [x[:, :, :, chunk].astype(np.float32) for x in (q, k, v)]
                try:
                    places = self.positions(s, count)
                    out[:, :, :, chunk] = self.append(s, *new)
                    positions[:, chunk] = places
                except ValueError:
                    refused = 1
            elif words[0] == "reorder":
                self.reorder(s, np.array(words[1:], dtype=int))
            else:
                self.reset(s)
            states.append((*self.held(s), s.length, refused))
        shown = [np.stack([np.asarray(x) for x in part]) for part in zip(*states, strict=True)]
        found = (out, positions, *shown)
        return tuple(x.astype(q.dtype) for x in found)  # type: ignore[return-value]

    def append(self, s: Session, q: Array, k: Array, v: Array) -> Array:
        """A chunk of every layer; a ring takes one token at a time."""
        tokens = k.shape[3]
        self.make_room(s, k, v)
        pieces = [slice(t, t + 1) for t in range(tokens)] if s.rolling else [slice(0, tokens)]
        outs = [self.step(s, *(x[:, :, :, piece] for x in (q, k, v))) for piece in pieces]
        return np.concatenate(outs, axis=3) if outs else np.zeros((*q.shape[:4], v.shape[4]))

    def make_room(self, s: Session, k: Array, v: Array) -> None:
        """ValueError for a chunk that does not fit."""
        if not s.rolling and s.length + k.shape[3] > s.slots:
            raise ValueError(f"{s.length + k.shape[3]} tokens do not fit into {s.slots} slots")

    def step(self, s: Session, q: Array, k: Array, v: Array) -> Array:
        """Each layer writes and reads; then the length grows."""
        new, outs = s.length + np.arange(k.shape[3]), []
        for layer in range(len(k)):
            self.write(s, layer, k[layer], v[layer], new)
            outs.append(self.read(s, layer, q[layer], new))
            self.layer_done(s, len(new))
        self.step_done(s, len(new))
        return np.stack(outs)

    def layer_done(self, s: Session, tokens: int) -> None:
        """Nothing: the length is of the whole step."""

    def step_done(self, s: Session, tokens: int) -> None:
        """The chunk counts."""
        s.length += tokens

    def write(self, s: Session, layer: int, k: Array, v: Array, new: Array) -> None:
        """The chunk into its slots."""
        s.k[layer][:, :, self.slot(s, new)] = k
        s.v[layer][:, :, self.slot(s, new)] = v

    def slot(self, s: Session, t: Array) -> Array:
        """Where the token at position t stands."""
        return np.asarray(t % max(s.slots, 1))

    def stands(self, s: Session, length: int) -> Array:
        """The position of what stands in each slot [M] after ``length`` tokens; negative: none."""
        places, last = np.arange(s.slots), length - 1
        if s.rolling:
            return np.asarray(last - (last - places) % max(s.slots, 1))
        return np.where(places <= last, places, -1)

    def read(self, s: Session, layer: int, q: Array, new: Array) -> Array:
        """Attention [B, H, n, Dv] of a chunk at positions ``new`` over the slots of a layer."""
        stands = self.stands(s, int(new[-1]) + 1 if len(new) else s.length)
        seen = self.visible(s, stands, new)
        groups = q.shape[1] // max(s.k.shape[2], 1)
        keys, values = (np.repeat(x[layer], groups, axis=1) for x in (s.k, s.v))
        scores = q @ keys.swapaxes(2, 3) / np.float32(math.sqrt(max(q.shape[3], 1)))
        return row_softmax(np.where(seen, scores, np.float32(-np.inf))) @ values

    def visible(self, s: Session, stands: Array, new: Array) -> Array:
        """Which slots a chunk sees [B, 1, n, M]: none later, no padding, and every token itself."""
        query = new[:, None]
        real = self.real(s, stands)
        return (stands >= 0) & (stands <= query) & (real | (stands == query))

    def real(self, s: Session, stands: Array) -> Array:
        """Which slots hold no padding [B, 1, 1, M]."""
        return np.asarray(stands >= s.pads[:, None, None, None])

    def positions(self, s: Session, tokens: int) -> Array:
        """Of the next tokens [B, n], counted from the first that is no padding."""
        return np.maximum(s.length + np.arange(tokens) - s.pads[:, None], 0)

    def reorder(self, s: Session, rows: Array) -> None:
        """Row b goes on with the past of row rows[b], in every layer."""
        s.k, s.v, s.pads = s.k[:, rows], s.v[:, rows], s.pads[rows]

    def reset(self, s: Session) -> None:
        """Nothing is held; rows begin with their padding again."""
        s.length, s.pads = 0, s.first

    def held(self, s: Session) -> tuple[Array, Array]:
        """Keys and values by age, oldest first, zeros beyond."""
        stands = self.stands(s, s.length)
        order = np.argsort(stands, kind="stable")[int((stands < 0).sum()) :]
        shown = [np.zeros_like(x) for x in (s.k, s.v)]
        for x, of in zip(shown, (s.k, s.v), strict=True):
            x[:, :, :, : len(order)] = of[:, :, :, order]
        return shown[0], shown[1]
