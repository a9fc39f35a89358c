"""A state as octets: 8 for each number, those of its float64, the lowest first."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64

from assay.spec.models.flat import State

WIDTH = 8


def octets(state: State) -> Float64[np.ndarray, "P 8"]:
    """The bytes of every number as whole numbers, so that two states are equal to the bit, signs of
    zero and NaN included, where these are equal.

    >>> octets(np.array([-0.0])).tolist()
    [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 128.0]]
    """
    numbers = np.ascontiguousarray(state).astype("<f8")
    return numbers.view(np.uint8).reshape(len(numbers), WIDTH).astype(np.float64)
