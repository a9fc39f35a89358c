"""Attention in any arithmetic: causality, offsets, heads and queries, bit for bit."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import z3

from assay.proofs.induction import Pointwise, agreement
from assay.proofs.mutants import mutant, rebound
from assay.proofs.obligation import Obligation, Premise, Query, Twin
from assay.proofs.scalars.opaque import Opaque
from assay.proofs.scalars.stretches import Axis
from assay.proofs.theorems.rows import general
from assay.proofs.theorems.sequences import as_mask, causal_row, conditions, stretch, variables
from assay.proofs.theorems.softmax_exact import ORDER
from assay.spec.attention import attention, attention_backward
from assay.spec.masks import causal_visible

BITWISE = (
    "in every arithmetic: bit-identical in all floating-point formats, NaN and infinity included"
)
ROW, OFFSET = z3.Ints("i o")
Attention = Callable[..., np.ndarray]


def _same(j: Any, seen: Any, text: str) -> Sequence[Premise]:
    """Keys and values of both sequences agree at j, if it is seen."""
    same = [
        z3.Function(f"{a}0", z3.IntSort(), Opaque.sort())(j)
        == z3.Function(f"{b}0", z3.IntSort(), Opaque.sort())(j)
        for a, b in (("k", "K"), ("v", "V"))
    ]
    agree = rf"{text} \Rightarrow k_j = k'_j,\; v_j = v'_j"
    return [Premise(agree, z3.Implies(seen, z3.And(*same)))]


def _two_runs(axis: Axis, mask: np.ndarray, given: Pointwise, **names: Any) -> Iterator[Query]:
    """One query over keys k and over keys K, which agree as ``given``: the rows are the same."""
    q = variables("q", 1, 1, Opaque)

    def run(k: str, v: str) -> np.ndarray:
        return attention(q, stretch(axis, k), stretch(axis, v), mask=mask)

    one, first = axis.record(partial(run, "k", "v"))
    two, second = axis.record(partial(run, "K", "V"))
    # Key 2 and later ones differ.
    witness = {n: _before_two(s) for n, s in (("k0", 1), ("v0", 3))}
    witness |= {n: _before_two(s, 50) for n, s in (("K0", 1), ("V0", 3))} | names
    queries, lemmas = agreement(axis, first, second, given, witness=witness)
    yield from queries
    yield general("the row", one.flat[0].term == two.flat[0].term, lemmas, axis, **witness)


def future_zero() -> Iterator[Query]:
    """Row i is the same function of the keys and values up to o + i, whatever comes later."""
    axis = Axis("S", Opaque)

    def past(j: Any) -> Sequence[Premise]:
        return _same(j, causal_visible(ROW, j, OFFSET), r"j \le o + i")

    yield from _two_runs(axis, causal_row(axis, ROW, OFFSET), past, i=1, o=0)
    yield from _later_queries(axis)


def blocked_independent() -> Iterator[Query]:
    """A row is the same function of the keys and values that its query sees, whatever the others
    hold.
    """
    axis = Axis("S", Opaque)
    allowed = axis.mask("a")

    def seen(j: Any) -> Sequence[Premise]:
        return _same(j, allowed.at(j).term, "a_{ij}")

    yield from _two_runs(axis, as_mask([allowed]), seen, a=lambda j: j < 2)


def _before_two(slope: int, later: int = 0) -> Callable[[int], int]:
    return lambda j: slope * j + (later if j >= 2 else 0)


def _later_queries(axis: Axis) -> Iterator[Query]:
    """A row of a run of two is the row run alone: the other query does not take part."""
    q, k, v = variables("q", 2, 1, Opaque), stretch(axis, "k"), stretch(axis, "v")
    masks = [causal_row(axis, i, OFFSET) for i in (ROW, ROW + 1)]
    both = attention(q, k, v, mask=np.concatenate(masks, axis=2))
    alone = attention(q[:, :, :1], k, v, mask=masks[0])
    yield general("other queries", both[0, 0, 0, 0].term == alone.flat[0].term, [], axis)


def future_zero_of(visible: Callable[..., Any]) -> Iterator[Query]:
    """One query, two keys, the second one later and changed, for a given causal rule."""
    q, k, v = (variables(n, s, 1, Opaque) for n, s in (("q", 1), ("k", 2), ("v", 2)))
    other = [
        np.concatenate([x[:, :, :1], variables(n, 1, 1, Opaque)], axis=2)
        for x, n in ((k, "K"), (v, "V"))
    ]
    mask = as_mask([visible(0, j, 0) for j in range(2)])
    goal = (
        attention(q, k, v, mask=mask).flat[0].term == attention(q, *other, mask=mask).flat[0].term
    )
    yield Query("the first row", goal)


def offset() -> Iterator[Query]:
    """Row i of a chunk at offset o is row o + i of the full run."""
    axis = Axis("S", Opaque)
    q, k, v = variables("q", 1, 1, Opaque), stretch(axis, "k"), stretch(axis, "v")

    def run(i: Any, o: Any) -> np.ndarray:
        return attention(q, k, v, mask=causal_row(axis, i, o))

    chunk, first = axis.record(partial(run, ROW, OFFSET))
    full, second = axis.record(partial(run, OFFSET + ROW, 0))
    queries, lemmas = agreement(axis, first, second)
    yield from queries
    yield general("the row", chunk.flat[0].term == full.flat[0].term, lemmas, axis)


def offset_of(chunk_offset: int) -> Iterator[Query]:
    """The second of two rows as a chunk of its own, at a given offset."""
    q, k, v = (variables(n, 2, 1, Opaque) for n in "qkv")
    full = attention(q, k, v, causal=True)[0, 0, 1, 0]
    chunk = attention(q[:, :, 1:], k, v, causal=True, offset=chunk_offset)[0, 0, 0, 0]
    yield Query("two rows", full.term == chunk.term)


def gqa_map(f: Attention, sizes: tuple[tuple[int, int], ...]) -> Iterator[Query]:
    """Head h of grouped attention is attention with key/value head h // (H / Hkv)."""
    for heads, shared in sizes:
        axis = Axis("S", Opaque)
        q = np.concatenate([variables(f"q{h}_", 1, 1, Opaque) for h in range(heads)], axis=1)
        k = np.concatenate([stretch(axis, f"k{g}_") for g in range(shared)], axis=1)
        v = np.concatenate([stretch(axis, f"v{g}_") for g in range(shared)], axis=1)
        mask = as_mask([axis.mask("a")])
        together = f(q, k, v, mask=mask)
        for h in range(heads):
            g = h // (heads // shared)
            pick = (slice(None), slice(g, g + 1))
            alone = attention(q[:, h : h + 1], k[pick], v[pick], mask=mask)
            goal = together[0, h, 0, 0].term == alone.flat[0].term
            yield general(f"head {h} of {heads}, {shared} shared", goal, [], axis)


def token_equivariant(f: Attention) -> Iterator[Query]:
    """Permuted queries give permuted rows: each row is what its query gives alone."""
    axis = Axis("S", Opaque)
    q, k, v = variables("q", 3, 1, Opaque), stretch(axis, "k"), stretch(axis, "v")
    some = Premise("n > 0", axis.length > 0)
    rows = f(q, k, v)
    for order in itertools.permutations(range(3)):
        moved = f(q[:, :, list(order)], k, v)
        same = [moved[0, 0, r, 0].term == rows[0, 0, s, 0].term for r, s in enumerate(order)]
        yield general(f"order {order}", z3.And(*same), [some], axis)


def token_equivariant_causal() -> Iterator[Query]:
    """What is not true: the same with a causal mask."""
    q, k, v = (variables(n, 2, 1, Opaque) for n in "qkv")
    rows = attention(q, k, v, causal=True)
    moved = attention(q[:, :, ::-1], k, v, causal=True)
    yield Query("reversed", moved[0, 0, 0, 0].term == rows[0, 0, 1, 0].term)


def grad_blocked_zero(backward: Callable[..., Any]) -> Iterator[Query]:
    """A key that no query sees has gradient 0 scale = 0 + 0 in every arithmetic where these are
    0.
    """
    q, k, v = (variables(n, 2, 1, Opaque) for n in "qkv")
    cotangent, mask = variables("g", 2, 1, Opaque), conditions("a", 2, 2)
    got = backward(q, k, v, cotangent, mask=mask, scale=1.0)
    unseen = Premise(r"\forall i\; \neg a_{i0}", z3.Not(z3.Or(*[m.term for m in mask[0, 0, :, 0]])))
    zero, one = Opaque(0), Opaque(1.0)
    laws = (
        Premise("0 + 0 = 0", (zero + zero).term == zero.term, "law"),
        Premise(r"0 \cdot \mathrm{scale} = 0", (zero * one).term == zero.term, "law"),
    )
    for name, gradient in (("key", got.k), ("value", got.v)):
        goal = gradient[0, 0, 0, 0].term == zero.term
        yield Query(f"the {name}", goal, (unseen, *laws), {"a00": False, "a10": False})


def blocked_of(f: Attention) -> Iterator[Query]:
    """One query, two keys, the second one blocked and changed, for a given attention."""
    q, k, v = (variables(n, s, 1, Opaque) for n, s in (("q", 1), ("k", 2), ("v", 2)))
    other = [
        np.concatenate([x[:, :, :1], variables(n, 1, 1, Opaque)], axis=2)
        for x, n in ((k, "K"), (v, "V"))
    ]
    mask = as_mask([True, False])
    yield Query(
        "the row", f(q, k, v, mask=mask).flat[0].term == f(q, *other, mask=mask).flat[0].term
    )


OFF_BY_ONE = mutant(causal_visible, "return j <= offset + i", "return j <= offset + i + 1")
MODULO = rebound(attention, expand_kv=lambda x, heads: x[:, [h % x.shape[1] for h in range(heads)]])
UNMASKED_BACKWARD = mutant(attention_backward, "allowed = visible(", "allowed = True | visible(")
POLARITY = mutant(attention, "allowed = visible(", "allowed = True ^ visible(")
ROWS = (
    *ORDER,
    "every query row, head, batch entry and value column is computed alike (numpy is elementwise)",
    "a query and a key are opaque, and so is their product: it may be a dot product of any width",
)
SIZES = ((1, 1), (2, 1), (2, 2), (3, 1), (4, 2))

OBLIGATIONS: tuple[Obligation, ...] = (
    Obligation(
        "attention.future_zero/any-arithmetic",
        "attention.future_zero",
        r"(\forall j \le o + i\; k_j = k'_j,\, v_j = v'_j) \;\Rightarrow\; O_i = O'_i",
        "any number of keys, any row i and offset o, changed later keys, values and queries; "
        f"{BITWISE}",
        "proved",
        "z3",
        future_zero,
        Twin("the row also sees the next key", partial(future_zero_of, OFF_BY_ONE)),
        ROWS,
    ),
    Obligation(
        "attention.blocked_independent/any-arithmetic",
        "attention.blocked_independent",
        r"(\forall j\; a_{ij} \Rightarrow k_j = k'_j,\, v_j = v'_j) \;\Rightarrow\; O_i = O'_i",
        f"any number of keys, any mask, any row; {BITWISE}",
        "proved",
        "z3",
        blocked_independent,
        Twin("the mask is read the other way round", partial(blocked_of, POLARITY)),
        ROWS,
    ),
    Obligation(
        "attention.offset/any-arithmetic",
        "attention.offset",
        r"O(q_{o..}, k, v; o)_i = O(q, k, v; 0)_{o + i}",
        f"any number of keys, any row i and offset o; {BITWISE}",
        "proved",
        "z3",
        offset,
        Twin("the offset of the chunk is dropped", partial(offset_of, 0)),
        ROWS,
    ),
    Obligation(
        "attention.gqa_map/any-arithmetic",
        "attention.gqa_map",
        r"O_h = O(q_h, k_{\lfloor h H_{kv} / H \rfloor}, v_{\lfloor h H_{kv} / H \rfloor})",
        f"(H, Hkv) in {SIZES}, any number of keys, any mask; {BITWISE}",
        "bounded",
        "z3",
        partial(gqa_map, attention, SIZES),
        Twin("value head h % Hkv", partial(gqa_map, MODULO, ((4, 2),))),
        ROWS,
    ),
    Obligation(
        "attention.token_equivariant/any-arithmetic",
        "attention.token_equivariant",
        r"O(q_\pi, k, v) = O(q, k, v)_\pi",
        f"three queries in every order, any number of keys; {BITWISE}",
        "bounded",
        "z3",
        partial(token_equivariant, attention),
        Twin("the mask is causal", token_equivariant_causal),
        ROWS,
    ),
    Obligation(
        "attention.grad_blocked_zero/any-arithmetic",
        "attention.grad_blocked_zero",
        r"(\forall i\; \neg a_{ij}) \Rightarrow \bar k_j = \bar v_j = 0",
        "two queries, two keys, any mask that hides the first key; any arithmetic with 0 + 0 = 0 "
        "and 0 scale = 0, as all floating-point formats have",
        "bounded",
        "z3",
        partial(grad_blocked_zero, attention_backward),
        Twin("the backward pass ignores the mask", partial(grad_blocked_zero, UNMASKED_BACKWARD)),
        ORDER[:1],
    ),
)
