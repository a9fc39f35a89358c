"""Every operation rounded to a small format: the spec's body as a float16, bfloat16 or float32
kernel would run it.

Values are float64 and each result is rounded once more; for + - * / that equals rounding once,
since 53 >= 2 * 24 + 2 bits. exp is correctly rounded from an Arb ball. Sums run from the left, in
the spec's order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from flint import arb

FORMATS: dict[str, Callable[[float], float]] = {
    "float16": lambda x: float(np.float16(x)),
    "bfloat16": lambda x: float(ml_dtypes.bfloat16(x)),
    "float32": lambda x: float(np.float32(x)),
}


class Rounded:
    """A number of a format; plain numbers are rounded to it first.

    >>> Rounded(2049, "float16") + 0
    Rounded(2048.0, 'float16')
    """

    __slots__ = ("format", "value")
    value: float

    def __init__(self, value: Any, name: str) -> None:
        self.format = name
        self.value = FORMATS[name](value.value if isinstance(value, Rounded) else float(value))

    def exp(self) -> Rounded:
        """Exponential, correctly rounded."""
        return Rounded(float(arb(self.value).exp().mid()), self.format)

    def maximum(self, other: Any) -> Rounded:
        """The larger of the two."""
        return Rounded(max(self.value, self._of(other)), self.format)

    def _of(self, other: Any) -> float:
        return Rounded(other, self.format).value

    def __repr__(self) -> str:
        return f"Rounded({self.value}, {self.format!r})"

    def __neg__(self) -> Rounded:
        return Rounded(-self.value, self.format)

    def __add__(self, other: Any) -> Rounded:
        return Rounded(self.value + self._of(other), self.format)

    def __sub__(self, other: Any) -> Rounded:
        return Rounded(self.value - self._of(other), self.format)

    def __mul__(self, other: Any) -> Rounded:
        return Rounded(self.value * self._of(other), self.format)

    def __truediv__(self, other: Any) -> Rounded:
        return Rounded(self.value / self._of(other), self.format)

    def __rsub__(self, other: Any) -> Rounded:
        return Rounded(self._of(other) - self.value, self.format)

    def __rtruediv__(self, other: Any) -> Rounded:
        return Rounded(self._of(other) / self.value, self.format)

    __radd__ = __add__
    __rmul__ = __mul__
