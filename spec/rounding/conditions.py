"""Conditions on inexact numbers, and what a choice between two of them may be off by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from assay.spec.arithmetic import Arithmetic
from assay.spec.rounding.carried import Carried, magnitude
from assay.spec.scalars import Array


@dataclass(frozen=True, eq=False)
class Uncertain:
    """A condition that was evaluated on inexact numbers: what it says, and where that is sure.

    of  one of the numbers it was evaluated on
    """

    value: Array
    sure: Array
    of: Carried

    dtype = np.dtype(bool)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the condition."""
        return self.value.shape

    def __and__(self, other: Uncertain | Array) -> Uncertain:
        return self._joined(other, np.logical_and, settled=False)

    def __or__(self, other: Uncertain | Array) -> Uncertain:
        return self._joined(other, np.logical_or, settled=True)

    def __invert__(self) -> Uncertain:
        return Uncertain(~self.value, self.sure, self.of)

    def _joined(self, other: Any, join: Any, *, settled: bool) -> Uncertain:
        """A sure operand that settles the result makes it sure, whatever the other one is."""
        if not isinstance(other, Uncertain):
            other = Uncertain(np.asarray(other), np.ones(np.shape(other), dtype=bool), self.of)
        decided = (self.sure & (self.value == settled)) | (other.sure & (other.value == settled))
        both = self.sure & other.sure
        return Uncertain(join(self.value, other.value), both | decided, self.of)

    def __array_function__(
        self, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        if function is not np.where:
            raise TypeError(f"numpy.{function.__name__} of an uncertain condition is not defined")
        return choose(*args)

    __rand__ = __and__
    __ror__ = __or__
    # numpy must leave `array & condition` to the methods above.
    __array_ufunc__ = None


def comparison(compare: Callable[[Array, Array], Array]) -> Callable[..., Any]:
    """The rule of a comparison: a plain mask where the errors cannot change what it says."""

    def rule(x: Any, y: Any, **_: Any) -> Any:
        carried = x if isinstance(x, Carried) else y
        x, y = carried.like(x), carried.like(y)
        value, slack = compare(x.value, y.value), x.error + y.error
        sure = (np.abs(x.value - y.value) > slack) | (slack == 0)
        return value if sure.all() else Uncertain(value, sure, carried)

    return rule


def choose(condition: Uncertain | Array, yes: Any, no: Any) -> Carried:
    """The error of what is chosen; where the choice is not sure, either may have been taken."""
    carried = [x for x in (yes, no) if isinstance(x, Carried)]
    if isinstance(condition, Uncertain):
        carried.append(condition.of)
    base = carried[0] if carried else Carried(0.0, 0.0, Arithmetic())
    a, b = base.like(yes), base.like(no)
    if not isinstance(condition, Uncertain):
        return base.of(np.where(condition, a.value, b.value), np.where(condition, a.error, b.error))
    says = condition.value
    taken = np.where(says, a.error, b.error)
    other = np.where(says, b.error, a.error) + magnitude(a.value - b.value)
    error = np.where(condition.sure, taken, np.maximum(taken, other))
    return base.of(np.where(says, a.value, b.value), error)
