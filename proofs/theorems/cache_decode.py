"""Decoding with a cache: behind any number of held tokens, in every cut into chunks, padded, in a
ring.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import z3

from assay.proofs.induction import agreement, by_induction
from assay.proofs.mutants import mutant, rebound
from assay.proofs.obligation import Body, Case, Obligation, Step, Twin
from assay.proofs.scalars.rationals import array
from assay.proofs.scalars.reals import Real
from assay.proofs.scalars.stretches import Axis
from assay.proofs.theorems.rows import general
from assay.proofs.theorems.scan_blocks import same, unknowns
from assay.proofs.theorems.sequences import stretch, variables
from assay.proofs.theorems.softmax_reals import SUMS
from assay.spec.attention import attention
from assay.spec.cache import (
    Cache,
    advance,
    decode_attention,
    empty,
    padded_visible,
    reset,
    roll,
    rolling_attention,
)

Decode = Callable[..., tuple[np.ndarray, Cache]]


def recomputed() -> Iterator[Step]:
    """Two tokens behind any number of held ones see what they see in a run of any number more."""
    held, later = Axis("B", Real), Axis("A", Real)
    q, k, v = (variables(n, 2, 1) for n in "qkv")
    slots = [
        np.concatenate([stretch(held, f"{n}h"), unknown], axis=2)[None]
        for n, unknown in (("k", variables("free k", 2, 1)), ("v", variables("free v", 2, 1)))
    ]
    # One slot stands for all that is held, whose number is the length.
    cache = Cache(slots[0], slots[1], 1)
    keys, values = (
        np.concatenate([stretch(held, f"{n}h"), new, stretch(later, f"{n}l")], axis=2)
        for n, new in (("k", k), ("v", v))
    )
    seen = np.array([[True, True, False, False], [True, True, True, False]])[None, None]

    def full(i: int) -> Any:
        rows = slice(i + 1)
        return attention(q[:, :, rows], keys, values, mask=seen[:, :, rows])[0, 0, i, 0]

    for i in range(2):
        alone, one = held.record(partial(_decoded, q, k, v, cache, i))
        whole, two = held.record(partial(full, i))
        queries, nothing = by_induction(
            "later keys add nothing",
            later,
            lambda m: z3.And(True, *[f.at(m) == f.start for f in later.folds.values()]),
        )
        yield from queries
        queries, lemmas = agreement(held, one, two, premises=[nothing], others=[later])
        yield from queries
        yield general(f"row {i}", alone.term == whole.term, [nothing, *lemmas], held, later)


def _decoded(q: np.ndarray, k: np.ndarray, v: np.ndarray, cache: Cache, i: int) -> Any:
    """Row i of a chunk of i + 1."""
    rows = slice(i + 1)
    return decode_attention(q[:, :, rows], k[:, :, rows], v[:, :, rows], cache)[0][0, 0, i, 0]


def cuts(n: int) -> Iterator[tuple[int, ...]]:
    """Every way to cut n tokens into chunks."""
    for bits in itertools.product((False, True), repeat=max(n - 1, 0)):
        ends = [t + 1 for t, cut in enumerate(bits) if cut] + [n]
        yield tuple(b - a for a, b in zip([0, *ends[:-1]], ends, strict=True))


def example(n: int, heads: int = 2, shared: int = 1) -> tuple[np.ndarray, ...]:
    """q, k, v of whole numbers, whose scores are whole: attention of them is a fraction."""
    draw = np.random.default_rng(7)
    shapes = ((1, heads, n, 1), (1, shared, n, 1), (1, shared, n, 2))
    return tuple(array(draw.integers(-2, 3, shape)) for shape in shapes)


def decoded(
    decode: Decode, grow: Callable[..., Cache], chunks: Sequence[int], cache: Cache, *qkv: Any
) -> np.ndarray:
    """The outputs of all chunks in turn."""
    outputs, start = [], 0
    for count in chunks:
        part = slice(start, start + count)
        out, cache = decode(*(x[:, :, part] for x in qkv), cache)
        cache, start = grow(cache, count), start + count
        outputs.append(out)
    return np.concatenate(outputs, axis=2)


def _slots(capacity: int) -> Cache:
    return empty(1, 1, 1, capacity, 1, 2, dtype=object)


def split(decode: Decode, most: int) -> Iterator[Case]:
    """Every cut of up to ``most`` tokens gives the rows of one causal run, as fractions."""
    for n in range(1, most + 1):
        q, k, v = example(n)
        full = attention(q, k, v, causal=True)
        for chunks in cuts(n):
            got = decoded(decode, advance, chunks, _slots(n), q, k, v)
            yield Case(f"chunks of {chunks}", bool((got == full).all()))


def rolled(decode: Decode, most: int) -> Iterator[Case]:
    """Every cut, in a ring of 1 to 3 slots, gives attention over the last tokens."""
    for n, window in itertools.product(range(1, most + 1), range(1, 4)):
        q, k, v = example(n)
        full = attention(q, k, v, window=(window - 1, 0))
        for chunks in cuts(n):
            got = decoded(decode, roll, chunks, _slots(window), q, k, v)
            yield Case(f"{window} slots, chunks of {chunks}", bool((got == full).all()))


def left_padded(decode: Decode, most: int) -> Iterator[Case]:
    """Behind 0 to 2 tokens of padding every cut gives what the real tokens give alone."""
    for n, pad in itertools.product(range(1, most + 1), range(3)):
        q, k, v = example(n + pad)
        alone = attention(*(x[:, :, pad:] for x in (q, k, v)), causal=True)
        padded = partial(decode, pads=np.array([pad]))
        for chunks in cuts(n + pad):
            got = decoded(padded, advance, chunks, _slots(n + pad), q, k, v)
            itself = bool((got[:, :, :pad] == np.repeat(v[:, :, :pad], 2, axis=1)).all())
            right = itself and bool((got[:, :, pad:] == alone).all())
            yield Case(f"padding {pad}, chunks of {chunks}", right)


def forgotten(clear: Callable[[Cache], Cache]) -> Iterator[Step]:
    """After a reset, whatever the slots hold, a chunk gives what it gives in a new cache."""
    slots = unknowns("k", 1, 1, 1, 3, 1), unknowns("v", 1, 1, 1, 3, 1)
    for length, tokens in itertools.product(range(3), range(1, 3)):
        q, k, v = (unknowns(f"new {n}", 1, 1, tokens, 1) for n in "qkv")
        used = clear(Cache(*slots, length))
        got, after = decode_attention(q, k, v, used)
        want, _ = decode_attention(q, k, v, empty(1, 1, 1, 3, 1, dtype=object))
        yield Case(f"{length} held: length", used.length == after.length == 0)
        yield same(f"{length} held, {tokens} new", got, want)


def _unpadded(pads: np.ndarray, tokens: int, length: int = 0) -> np.ndarray:
    return padded_visible(0 * pads, tokens, length)


def _blank(cache: Cache) -> Cache:
    return replace(cache, length=min(cache.length, 1))


TOP_LEFT = mutant(decode_attention, "causal=True, offset=cache.length", "causal=True")
SEEN = rebound(decode_attention, padded_visible=_unpadded)
WIDER = mutant(rolling_attention, "(stands > query - window)", "(stands >= query - window)")


def _obligation(
    claim: str, variant: str, statement: str, generality: str, body: Body, twin: Twin
) -> Obligation:
    name = f"cache.{claim}"
    return Obligation(
        f"{name}/{variant}", name, statement, generality, "bounded", "enumeration", body, twin
    )


WHOLE = "two query heads that share keys, scores that are whole numbers, compared as fractions"
OBLIGATIONS: tuple[Obligation, ...] = (
    Obligation(
        "cache.decode_equals_full/any-length",
        "cache.decode_equals_full",
        r"D(x)_t = O(q, k_{\le t}, v_{\le t})_t = O(q, k, v)_t",
        "decode_attention of one and of two tokens behind any number of held ones, against a causal"
        " run with any number of later ones; any real scores and values",
        "proved",
        "z3",
        recomputed,
        Twin("a chunk sees as if it were the first", partial(split, TOP_LEFT, 3)),
        (*SUMS, "one slot stands for all that is held: slots are only cut and joined"),
    ),
    _obligation(
        "chunk_split",
        "small",
        r"D(x \frown y) = D(x) \frown D(y \mid x)",
        f"every cut of 1 to 6 tokens into chunks; {WHOLE}",
        partial(split, decode_attention, 6),
        Twin("a chunk sees as if it were the first", partial(split, TOP_LEFT, 3)),
    ),
    _obligation(
        "rolling_window",
        "decode",
        r"D_M(x)_t = O(q, k, v; t - M < j \le t)_t",
        f"rings of 1 to 3 slots, every cut of 1 to 5 tokens into chunks; {WHOLE}",
        partial(rolled, rolling_attention, 5),
        Twin("the window is one wider", partial(rolled, WIDER, 3)),
    ),
    _obligation(
        "left_pad",
        "decode",
        r"D(\bot^p \frown x)_{p + t} = D(x)_t",
        f"0 to 2 tokens of padding, 1 to 3 real ones, every cut into chunks; {WHOLE}",
        partial(left_padded, decode_attention, 3),
        Twin("padding is seen", partial(left_padded, SEEN, 2)),
    ),
    Obligation(
        "cache.reset/arithmetic",
        "cache.reset",
        r"D(x \mid \operatorname{reset}(s)) = D(x)",
        "1 or 2 new tokens after 0 to 2 held ones, any values left in three slots; any arithmetic, "
        "bit for bit",
        "bounded",
        "z3",
        partial(forgotten, reset),
        Twin("one token is still held", partial(forgotten, _blank)),
    ),
)
