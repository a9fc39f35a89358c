"""Attention and its keys: empty rows, prefixes and the order of keys, over the reals."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import z3

from assay.proofs.induction import agreement, by_induction
from assay.proofs.mutants import mutant, rebound
from assay.proofs.obligation import Obligation, Query, Twin
from assay.proofs.scalars.reals import Real
from assay.proofs.scalars.stretches import Axis
from assay.proofs.scalars.terms import Condition
from assay.proofs.theorems.attention_reals import RESULT, Attention, proved
from assay.proofs.theorems.rows import general
from assay.proofs.theorems.sequences import as_mask, conditions, stretch, variables
from assay.spec.attention import attention, attention_backward


def empty_row() -> Iterator[Query]:
    """A query that sees nothing gets 0, and its gradient is 0."""
    axis = Axis("S", Real)
    q, k, v, g = variables("q", 2, 1), stretch(axis, "k"), stretch(axis, "v"), variables("g", 2, 1)
    mask = as_mask([axis.same(False)], [axis.mask("a")])

    def run() -> tuple[Any, Any]:
        return attention(q, k, v, mask=mask), attention_backward(q, k, v, g, mask=mask)

    (out, gradients), _ = axis.record(run)
    goal = z3.And(out[0, 0, 0, 0].term == 0, gradients.q[0, 0, 0, 0].term == 0)
    blank = [f for key, f in axis.folds.items() if _only_blocked(key)]
    queries, lemma = by_induction(
        "sums over blocked keys are 0", axis, lambda m: z3.And(*[f.at(m) == f.start for f in blank])
    )
    yield from queries
    yield general("the row", goal, [lemma], axis)


def _only_blocked(key: str) -> bool:
    """A fold whose entries are all behind a condition that is false."""
    return key == "any false" or ("(ite false" in key and "(a j)" not in key)


def empty_row_of(f: Attention) -> Iterator[Query]:
    """Two keys, none allowed, for a given attention."""
    q, k, v = variables("q", 1, 1), variables("k", 2, 1), variables("v", 2, 1)
    mask = as_mask([Condition(False), Condition(False)])
    yield Query("two keys", f(q, k, v, mask=mask).flat[0].term == 0)


def prefix() -> Iterator[Query]:
    """Keys that are blocked for a query and stand after the others can be left out."""
    before, after = Axis("B", Real), Axis("A", Real)
    q, mask = variables("q", 1, 1), before.mask("a")
    keys, values = stretch(before, "k"), stretch(before, "v")
    more_keys, more_values = stretch(after, "K"), stretch(after, "V")
    run = before.record(lambda: attention(q, keys, values, mask=as_mask([mask])).flat[0])
    whole = before.record(
        lambda: attention(
            q,
            np.concatenate([keys, more_keys], axis=2),
            np.concatenate([values, more_values], axis=2),
            mask=as_mask([mask, after.same(False)]),
        ).flat[0]
    )
    (out, first), (full, second) = run, whole
    queries, nothing = by_induction(
        "blocked keys add nothing",
        after,
        lambda m: z3.And(*[f.at(m) == f.start for f in after.folds.values()]),
    )
    yield from queries
    queries, lemmas = agreement(before, first, second, premises=[nothing], others=[after])
    yield from queries
    yield general("the row", out.term == full.term, [nothing, *lemmas], before, after)


def prefix_of(f: Attention) -> Iterator[Query]:
    """The first of two causal rows, alone and in the run, for a given attention."""
    q, k, v = (variables(n, 2, 1) for n in "qkv")
    alone = attention(q[:, :, :1], k[:, :, :1], v[:, :, :1], causal=True)
    yield Query("two rows", f(q, k, v, causal=True)[0, 0, 0, 0].term == alone.flat[0].term)


def key_permutation() -> Iterator[Query]:
    """Two neighbouring keys among any number of others change places; such swaps make every
    order.
    """
    before, after = Axis("B", Real), Axis("A", Real)
    q, k, v, a = (
        variables("q", 1, 1),
        variables("k", 2, 1),
        variables("v", 2, 1),
        conditions("a", 1, 2),
    )
    sides = [[stretch(axis, f"{n}{axis.name}") for axis in (before, after)] for n in "kv"]
    masks = [as_mask([axis.mask(f"a{axis.name}")]) for axis in (before, after)]

    def run(order: slice) -> Any:
        keys, values = (
            np.concatenate([left, x[:, :, order], right], axis=2)
            for (left, right), x in zip(sides, (k, v), strict=True)
        )
        mask = np.concatenate([masks[0], a[..., order], masks[1]], axis=3)
        return attention(q, keys, values, mask=mask).flat[0]

    (one, first_after), first = before.record(partial(after.record, partial(run, slice(None))))
    turned = partial(run, slice(None, None, -1))
    (two, second_after), second = before.record(partial(after.record, turned))
    lemmas = []
    for axis, f, g in ((before, first, second), (after, first_after, second_after)):
        queries, facts = agreement(axis, f, g)
        yield from queries
        lemmas += facts
    yield general("the row", one.term == two.term, lemmas, before, after)


def key_permutation_of(f: Attention) -> Iterator[Query]:
    """Two keys swapped, for a given attention."""
    q, k, v = variables("q", 1, 1), variables("k", 2, 1), variables("v", 2, 1)
    swapped = f(q, k[:, :, ::-1], v[:, :, ::-1]).flat[0].term
    yield Query("two keys", f(q, k, v).flat[0].term == swapped)


def _everything(q: np.ndarray, k: np.ndarray, **_: Any) -> np.ndarray:
    return np.ones((1, 1, q.shape[2], k.shape[2]), dtype=bool)


FIRST_TWICE = mutant(attention, RESULT, f"{RESULT} + weights[..., :1] * v[..., :1, :]")
UNMASKED = rebound(attention, visible=_everything)

OBLIGATIONS: tuple[Obligation, ...] = (
    proved(
        "attention.empty_row",
        "reals",
        r"(\forall j\; \neg a_{ij}) \Rightarrow o_i = 0,\; \bar q_i = 0",
        "any number of keys, all blocked for this query; a second query with any mask",
        empty_row,
        Twin("the mask is ignored", partial(empty_row_of, UNMASKED)),
    ),
    proved(
        "attention.prefix",
        "reals",
        r"(\forall j > t\; \neg a_{ij}) \;\Rightarrow\; "
        r"O(q, k, v)_i = O(q, k_{\le t}, v_{\le t})_i",
        "any number of keys, any mask on them, any number of blocked keys behind them",
        prefix,
        Twin("blocked keys take part", partial(prefix_of, UNMASKED)),
    ),
    proved(
        "attention.key_permutation",
        "reals",
        r"O(q, k_\pi, v_\pi; a_\pi) = O(q, k, v; a)",
        "any two neighbouring keys among any number of others, any mask; neighbouring swaps "
        "generate every permutation",
        key_permutation,
        Twin("the first key counts twice", partial(key_permutation_of, FIRST_TWICE)),
    ),
)
