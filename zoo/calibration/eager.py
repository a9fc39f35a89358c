"""Low-precision references: every operation in float32, its result rounded to the dtype under test,
as frameworks compute where nothing is fused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import ml_dtypes
import numpy as np

ROUNDINGS = {"bfloat16": np.dtype(ml_dtypes.bfloat16), "float16": np.dtype(np.float16)}
Arrays = Mapping[str, np.ndarray]


class Eager(np.ndarray):
    """float32 numbers that are all representable in ``kind``, and stay so under every operation.

    Sums and products inside one operation (matmul, sum, mean) keep float32, as accumulators do.
    """

    kind: np.dtype[Any] = np.dtype(np.float32)

    def __array_finalize__(self, obj: Any) -> None:
        self.kind = getattr(obj, "kind", self.kind)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None)
        result = getattr(ufunc, method)(*_plain(inputs), **_plain_values(kwargs))
        if out is None:
            return _rounded(result, self.kind)
        out[0][...] = _rounded(result, self.kind)
        return out[0]

    def __array_function__(
        self, func: Callable[..., Any], types: Any, args: Any, kwargs: Mapping[str, Any]
    ) -> Any:
        return _rounded(func(*_plain(args), **_plain_values(dict(kwargs))), self.kind)


def eager(array: np.ndarray, dtype: str) -> np.ndarray:
    """Floats as such numbers; integers, truth values and wider dtypes as they are."""
    if array.dtype.kind in "biu" or dtype not in ROUNDINGS:
        return array
    view = array.astype(np.float32).view(Eager)
    view.kind = ROUNDINGS[dtype]
    return view


def reference(
    compute: Callable[..., Mapping[str, np.ndarray]],
    dtype: str,
    given: Iterable[Arrays],
    attributes: Mapping[str, Any],
) -> dict[str, np.ndarray]:
    """``compute(*given, attributes)`` with each step rounded to ``dtype``, as plain arrays."""
    low = [{n: eager(a, dtype) for n, a in arrays.items()} for arrays in given]
    with np.errstate(all="ignore"):
        made = compute(*low, attributes)
    return {n: np.asarray(a).view(np.ndarray) for n, a in made.items()}


def _plain(value: Any) -> Any:
    """The same without this class, so that numpy computes as it always does."""
    if isinstance(value, Eager):
        return value.view(np.ndarray)
    if isinstance(value, (tuple, list)):
        return type(value)(_plain(v) for v in value)
    return value


def _plain_values(values: dict[str, Any]) -> dict[str, Any]:
    return {n: _plain(v) for n, v in values.items()}


def _rounded(value: Any, kind: np.dtype[Any]) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)(_rounded(v, kind) for v in value)
    if isinstance(value, (np.floating, np.ndarray)) and np.issubdtype(
        np.asarray(value).dtype, np.floating
    ):
        view = np.asarray(value).astype(kind).astype(np.float32).view(Eager)
        view.kind = kind
        return view
    return value
