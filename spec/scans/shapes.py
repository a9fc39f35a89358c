"""Axes of scans: time first for the runners, batch first in arrays; the adjoint of broadcasting."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Shaped

from assay.spec.scalars import Array, total


def time_first(x: Shaped[np.ndarray, "*b T W"]) -> Shaped[np.ndarray, "T *b W"]:
    """The time axis, second to last in arrays, brought to the front."""
    return np.moveaxis(x, -2, 0)


def time_back(x: Shaped[np.ndarray, "T *b W"]) -> Shaped[np.ndarray, "*b T W"]:
    """Inverse of ``time_first``."""
    return np.moveaxis(x, 0, -2)


def before(start: Array, states: Array) -> Array:
    """States before each step, from the one at the start and those after each step; time first.

    >>> before(np.array(7.0), np.array([1.0, 2.0])).tolist()
    [7.0, 1.0]
    """
    return np.concatenate([start[None], states])[:-1]


def after(x: Array) -> Array:
    """x_{t+1} at t, and 0 at the last step; time first.

    >>> after(np.array([1.0, 2.0])).tolist()
    [2.0, 0.0]
    """
    return np.concatenate([x[1:], np.zeros_like(x[:1])])


def summed_to(x: Array, shape: tuple[int, ...]) -> Array:
    """Adjoint of broadcasting an array of ``shape``: the sum over every axis that was spread.

    >>> summed_to(np.ones((2, 3, 4)), (3, 1)).tolist()
    [[8.0], [8.0], [8.0]]
    """
    extra = x.ndim - len(shape)
    spread = [i for i in range(x.ndim) if i < extra or shape[i - extra] != x.shape[i]]
    return x.sum(axis=tuple(spread), keepdims=True).reshape(shape) if spread else x


def sum_of(terms: Sequence[Array]) -> Array:
    """Sum of arrays of one shape as one sum, so that its error bound holds for every order.

    >>> sum_of([np.array([1.0, 2.0]), np.array([3.0, 4.0])]).tolist()
    [4.0, 6.0]
    """
    return total(np.stack(terms, axis=-1))[..., 0]


def with_last(x: Array, extra: Array | None) -> Array:
    """``extra`` added to the last entry of x, where there is one; time first.

    >>> with_last(np.array([1.0, 2.0]), np.array(5.0)).tolist()
    [1.0, 7.0]
    """
    if extra is None or not len(x):
        return x
    return np.concatenate([x[:-1], x[-1:] + extra])
