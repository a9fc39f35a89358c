"""Sound key/value caches with slots in other places, and attention over parts of them, in numpy."""

from __future__ import annotations

import math

import numpy as np

from assay.zoo.sound_caches import Array, Session, SlotCache, in_slots


class SlotsFromTheEnd(SlotCache):
    """The first token stands in the last slot."""

    contract = in_slots("zoo.slots-from-the-end")

    def slot(self, s: Session, t: Array) -> Array:
        """Counted backwards."""
        return s.slots - 1 - super().slot(s, t)

    def stands(self, s: Session, length: int) -> Array:
        """Counted backwards."""
        return super().stands(s, length)[::-1]


class EvenSlotsFirst(SlotCache):
    """A table says where tokens stand: first all even slots, then the odd ones."""

    contract = in_slots("zoo.slots-by-table")

    def table(self, s: Session) -> Array:
        """The slot of each place in order of time [M]."""
        places = np.arange(s.slots)
        return np.concatenate([places[::2], places[1::2]])

    def slot(self, s: Session, t: Array) -> Array:
        """Looked up."""
        return np.asarray(self.table(s)[super().slot(s, t)])

    def stands(self, s: Session, length: int) -> Array:
        """Put where the table says."""
        found = np.empty(s.slots, dtype=int)
        found[self.table(s)] = super().stands(s, length)
        return found


class SplitReads(SlotCache):
    """Each half of the slots is read by itself, and both are merged (flash decoding)."""

    contract = in_slots("zoo.cache-split-reads")

    def read(self, s: Session, layer: int, q: Array, new: Array) -> Array:
        """Maximum, sum and values of two parts, under their common maximum."""
        stands = self.stands(s, int(new[-1]) + 1 if len(new) else s.length)
        seen = self.visible(s, stands, new)
        groups = q.shape[1] // max(s.k.shape[2], 1)
        keys, values = (np.repeat(x[layer], groups, axis=1) for x in (s.k, s.v))
        scores = q @ keys.swapaxes(2, 3) / np.float32(math.sqrt(max(q.shape[3], 1)))
        scores = np.where(seen, scores, np.float32(-np.inf))
        top = scores.max(axis=-1, keepdims=True, initial=-np.inf)
        half, parts = s.slots // 2, []
        for piece in (slice(0, half), slice(half, s.slots)):
            x = scores[..., piece]
            own = x.max(axis=-1, keepdims=True, initial=-np.inf)
            e = np.exp(x - _finite(own))
            rate = np.exp(own - _finite(top))
            mass = e.sum(axis=-1, keepdims=True) * rate
            parts.append((mass, (e @ values[:, :, piece]) * rate))
        mass, total = (a + b for a, b in zip(*parts, strict=True))
        return np.asarray(total / np.where(mass == 0, np.float32(1), mass))


def _finite(top: Array) -> Array:
    """Nothing to subtract where nothing was seen."""
    return np.where(np.isneginf(top), np.float32(0), top)
