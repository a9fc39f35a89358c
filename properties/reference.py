"""The values and bounds that a backend is held to: the spec on the exact inputs, in more precision
than is judged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from assay.properties.context import Context

Arrays = Mapping[str, np.ndarray]


def widen(array: np.ndarray, dtype: str) -> np.ndarray:
    """The same values in the reference's precision: float64, or extended precision for float64
    backends. Integers and truth values stay what they are.
    """
    if array.dtype.kind in "biu":
        return array
    return array.astype(np.longdouble if dtype == "float64" else np.float64)


def _wide(arrays: Arrays, dtype: str) -> dict[str, np.ndarray]:
    return {name: widen(array, dtype) for name, array in arrays.items()}


def _narrow(arrays: Arrays) -> dict[str, np.ndarray]:
    """Bounds need no extended precision: their own rounding is part of REFERENCE_SLACK."""
    return {n: a if a.dtype.kind in "biu" else a.astype(np.float64) for n, a in arrays.items()}


def values(ctx: Context, inputs: Arrays, attributes: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Exact outputs by name."""
    with np.errstate(all="ignore"):
        return ctx.op.forward(_wide(inputs, ctx.dtype), attributes)


def gradients(
    ctx: Context, inputs: Arrays, cotangents: Arrays, attributes: Mapping[str, Any]
) -> dict[str, np.ndarray]:
    """Exact gradients by input name."""
    with np.errstate(all="ignore"):
        return ctx.op.backward(_wide(inputs, ctx.dtype), _wide(cotangents, ctx.dtype), attributes)


def bounds(ctx: Context, inputs: Arrays, attributes: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Elementwise bounds on the outputs' error, for the contract's arithmetic."""
    with np.errstate(all="ignore"):
        return ctx.op.bound(_narrow(inputs), attributes, ctx.arithmetic)


def gradient_bounds(
    ctx: Context, inputs: Arrays, cotangents: Arrays, attributes: Mapping[str, Any]
) -> dict[str, np.ndarray]:
    """Elementwise bounds on the gradients' error, for the contract's arithmetic."""
    with np.errstate(all="ignore"):
        return ctx.op.backward_bound(
            _narrow(inputs), _narrow(cotangents), attributes, ctx.arithmetic
        )
