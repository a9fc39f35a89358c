"""Faults of decoding with a key/value cache."""

from __future__ import annotations

import numpy as np

from assay.zoo.sound_caches import Array, Session, SlotCache, in_slots


class LengthPerLayer(SlotCache):
    """The length grows with every layer that writes. Shows with several layers.

    https://github.com/fla-org/flash-linear-attention/issues/747
    """

    contract = in_slots("zoo.cache-length-per-layer")

    def layer_done(self, s: Session, tokens: int) -> None:
        """Counted in the layer."""
        s.length += tokens

    def step_done(self, s: Session, tokens: int) -> None:
        """Counted already."""


class PromptCountedTwice(SlotCache):
    """Positions go on from the prompt's length, counted twice. Shows from the second chunk on.

    https://github.com/skyzh/tiny-llm/pull/46
    """

    contract = in_slots("zoo.cache-prompt-counted-twice")

    def positions(self, s: Session, tokens: int) -> Array:
        """Twice as far."""
        return np.maximum(2 * s.length + np.arange(tokens) - s.pads[:, None], 0)


class PositionOfStored(SlotCache):
    """Positions are the number of tokens that are held, which a ring stops to grow. Shows after
    its first wrap.

    https://github.com/rajveer43/VeloxQuant-MLX/issues/389
    """

    contract = in_slots("zoo.cache-position-of-stored")

    def positions(self, s: Session, tokens: int) -> Array:
        """From what is stored."""
        kept = min(s.length, s.slots)
        return np.maximum(kept + np.arange(tokens) - s.pads[:, None], 0)


class PaddedPositions(SlotCache):
    """Positions count padding. Shows where rows begin with padding.

    https://github.com/mosaicml/examples/pull/257
    """

    contract = in_slots("zoo.cache-padded-positions")

    def positions(self, s: Session, tokens: int) -> Array:
        """From the first slot."""
        return s.length + np.arange(tokens) + 0 * s.pads[:, None]


class RingWrapsLate(SlotCache):
    """The ring begins to wrap a token too late: the token that fills it up is written over the one
    before.

    https://github.com/huggingface/transformers/issues/37574
    """

    contract = in_slots("zoo.cache-ring-wraps-late")

    def slot(self, s: Session, t: Array) -> Array:
        """> in place of >=."""
        return np.where(t == s.slots, max(s.slots - 1, 0), super().slot(s, t))


class RingForgetsOldest(SlotCache):
    """A full ring is truncated before the new token is read: one visible key is missing.

    https://github.com/huggingface/transformers/pull/38046
    """

    contract = in_slots("zoo.cache-ring-forgets-oldest")

    def visible(self, s: Session, stands: Array, new: Array) -> Array:
        """A window that is one token short, unless it is of one."""
        seen = super().visible(s, stands, new)
        oldest = (stands == new[-1:, None] - s.slots + 1) & s.rolling & (s.slots > 1)
        return seen & ~oldest


class EvictsChunks(SlotCache):
    """A ring forgets as many tokens as the last chunk had. Shows where a chunk has more than one
    token, and the ring is not empty.

    https://github.com/sgl-project/sglang/issues/8649
    """

    contract = in_slots("zoo.cache-evicts-chunks")

    def append(self, s: Session, q: Array, k: Array, v: Array) -> Array:
        """Forgotten before anything is read."""
        if s.rolling and 1 < k.shape[3] <= s.length:
            gone = self.stands(s, s.length) <= s.length - k.shape[3]
            s.k[:, :, :, gone] = 0
            s.v[:, :, :, gone] = 0
        return super().append(s, q, k, v)


class ValuesFromKeys(SlotCache):
    """When rows are reordered the values are gathered from the keys. Shows where both are equally
    wide; else the rows stay.

    https://github.com/huggingface/transformers/issues/34232
    """

    contract = in_slots("zoo.cache-values-from-keys")

    def reorder(self, s: Session, rows: Array) -> None:
        """Copied from the line above."""
        same = s.k.shape == s.v.shape
        super().reorder(s, rows)
        s.v = s.k.copy() if same else s.v


class FirstLayerReordered(SlotCache):
    """Rows are reordered in the first layer. Shows with several layers."""

    contract = in_slots("zoo.cache-first-layer-reordered")

    def reorder(self, s: Session, rows: Array) -> None:
        """The others stay."""
        s.k[0], s.v[0], s.pads = s.k[0][rows], s.v[0][rows], s.pads[rows]


class PaddingStays(SlotCache):
    """Rows are reordered, their padding is not. Shows with both.

    https://github.com/pytorch/pytorch/issues/3662
    """

    contract = in_slots("zoo.cache-padding-stays")

    def reorder(self, s: Session, rows: Array) -> None:
        """Lengths of other rows."""
        own = s.pads
        super().reorder(s, rows)
        s.pads = own


class ResetKeepsPast(SlotCache):
    """A reset sets the length to 0 and leaves the oldest slot visible."""

    contract = in_slots("zoo.cache-reset-keeps-past")

    def reset(self, s: Session) -> None:
        """Not quite nothing."""
        s.length, s.pads = min(s.length, 1), s.first


class ResetKeepsPadding(SlotCache):
    """A reset leaves the padding as the last reorder left it. Shows after a reorder of padded
    rows.
    """

    contract = in_slots("zoo.cache-reset-keeps-padding")

    def reset(self, s: Session) -> None:
        """The padding is forgotten."""
        s.length = 0


class RefusedHalfWritten(SlotCache):
    """A chunk that does not fit is written as far as it goes, and then refused."""

    contract = in_slots("zoo.cache-refused-half-written")

    def make_room(self, s: Session, k: Array, v: Array) -> None:
        """Written first, counted from the oldest slot."""
        if not s.rolling and s.length + k.shape[3] > s.slots:
            some = min(k.shape[3], s.slots)
            s.k[:, :, :, :some], s.v[:, :, :, :some] = k[:, :, :, :some], v[:, :, :, :some]
        super().make_room(s, k, v)


class OverflowWraps(SlotCache):
    """A chunk that does not fit is written over the oldest tokens, and nobody is told."""

    contract = in_slots("zoo.cache-overflow-wraps")

    def make_room(self, s: Session, k: Array, v: Array) -> None:
        """There is always room."""

    def stands(self, s: Session, length: int) -> Array:
        """As in a ring where it is full."""
        places, last = np.arange(s.slots), length - 1
        return np.asarray(last - (last - places) % max(s.slots, 1))


class ChunkTopLeft(SlotCache):
    """The causal triangle of a chunk starts at the first slot. Shows from the second chunk on.

    https://github.com/pytorch/executorch/issues/21749
    """

    contract = in_slots("zoo.cache-chunk-top-left")

    def visible(self, s: Session, stands: Array, new: Array) -> Array:
        """As if nothing had been held, in chunks of several tokens."""
        query = new - s.length if len(new) > 1 else new
        return super().visible(s, stands, query)


class OneRowUnpadded(SlotCache):
    """The padding of a batch of one row is seen.

    https://github.com/huggingface/transformers/pull/46773
    """

    contract = in_slots("zoo.cache-one-row-unpadded")

    def real(self, s: Session, stands: Array) -> Array:
        """A fast path for one row."""
        seen = super().real(s, stands)
        return np.ones_like(seen) if len(s.pads) == 1 else seen


class QuantizedWhenLong(SlotCache):
    """Beyond 16 tokens what was held is stored in 16 bits."""

    contract = in_slots("zoo.cache-quantized-when-long")

    def step_done(self, s: Session, tokens: int) -> None:
        """Rounded once the first page is full."""
        if s.length <= 16 < s.length + tokens:
            for x in (s.k, s.v):
                x[:, :, :, : s.length] = x[:, :, :, : s.length].astype(np.float16)
        super().step_done(s, tokens)


class PageBoundary(SlotCache):
    """A chunk that crosses from the first page of 16 slots into the next writes its values from the
    start of the chunk again.

    https://github.com/tenstorrent/tt-metal/issues/54413
    """

    contract = in_slots("zoo.cache-page-boundary")

    def write(self, s: Session, layer: int, k: Array, v: Array, new: Array) -> None:
        """The remainder goes to the wrong segment."""
        over = int((new >= 16).sum())
        if not s.rolling and 0 < over < len(new):
            rest = np.arange(over) % (len(new) - over)
            v = np.concatenate([v[:, :, :-over], v[:, :, rest]], axis=2)
        super().write(s, layer, k, v, new)
