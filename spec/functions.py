"""Smooth functions of a scalar, for float arrays and for arrays of scalars of any interpretation.

An element of an object array may offer the method of the same name; a plain number among them is
evaluated by Python's ``math``. ``exp`` is in ``scalars``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from assay.spec.error_function import error_function
from assay.spec.scalars import Array, is_symbolic


def _function(
    name: str, one: Callable[[Any], Any], many: Callable[[Array], Array], summary: str
) -> Callable[[Array], Array]:
    def element(x: Any) -> Any:
        return getattr(x, name)() if hasattr(x, name) else one(x)

    each = np.frompyfunc(element, 1, 1)

    def function(x: Array) -> Array:
        # numpy takes the only element out of an object array without axes.
        if not hasattr(x, "dtype") or is_symbolic(x):
            return np.asarray(each(x), dtype=object)
        # An array that is more than its floats (see ``inexact``) knows its own function.
        return getattr(x, name)() if hasattr(x, name) else many(x)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = summary
    return function


log = _function("log", math.log, np.log, "Natural logarithm, elementwise; -inf at 0.")
log1p = _function("log1p", math.log1p, np.log1p, "log(1 + x), elementwise, accurate near 0.")
sqrt = _function("sqrt", math.sqrt, np.sqrt, "Square root, elementwise; NaN below 0.")
arctan = _function("atan", math.atan, np.arctan, "Inverse tangent, elementwise.")
tanh = _function("tanh", math.tanh, np.tanh, "Hyperbolic tangent, elementwise.")
erf = _function("erf", math.erf, error_function, "Error function, elementwise.")
absolute = _function("__abs__", abs, np.abs, "Absolute value, elementwise.")


def number(value: int, like: Array) -> Array:
    """``value`` as a scalar of the kind that ``like`` holds, so that a root of it is as precise.

    >>> number(2, np.ones(3, dtype=np.float32)).dtype.name
    'float32'
    """
    if not is_symbolic(like):
        return np.asarray(value, dtype=like.dtype)
    return np.asarray(like.flat[0] * 0 + value if like.size else value, dtype=object)
