"""Values that carry a bound on their error, and the errors that one operation adds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from assay.spec.arithmetic import Arithmetic, gamma
from assay.spec.scalars import Array, is_symbolic


def magnitude(x: Array) -> Array:
    """|x| in float64; terms stay what they are."""
    size = np.abs(x)
    return size if is_symbolic(size) else size.astype(np.float64, copy=False)


def _all_below(x: Array, limit: float) -> bool:
    """Whether all are numbers below the limit, which is so but for overflows and inputs that are
    not finite.
    """
    return not x.size or bool(x.max() < limit)


class Carried:
    """Values [...], a bound [...] on the error of each, and the arithmetic that makes errors.

    A bound that is not a number is no bound: it counts as infinite.
    """

    def __init__(self, value: Any, error: Any, arithmetic: Arithmetic) -> None:
        self.value = np.asarray(value)
        error = np.asarray(error, dtype=np.float64)
        if error.shape != self.value.shape:
            error = np.broadcast_to(error, self.value.shape)
        self.error = np.where(np.isnan(error), np.inf, error)
        self.arithmetic = arithmetic

    def of(self, value: Any, error: Any = 0.0) -> Self:
        """Other values under the same arithmetic."""
        return type(self)(value, error, self.arithmetic)

    def like(self, x: Any) -> Self:
        """``x`` itself when it carries errors, else the constants of a formula.

        A constant may have to be rounded to the format, unless it is small and dyadic.
        """
        if isinstance(x, type(self)):
            return x
        array = np.asarray(x)
        if array.dtype.kind != "f":
            return self.trusted(array, np.zeros(array.shape))
        with np.errstate(all="ignore"):
            size = np.abs(array).astype(np.float64)
            short = (size < 2.0**8) & (np.floor(size * 256.0) == size * 256.0)
            # Below the normal numbers it is rounded as an underflow is.
            low = np.where(size < self.smallest, self.arithmetic.tau_acc, 0.0)
            error = np.where(short | ~np.isfinite(size), 0.0, self.arithmetic.u_acc * size + low)
        return self.of(array, error)

    def trusted(self, value: Any, error: Any) -> Self:
        """``of`` for errors that are numbers in float64, in the shape of the values."""
        made = object.__new__(type(self))
        made.value, made.error = np.asarray(value), np.asarray(error)
        made.arithmetic = self.arithmetic
        return made

    def moved(self, move: Callable[[Array], Array]) -> Self:
        """Values and errors moved alike."""
        return self.trusted(move(self.value), move(self.error))

    @property
    def unit(self) -> float:
        """Unit roundoff r of one operation, whose result may be stored: (1 + u) (1 + u') - 1."""
        return self.arithmetic.unit

    @property
    def eta(self) -> float:
        """Relative error of one function such as exp, whose result may be stored."""
        return self.arithmetic.eta + self.arithmetic.u_mid * (1.0 + self.arithmetic.eta)

    @property
    def largest(self) -> float:
        """Beyond this a result overflows."""
        return self.arithmetic.largest

    @property
    def smallest(self) -> float:
        """Below this a result is subnormal."""
        return self.arithmetic.smallest

    @property
    def reach(self) -> Array:
        """Largest magnitude that a computed value may have."""
        return magnitude(self.value) + self.error

    @property
    def exact(self) -> Array:
        """Where there is no error."""
        return np.asarray(self.error == 0)

    @property
    def nowhere_exact(self) -> bool:
        """Whether every number has an error."""
        return np.count_nonzero(self.error) == self.error.size

    def plainly(
        self, value: Array, inherited: Array, own: Array | float, *, tau: Array | bool
    ) -> Self | None:
        """``computed`` where all is finite and nothing overflows, else None."""
        size = magnitude(value) + inherited
        error = inherited + own * size + tau * self.arithmetic.tau_acc
        return self.trusted(value, error) if _all_below(size + error, self.largest) else None

    def computed(
        self, value: Array, inherited: Array, own: Array | float, *, tau: Array | bool
    ) -> Self:
        """The result of one operation: ``own`` roundings relative to its largest magnitude.

        tau  where the operation may underflow, also below the smallest number of this float64
        """
        plain = self.plainly(value, inherited, own, tau=tau)
        if plain is not None:
            return plain
        inherited = np.where(np.isnan(inherited), np.inf, inherited)
        size = magnitude(value) + inherited
        error = inherited + own * size + np.where(tau, self.arithmetic.tau_acc, 0.0)
        overflows = (size + error >= self.largest) & ~np.isinf(value)
        return self.of(value, np.where(overflows, np.inf, error))

    def summed(self, value: Array, inherited: Array, reach: Array, roundings: int) -> Self:
        """A sum of terms whose magnitudes sum to ``reach``; partial sums may be stored."""
        own: Any = 0.0
        if roundings > 0:
            own = gamma(roundings, self.arithmetic.u_acc)
            own = own + self.arithmetic.u_mid * (1.0 + own)
        if own < np.inf and _all_below(reach, self.largest):
            return self.trusted(value, inherited + own * reach)
        error = inherited + np.where(reach == 0, 0.0, own * reach)
        overflows = (reach >= self.largest) & np.isfinite(value)
        return self.of(value, np.where(overflows, np.inf, error))
