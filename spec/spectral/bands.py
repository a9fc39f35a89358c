"""Bands of low frequencies: along an axis of n, index k is kept when k < m or n - m <= k."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
from jaxtyping import Bool

from assay.spec.spatial.windows import PerAxis, per_axis


def keep(n: Any, modes: Any, k: Any) -> Any:
    """Whether index k of n is one of the frequencies -m .. m - 1; +m is not.

    0 <= k < n, m >= 0; numbers, arrays, integer terms.

    >>> [k for k in range(8) if keep(8, 2, k)]
    [0, 1, 6, 7]
    """
    return (k < modes) | (n - modes <= k)


def band(n: int, modes: int) -> Bool[np.ndarray, "n"]:
    """The indices kept along one axis: min(2 m, n) of them.

    >>> band(5, 1).tolist()
    [True, False, False, False, True]
    """
    return np.asarray(keep(n, modes, np.arange(n)))


def modes_of(modes: PerAxis | None, spatial: Sequence[int]) -> tuple[int, ...]:
    """One number of modes for each axis; None keeps every frequency."""
    return tuple(spatial) if modes is None else per_axis("modes", modes, len(spatial), 0)


def band_mask(spatial: Sequence[int], modes: PerAxis | None) -> Bool[np.ndarray, "N"]:
    """The frequencies kept on every axis at once, row-major.

    >>> band_mask((2, 3), (2, 1)).tolist()
    [True, False, True, True, False, True]
    """
    each = (band(n, m) for n, m in zip(spatial, modes_of(modes, spatial), strict=True))
    return reduce(np.logical_and.outer, each).reshape(-1)
