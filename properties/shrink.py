"""Making a counterexample's values simple, after Hypothesis has made its structure small."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from assay.properties.case import Case, Fit

Fails = Callable[[Case], bool]


def simplify_values(
    case: Case,
    arrays: Mapping[str, np.ndarray],
    fits: Mapping[str, Fit],
    fails: Fails,
    seconds: float,
) -> Case:
    """The case with explicit arrays, as simple as can be found in ``seconds`` while it still fails.

    arrays  every array that the case was made of
    fits    of those that may hold other values: what brings these into the domain of the property,
            outside of which a failure would say nothing
    Each array is tried whole (zeros, ones, signs, small integers, fewer digits), then halves, then
    single entries; the result is the last candidate that failed, so it always fails.
    """
    best = replace(case, arrays={name: arrays[name] for name in fits})
    if not fails(best):
        return case
    stop = time.monotonic() + seconds
    improved = True
    while improved and time.monotonic() < stop:
        improved = False
        for name in sorted(fits):
            for candidate in _simpler(best.arrays[name], fits[name]):
                if time.monotonic() >= stop:
                    return best
                attempt = replace(best, arrays={**best.arrays, name: candidate})
                if fails(attempt):
                    best, improved = attempt, True
                    break
    return best


def cost(array: np.ndarray) -> int:
    """How complicated an array is: blocked mask entries; 0, 1, integers, few digits, many digits
    count 0 to 4 each.

    >>> cost(np.array([0.0, 1.0, 3.0, 0.5, 0.1]))
    10
    """
    if array.dtype == bool:
        return int(array.size - np.count_nonzero(array))
    wide = array.astype(np.float64)
    wide = wide[np.isfinite(wide) & (wide != 0.0)]
    rough = (
        (np.abs(wide) != 1.0).astype(int)
        + (wide != np.round(wide))
        + (wide * 32 != np.round(wide * 32))
    )
    return int(wide.size + rough.sum())


def _simpler(array: np.ndarray, fit: Fit) -> Iterator[np.ndarray]:
    """Legal arrays of the same shape and dtype that cost less, boldest first."""
    limit = cost(array)
    legal = (fit(candidate).astype(array.dtype) for candidate in _candidates(array))
    return (candidate for candidate in legal if cost(candidate) < limit)


def _candidates(array: np.ndarray) -> Iterator[np.ndarray]:
    if array.dtype == bool:
        yield np.ones_like(array)
        yield from _parts(array, True)
        return
    wide = array.astype(np.float64)
    finite = np.isfinite(wide)
    yield np.zeros_like(array)
    yield np.where(finite, np.ones_like(wide), wide).astype(array.dtype)
    yield np.where(finite, np.copysign(1.0, wide), wide).astype(array.dtype)
    with np.errstate(all="ignore"):
        for digits in (1.0, 4.0, 32.0):
            yield np.where(finite, np.round(wide * digits) / digits, wide).astype(array.dtype)
    yield from _parts(array, 0)


def _parts(array: np.ndarray, value: object) -> Iterator[np.ndarray]:
    """The array with halves, quarters, ... and at last single entries set to ``value``."""
    flat = array.ravel()
    size = flat.size // 2
    while size >= 1 and flat.size // size <= 64:
        for start in range(0, flat.size, size):
            changed = flat.copy()
            changed[start : start + size] = value
            yield changed.reshape(array.shape)
        size //= 2
