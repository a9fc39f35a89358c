"""Masks: offsets, chunks and alignment, for all sizes by a solver and for small sizes by listing
them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import z3

from assay.proofs.mutants import rebound
from assay.proofs.obligation import Body, Case, Obligation, Premise, Query, Twin
from assay.spec.attention import kv_head
from assay.spec.masks import (
    bottom_right_offset,
    causal_mask,
    causal_visible,
    future_mask,
    window_mask,
    window_visible,
)

Predicate = Callable[..., Any]
SMALL = range(7)
OFFSETS = range(-3, 8)


def alignment(visible: Predicate, smallest: int = 1) -> Iterator[Query]:
    """Top-left and bottom-right agree everywhere iff L = S: both directions, a witness for the
    second.
    """
    rows, keys, i, j = z3.Ints("L S i j")
    corner = bottom_right_offset(rows, keys)
    sizes = Premise(rf"L, S \ge {smallest}", z3.And(rows >= smallest, keys >= smallest))
    square = Premise("L = S", rows == keys)
    witness = {"L": 2, "S": 2}
    same = visible(i, j, 0) == visible(i, j, corner)
    yield Query("L = S: they agree at every i, j", same, (sizes, square), witness)
    differ = Premise(r"L \ne S", rows != keys)
    key = z3.If(keys > rows, corner, 0)
    among = z3.And(key >= 0, key < keys, rows > 0)
    parted = z3.And(among, visible(0, key, 0) != visible(0, key, corner))
    yield Query("else they differ in row 0", parted, (sizes, differ), {"L": 2, "S": 5})


def alignment_listed(mask: Predicate) -> Iterator[Case]:
    """The same of every pair of sizes up to 6."""
    for rows, keys in itertools.product(range(1, 7), repeat=2):
        same = np.array_equal(mask(rows, keys), mask(rows, keys, bottom_right_offset(rows, keys)))
        yield Case(f"L={rows}, S={keys}: equal is {same}", same == (rows == keys))


def chunks(mask: Predicate) -> Iterator[Case]:
    """The mask of a chunk at an offset is those rows of the full mask; the future is its
    complement.
    """
    for rows, keys, offset in itertools.product(SMALL, SMALL, range(8)):
        full = causal_mask(offset + rows, keys)[offset:]
        yield Case(
            f"L={rows}, S={keys}, o={offset}", np.array_equal(mask(rows, keys, offset), full)
        )
    for rows, keys, offset in itertools.product(SMALL, SMALL, OFFSETS):
        seen = mask(rows, keys, offset)
        want = [[j <= offset + i for j in range(keys)] for i in range(rows)]
        right = np.array_equal(seen, np.array(want, dtype=bool).reshape(rows, keys))
        split = np.array_equal(~seen, future_mask(rows, keys, offset))
        yield Case(f"L={rows}, S={keys}, o={offset}, entry by entry", right and split)


def window_chunks(window: Predicate) -> Iterator[Case]:
    """A window moves with its chunk; each entry is as its limits say; without limits it hides
    nothing; with right = 0 it is causal.
    """
    sides = (None, 0, 1, 3)
    for rows, keys, offset, left, right in itertools.product(
        range(5), range(6), range(5), sides, sides
    ):
        chunk = window(rows, keys, offset, left, right)
        full = window_mask(offset + rows, keys, 0, left, right)[offset:]
        label = f"L={rows}, S={keys}, o={offset}, left={left}, right={right}"
        yield Case(label, np.array_equal(chunk, full))
        back, ahead = (np.inf if side is None else side for side in (left, right))
        want = [[-back <= j - (offset + i) <= ahead for j in range(keys)] for i in range(rows)]
        right_entries = np.array_equal(chunk, np.array(want, bool).reshape(rows, keys))
        yield Case(f"{label}, entry by entry", right_entries)
        if left is None:
            hidden = (
                np.ones((rows, keys), bool)
                if right is None
                else causal_mask(rows, keys, offset + right)
            )
            yield Case(f"{label}, as a causal mask", np.array_equal(chunk, hidden))


def kv_heads(head: Predicate) -> Iterator[Case]:
    """h // (H / Hkv) = floor(h Hkv / H), each shared head is read by H / Hkv neighbouring heads."""
    for shared, group in itertools.product(range(1, 9), repeat=2):
        heads = shared * group
        read = [head(h, heads, shared) for h in range(heads)]
        want = [g for g in range(shared) for _ in range(group)]
        floor = [h * shared // heads for h in range(heads)]
        yield Case(f"H={heads}, Hkv={shared}: {read}", read == want == floor)


def _no_offset(i: Any, j: Any, offset: Any = 0) -> Any:
    return causal_visible(i, j, 0 * offset)


def _no_window_offset(i: Any, j: Any, offset: Any, left: Any, right: Any) -> Any:
    return window_visible(i, j, 0 * offset, left, right)


TOP_LEFT = rebound(causal_mask, causal_visible=_no_offset)
STILL = rebound(window_mask, window_visible=_no_window_offset)


def _listed(
    claim: str, variant: str, statement: str, generality: str, body: Body, twin: Twin
) -> Obligation:
    return Obligation(
        f"{claim}/{variant}", claim, statement, generality, "exhaustive", "enumeration", body, twin
    )


OBLIGATIONS: tuple[Obligation, ...] = (
    Obligation(
        "attention.alignment/integers",
        "attention.alignment",
        r"(\forall i, j\; [j \le i] = [j \le i + S - L]) \Leftrightarrow L = S",
        "every L, S >= 1",
        "proved",
        "z3",
        partial(alignment, causal_visible),
        Twin("the mask ignores its offset", partial(alignment, _no_offset)),
    ),
    _listed(
        "attention.alignment",
        "small",
        r"(\forall i, j\; [j \le i] = [j \le i + S - L]) \Leftrightarrow L = S",
        "causal_mask, every L, S in 1..6",
        partial(alignment_listed, causal_mask),
        Twin("the mask ignores its offset", partial(alignment_listed, TOP_LEFT)),
    ),
    _listed(
        "attention.offset",
        "small-masks",
        r"M(L, S; o) = M(o + L, S; 0)_{o..},\quad M_{ij} = [j \le o + i]",
        "causal_mask and future_mask, every L, S in 0..6 and offset in -3..7",
        partial(chunks, causal_mask),
        Twin("the mask ignores its offset", partial(chunks, TOP_LEFT)),
    ),
    _listed(
        "attention.offset",
        "small-windows",
        r"W(L, S; o) = W(o + L, S; 0)_{o..}",
        "window_mask, every L, offset in 0..4, S in 0..5 and limits in None, 0, 1, 3",
        partial(window_chunks, window_mask),
        Twin("the window ignores the offset", partial(window_chunks, STILL)),
    ),
    _listed(
        "attention.gqa_map",
        "small-heads",
        r"\lfloor h / (H / H_{kv}) \rfloor = \lfloor h H_{kv} / H \rfloor",
        "kv_head, every Hkv in 1..8 and H / Hkv in 1..8",
        partial(kv_heads, kv_head),
        Twin("h % Hkv", partial(kv_heads, lambda h, heads, shared: h % shared)),
    ),
)
