"""Arrays and other values as Python text that gives the same bits back."""

from __future__ import annotations

import base64
import zlib

import numpy as np

SHORT = 96
"""Elements up to which an array is written as a list that a person can read."""

_WIDTH = 96


def literal(array: np.ndarray) -> str:
    """A call of the script's ``array`` (or ``np.full``) that makes ``array``; longdouble becomes a
    sum of two float64.

    >>> literal(np.array([0.1, -0.0], np.float32))
    "array('float32', (2,), [0.1, -0.0])"
    >>> literal(np.zeros((2, 3)))
    'np.full((2, 3), 0.0)'
    """
    array = np.asarray(array)
    if array.dtype == np.longdouble:
        return _wide(array)
    if (
        array.size > 1
        and array.dtype == np.float64
        and _same_bits(array, np.full_like(array, array.flat[0]))
    ):
        return f"np.full({array.shape}, {_number(array.flat[0])})"
    values = _listed(array) if array.size <= SHORT else None
    if values is None:
        data = base64.b64encode(zlib.compress(np.ascontiguousarray(array).tobytes(), 9)).decode(
            "ascii"
        )
        lines = [data[i : i + _WIDTH] for i in range(0, len(data), _WIDTH)] or [""]
        values = "\n    " + "\n    ".join(f"{line!r}" for line in lines) + "\n"
    return f"array({array.dtype.name!r}, {array.shape}, {values})"


def _wide(array: np.ndarray) -> str:
    """High part plus low part: exact to 106 bits, more than a longdouble has."""
    high = array.astype(np.float64)
    with np.errstate(invalid="ignore"):
        low = np.where(np.isfinite(array), array - high, 0).astype(np.float64)
    if not low.any():
        return literal(high)
    return f"{literal(high)}.astype(np.longdouble) + {literal(low)}"


def _listed(array: np.ndarray) -> str | None:
    """The elements as nested lists, or None when their short decimals do not give the bits back."""
    if array.dtype == bool:
        return _nest(array.astype(int), str)
    if array.dtype.kind in "iu":
        return _nest(array, str)
    plain = array.astype(np.float32) if array.dtype.name == "bfloat16" else array
    flat = [float(_number(x).replace("nan", "NaN")) for x in plain.ravel()]
    back = np.array(flat, plain.dtype).reshape(plain.shape)
    # NaN has many bit patterns; a script that needs a particular one gets the bytes.
    return _nest(plain, _number) if _same_bits(back, plain) else None


def _nest(array: np.ndarray, text: object) -> str:
    if array.ndim == 0:
        return str(text(array[()]))  # type: ignore[operator]
    return "[" + ", ".join(_nest(row, text) for row in array) + "]"


def _number(value: object) -> str:
    """The shortest decimal that is nearest to ``value`` in its own dtype."""
    if isinstance(value, np.floating):
        return "nan" if np.isnan(value) else str(value)
    return str(value)


def _same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()
