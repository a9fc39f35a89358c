"""What the spec needs of a scalar: numpy's own operators, and three helpers that numpy lacks.

An array is either a float array or an object array of scalars of one interpretation (Fraction, Arb
ball, sympy expression, solver term). ``np.exp`` and the arithmetic operators already dispatch on
the elements of an object array. Python's ``if`` and numpy's comparisons do not, so they are written
once, here. An element may offer ``select`` (a condition) and ``maximum`` (an ordered scalar).

One element may also stand for a stretch of the last axis of any length (a statement about all n):
it then offers ``total``, ``count``, ``any_of`` (a condition) and ``row_max``, and elements without
them are single entries. Nothing else is asked of an element.
"""

from __future__ import annotations

import math
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from jaxtyping import Bool, Shaped

Array = Shaped[np.ndarray, "..."]


def is_symbolic(x: Array) -> bool:
    """True when the elements of ``x`` are scalars of an interpretation and not machine numbers."""
    return x.dtype == object


def _select_one(condition: Any, yes: Any, no: Any) -> Any:
    return condition.select(yes, no) if hasattr(condition, "select") else (yes if condition else no)


_select = np.frompyfunc(_select_one, 3, 1)


def _exp_one(x: Any) -> Any:
    return x.exp() if hasattr(x, "exp") else math.exp(x)


_exp = np.frompyfunc(_exp_one, 1, 1)


def exp(x: Array) -> Array:
    """Elementwise exponential; plain numbers among scalars of an interpretation are allowed.

    >>> exp(np.array([0, 0], dtype=object)).tolist()
    [1.0, 1.0]
    """
    return np.asarray(_exp(x), dtype=object) if is_symbolic(x) else np.exp(x)


def select(condition: Array, yes: Array | float, no: Array | float) -> Array:
    """``yes`` where ``condition`` holds, else ``no``; the branch not taken has no influence.

    >>> select(np.array([True, False]), np.array([1.0, np.nan]), 0.0).tolist()
    [1.0, 0.0]
    """
    if is_symbolic(condition):
        return np.asarray(_select(condition, yes, no), dtype=object)
    return np.where(condition, yes, no)


def broadcast(x: Array, shape: tuple[int, ...]) -> Array:
    """``x`` in a shape: as numpy has it, but an array of that shape costs nothing.

    >>> broadcast(np.array([1, 2]), (2, 2)).tolist()
    [[1, 2], [1, 2]]
    """
    return x if x.shape == shape else np.broadcast_to(x, shape)


def at_most(a: Array, b: Array | float) -> Array:
    """Elementwise a <= b, kept as a term where an operand is symbolic.

    >>> at_most(np.array([1, 3]), np.array([2, 2])).tolist()
    [True, False]
    """
    if object in (getattr(a, "dtype", None), getattr(b, "dtype", None)):
        return np.asarray(np.less_equal(a, b, dtype=object))
    return np.less_equal(a, b)


def any_of(condition: Array) -> Array:
    """Disjunction along the last axis, which is kept with length 1."""
    if is_symbolic(condition):
        seen = _each(condition, "any_of")
        return np.asarray(np.bitwise_or.reduce(seen, axis=-1, keepdims=True), dtype=object)
    return np.any(condition, axis=-1, keepdims=True)


def maximum(a: Array, b: Array) -> Array:
    """Elementwise maximum; 0 for scalars without an order (see ``row_max``)."""
    if not (is_symbolic(a) or is_symbolic(b)):
        return np.maximum(a, b)
    return np.asarray(np.frompyfunc(_maximum_one, 2, 1)(a, b), dtype=object)


def _maximum_one(a: Any, b: Any) -> Any:
    return a.maximum(b) if hasattr(a, "maximum") else 0


def row_max(scores: Array, allowed: Bool[np.ndarray, "..."] | Array) -> Array:
    """Largest allowed score of each row, shape ``[..., 1]``; 0 for a row with none allowed.

    It only keeps ``exp`` in range: softmax does not depend on it (claim
    ``softmax.shift_invariant``), so it is 0 for scalars without an order, such as sympy
    expressions. Blocked scores, NaN included, never enter.

    >>> scores = np.array([[1.0, 9.0], [2.0, 3.0]])
    >>> row_max(scores, np.array([[True, False], [False, False]])).tolist()
    [[1.0], [0.0]]
    """
    if not is_symbolic(scores):
        top = np.max(
            scores, axis=-1, keepdims=True, where=np.asarray(allowed, dtype=bool), initial=-np.inf
        )
        return np.where(any_of(broadcast(allowed, scores.shape)), top, np.zeros_like(top))
    zero = np.zeros((*scores.shape[:-1], 1), dtype=object)
    if any(hasattr(s, "row_max") for s in scores.flat):
        rows = np.stack([scores, broadcast(allowed, scores.shape)], axis=-2).reshape(
            -1, 2, scores.shape[-1]
        )
        tops = (_stretch(row[0]).row_max(row[0], row[1]) for row in rows)
        return np.fromiter(tops, dtype=object, count=len(rows)).reshape(zero.shape)
    if scores.size == 0 or not hasattr(scores.flat[0], "maximum"):
        return zero
    seen, top = np.zeros_like(zero), zero
    seen[...] = False
    for j in range(scores.shape[-1]):
        s, ok = scores[..., j : j + 1], broadcast(allowed, scores.shape)[..., j : j + 1]
        better = select(_as_object(seen), maximum(top, s), s)
        top = select(_as_object(ok), better, top)
        seen = _as_object(seen) | _as_object(ok)
    return top


def _as_object(x: Array) -> Array:
    return np.asarray(x, dtype=object)


def _each(x: Array, fold: str) -> Array:
    """Fold every element that stands for a stretch of an axis; single entries stay as they are."""
    folded = (getattr(e, fold)() if hasattr(e, fold) else e for e in x.flat)
    return np.fromiter(folded, dtype=object, count=x.size).reshape(x.shape)


def _stretch(row: Array) -> Any:
    return next(e for e in row if hasattr(e, "row_max"))


def total_over(products: Array, x: Array) -> Array:
    """Sum over j of ``products`` [..., i, j, w], where j is also the axis -2 of ``x`` [..., j, w].

    >>> total_over(np.ones((1, 2, 1), dtype=object), np.ones((2, 1), dtype=object)).tolist()
    [[2]]
    """
    # Only x says what a stretch is here: products may also stand for stretches of their axis i.
    if any(hasattr(e, "total") for e in x.flat):
        products = _each(products, "total")
    return np.asarray(products.sum(axis=-2), dtype=object)


def total(x: Array) -> Array:
    """Sum along the last axis, kept with length 1; 0 for an empty axis."""
    if is_symbolic(x) and x.shape[-1] > 0:
        x = _each(x, "total")
        parts = [x[..., j : j + 1] for j in range(x.shape[-1])]
        return np.asarray(reduce(np.add, parts), dtype=object)
    return np.sum(x, axis=-1, keepdims=True)


def count(x: Array) -> Any:
    """Number of entries along the last axis; 1 for an empty one, so that it can divide a sum of
    none.

    >>> count(np.zeros((2, 3))), count(np.zeros((2, 0)))
    (3, 1)
    """
    entries = x.shape[-1]
    if is_symbolic(x) and x.size and any(hasattr(e, "count") for e in x.flat):
        row = x.reshape(-1, entries)[0]
        return reduce(add, (e.count() if hasattr(e, "count") else 1 for e in row))
    return max(entries, 1)
