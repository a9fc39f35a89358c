"""Faults of decoding with a key/value cache, and what must find them."""

from __future__ import annotations

from assay.zoo.fault import Control, Fault, Hard

_HOME = "assay.zoo.faults.caches"


def _fault(
    name: str,
    target: str,
    summary: str,
    *claims: str,
    hint: str = "",
    needs: int = 4,
    hard: Hard = "",
) -> Fault:
    found = tuple(f"cache.{claim}" for claim in claims)
    return Fault(
        f"cache-{name}", "state", f"{_HOME}:{target}", found, summary, hint, needs=needs, hard=hard
    )


CACHE_FAULTS: tuple[Fault, ...] = (
    _fault(
        "length-per-layer",
        "LengthPerLayer",
        "every layer advances the length",
        "length_once",
        "decode_equals_full",
        hard="cancels",
    ),
    _fault(
        "prompt-counted-twice",
        "PromptCountedTwice",
        "positions go on from twice the prompt's length",
        "position",
    ),
    _fault(
        "position-of-stored",
        "PositionOfStored",
        "positions are the number of stored tokens",
        "position",
        hard="two conditions",
    ),
    _fault("padded-positions", "PaddedPositions", "positions count padding", "position"),
    _fault(
        "ring-wraps-late",
        "RingWrapsLate",
        "the ring wraps a token too late",
        "rolling_window",
        hard="length",
    ),
    _fault(
        "ring-forgets-oldest",
        "RingForgetsOldest",
        "a full ring is truncated before it is read",
        "rolling_window",
        hint="one token too few",
    ),
    _fault(
        "evicts-chunks",
        "EvictsChunks",
        "a ring forgets as many tokens as a chunk has",
        "rolling_window",
        hard="two conditions",
    ),
    _fault(
        "values-from-keys",
        "ValuesFromKeys",
        "reordered values are gathered from the keys",
        "reorder",
        "decode_equals_full",
        hard="two conditions",
    ),
    _fault(
        "first-layer-reordered",
        "FirstLayerReordered",
        "rows are reordered in the first layer only",
        "reorder",
        hard="cancels",
    ),
    _fault(
        "padding-stays",
        "PaddingStays",
        "the padding of rows is not reordered with them",
        "position",
        hard="two conditions",
    ),
    _fault(
        "reset-keeps-past",
        "ResetKeepsPast",
        "the oldest token survives a reset",
        "reset",
        "length_once",
    ),
    _fault(
        "reset-keeps-padding",
        "ResetKeepsPadding",
        "the padding of reordered rows survives a reset",
        "reset",
        hard="two conditions",
    ),
    _fault(
        "refused-half-written",
        "RefusedHalfWritten",
        "a refused chunk has been written",
        "capacity",
        "earlier_slots_kept",
        hard="two conditions",
    ),
    _fault(
        "overflow-wraps",
        "OverflowWraps",
        "a chunk that does not fit overwrites the oldest tokens",
        "capacity",
    ),
    _fault(
        "chunk-top-left",
        "ChunkTopLeft",
        "the causal triangle of a chunk starts at the first slot",
        "decode_equals_full",
        "chunk_split",
        hint="aligned top-left",
        hard="cancels",
    ),
    _fault(
        "one-row-unpadded",
        "OneRowUnpadded",
        "the padding of a single row is seen",
        "left_pad",
        hard="two conditions",
    ),
    _fault(
        "quantized-when-long",
        "QuantizedWhenLong",
        "beyond 16 tokens the past is stored in 16 bits",
        "earlier_slots_kept",
        needs=17,
        hard="length",
    ),
    _fault(
        "page-boundary",
        "PageBoundary",
        "a chunk across two pages writes wrong values",
        "append_last",
        needs=17,
        hard="length",
    ),
)

CACHE_CONTROLS: tuple[Control, ...] = (
    Control("slot-cache", "assay.zoo.sound_caches:SlotCache", "slots in place, layer by layer"),
)
