"""Online softmax: the row is read in blocks, with running maximum m, mass l and weighted sum acc.

m' = max(m, max S),  a = exp(m - m'),  l' = a l + sum exp(S - m'),  acc' = a acc + exp(S - m') V;
                     result acc / l.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from assay.spec.contraction import contract
from assay.spec.scalars import Array, any_of, broadcast, exp, maximum, row_max, select, total


class OnlineState(NamedTuple):
    """Running summary of the keys read so far.

    top [..., 1] maximum (0 until a key is seen), mass [..., 1], acc [..., Dv], seen [..., 1]
    whether any key was allowed.
    """

    top: Array
    mass: Array
    acc: Array
    seen: Array


def online_start(rows: tuple[int, ...], width: int, like: Array) -> OnlineState:
    """State before any key: no maximum, no mass. ``rows`` are the leading dims, ``like`` gives the
    scalar type.
    """
    zero = np.zeros((*rows, 1), dtype=like.dtype)
    seen = np.zeros((*rows, 1), dtype=bool)
    return OnlineState(zero, zero, np.zeros((*rows, width), dtype=like.dtype), seen)


def _merge_top(a_top: Array, a_seen: Array, b_top: Array, b_seen: Array) -> Array:
    both = select(b_seen, maximum(a_top, b_top), a_top)
    return select(a_seen, both, b_top)


def online_step(state: OnlineState, scores: Array, allowed: Array, values: Array) -> OnlineState:
    """Read one block of keys: scores and allowed [..., b], values [..., b, Dv].

    A block with nothing allowed leaves the state as it is: the rescale factor exp(m - m') is 1
    there, and 0 (not exp(-inf + inf) = NaN) while no key has been seen. Source: M. Milakov and N.
    Gimelshein, "Online normalizer calculation for softmax" (2018), algorithm 3; T. Dao,
    "FlashAttention-2" (2023), algorithm 1.
    """
    allowed = broadcast(allowed, scores.shape)
    some = any_of(allowed)
    top = _merge_top(state.top, state.seen, row_max(scores, allowed), some)
    rescale = select(state.seen, exp(select(state.seen, state.top, top) - top), 0)
    weights = select(allowed, exp(select(allowed, scores, top) - top), 0)
    mass = rescale * state.mass + total(weights)
    added = contract(weights[..., None, :], allowed[..., None, :], values)[..., 0, :]
    acc = rescale * state.acc + added
    return OnlineState(top, mass, acc, state.seen | some)


def online_merge(a: OnlineState, b: OnlineState) -> OnlineState:
    """Summary of the keys of ``a`` and ``b`` together: what split-K and tree reductions compute.
    Associative over the reals.
    """
    top = _merge_top(a.top, a.seen, b.top, b.seen)
    left = select(a.seen, exp(select(a.seen, a.top, top) - top), 0)
    right = select(b.seen, exp(select(b.seen, b.top, top) - top), 0)
    return OnlineState(
        top, left * a.mass + right * b.mass, left * a.acc + right * b.acc, a.seen | b.seen
    )


def online_finish(state: OnlineState) -> Array:
    """acc / mass, and zeros where no key was allowed."""
    return state.acc / select(state.seen, state.mass, 1)


def online_attend(scores: Array, allowed: Array, values: Array, block: int) -> Array:
    """Masked softmax of ``scores`` [..., S] applied to ``values`` [..., S, Dv], ``block`` keys at a
    time.

    Equal to ``masked_softmax(scores, allowed) @ values`` over the reals, for every block size.

    >>> s, v = np.array([1.0, 2.0, 3.0]), np.eye(3)
    >>> got = online_attend(s, np.array([False, True, True]), v, block=1)
    >>> bool(np.allclose(got, [0.0, 1 / (1 + np.e), np.e / (1 + np.e)]))
    True
    """
    if block < 1:
        raise ValueError(f"block={block!r} must be at least 1")
    allowed = broadcast(allowed, scores.shape)
    state = online_start(scores.shape[:-1], values.shape[-1], scores)
    for start in range(0, scores.shape[-1], block):
        part = slice(start, start + block)
        state = online_step(state, scores[..., part], allowed[..., part], values[..., part, :])
    return online_finish(state)


def online_softmax(scores: Array, allowed: Array, block: int) -> Array:
    """Masked softmax weights by the online recurrence, in two passes: statistics first, then
    weights.

    >>> online_softmax(np.array([0.0, 0.0]), np.array([True, True]), 1).tolist()
    [0.5, 0.5]
    """
    eye = np.eye(scores.shape[-1], dtype=scores.dtype)
    values = np.broadcast_to(eye, (*scores.shape[:-1], *eye.shape))
    return online_attend(scores, allowed, values, block)
