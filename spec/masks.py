"""Attention masks: visible(i, j) for query row i and key j; True means that i may attend to j.

Query row i of a chunk stands at absolute position ``offset + i``. All predicates are written for
ints, index arrays and solver terms alike.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from assay.spec.scalars import Array

Mask = Bool[np.ndarray, "*batch L S"]


def causal_visible(i: Any, j: Any, offset: Any = 0) -> Any:
    """j <= offset + i: a query sees its own position and everything before it.

    >>> causal_visible(0, 3, offset=3), causal_visible(0, 4, offset=3)
    (True, False)
    """
    return j <= offset + i


def window_visible(i: Any, j: Any, offset: Any, left: Any, right: Any) -> tuple[Any, Any]:
    """The two sides of offset + i - left <= j <= offset + i + right, as a pair.

    >>> window_visible(5, 3, 0, 2, 0)
    (True, True)
    """
    return offset + i - left <= j, j <= offset + i + right


def bottom_right_offset(queries: Any, keys: Any) -> Any:
    """Offset that lets the last query see the last key: S - L (negative when there are more queries
    than keys).

    >>> bottom_right_offset(2, 5)
    3
    """
    return keys - queries


def _indices(queries: int, keys: int) -> tuple[Int[np.ndarray, "L 1"], Int[np.ndarray, "1 S"]]:
    if queries < 0 or keys < 0:
        raise ValueError(f"queries={queries!r} and keys={keys!r} must not be negative")
    return np.arange(queries)[:, None], np.arange(keys)[None, :]


def causal_mask(queries: int, keys: int, offset: int = 0) -> Bool[np.ndarray, "L S"]:
    """Causal mask of a chunk of ``queries`` rows at ``offset`` against ``keys`` keys.

    ``offset`` = 0 is the top-left triangle, ``keys - queries`` the bottom-right one; they are equal
    for L = S only.

    >>> causal_mask(2, 5, offset=3).astype(int).tolist()
    [[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]
    >>> causal_mask(2, 5).astype(int).tolist()
    [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0]]
    """
    i, j = _indices(queries, keys)
    return np.asarray(causal_visible(i, j, offset))


def future_mask(queries: int, keys: int, offset: int = 0) -> Bool[np.ndarray, "L S"]:
    """Complement of ``causal_mask``: True at the keys that row i must not see.

    >>> future_mask(2, 2).astype(int).tolist()
    [[0, 1], [0, 0]]
    """
    return ~causal_mask(queries, keys, offset)


def window_mask(
    queries: int, keys: int, offset: int, left: int | None, right: int | None
) -> Bool[np.ndarray, "L S"]:
    """Keys within ``left`` positions before and ``right`` after the query; None is unlimited.

    >>> window_mask(3, 3, 0, 1, 0).astype(int).tolist()
    [[1, 0, 0], [1, 1, 0], [0, 1, 1]]
    """
    for name, value in (("left", left), ("right", right)):
        if value is not None and value < 0:
            raise ValueError(f"{name}={value!r} must be None (unlimited) or at least 0")
    i, j = _indices(queries, keys)
    after, before = window_visible(
        i,
        j,
        offset,
        queries + keys + abs(offset) if left is None else left,
        queries + keys + abs(offset) if right is None else right,
    )
    return np.asarray(after & before)


def key_padding_mask(lengths: Int[np.ndarray, " B"], keys: int) -> Bool[np.ndarray, "B 1 1 S"]:
    """True at the first ``lengths[b]`` keys of sequence b.

    >>> key_padding_mask(np.array([1, 3]), 3)[:, 0, 0].astype(int).tolist()
    [[1, 0, 0], [1, 1, 1]]
    """
    return np.asarray(np.arange(keys) < np.asarray(lengths)[:, None, None, None])


def combine(*masks: Array | None) -> Array | None:
    """Conjunction of masks, broadcast; None allows everything and is neutral.

    >>> combine(None, None) is None
    True
    >>> combine(causal_mask(2, 2), np.array([True, False])).astype(int).tolist()
    [[1, 0], [1, 0]]
    """
    present = [m for m in masks if m is not None]
    if not present:
        return None
    result = present[0]
    for mask in present[1:]:
        result = result & mask
    return result
