"""Values that carry a bound on their error, and the errors that one operation adds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from assay.spec.arithmetic import FORMATS, Arithmetic, gamma
from assay.spec.scalars import Array


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
        if not np.issubdtype(array.dtype, np.floating):
            return self.of(array)
        with np.errstate(all="ignore"):
            size = np.abs(array).astype(np.float64)
            short = (size < 2.0**8) & (np.floor(size * 256.0) == size * 256.0)
            # Below the normal numbers it is rounded as an underflow is.
            low = np.where(size < self.smallest, self.arithmetic.tau_acc, 0.0)
            error = np.where(short | ~np.isfinite(size), 0.0, self.arithmetic.u_acc * size + low)
        return self.of(array, error)

    def moved(self, move: Callable[[Array], Array]) -> Self:
        """Values and errors moved alike."""
        return self.of(move(self.value), move(self.error))

    @property
    def unit(self) -> float:
        """Unit roundoff r of one operation, whose result may be stored: (1 + u) (1 + u') - 1."""
        return self.arithmetic.u_acc + self.arithmetic.u_mid * (1.0 + self.arithmetic.u_acc)

    @property
    def eta(self) -> float:
        """Relative error of one function such as exp, whose result may be stored."""
        return self.arithmetic.eta + self.arithmetic.u_mid * (1.0 + self.arithmetic.eta)

    @property
    def largest(self) -> float:
        """Beyond this a result overflows."""
        formats = (self.arithmetic.accumulate, self.arithmetic.intermediate)
        return min(FORMATS[name].max for name in formats)

    @property
    def smallest(self) -> float:
        """Below this a result is subnormal."""
        formats = (self.arithmetic.accumulate, self.arithmetic.intermediate)
        return max(FORMATS[name].tiny for name in formats)

    @property
    def reach(self) -> Array:
        """Largest magnitude that a computed value may have."""
        return np.abs(self.value).astype(np.float64) + self.error

    @property
    def exact(self) -> Array:
        """Where there is no error."""
        return self.error == 0

    def computed(
        self, value: Array, inherited: Array, own: Array | float, *, tau: Array | bool
    ) -> Self:
        """The result of one operation: ``own`` roundings relative to its largest magnitude.

        tau  where the operation may underflow, also below the smallest number of this float64
        """
        inherited = np.where(np.isnan(inherited), np.inf, inherited)
        size = np.abs(value).astype(np.float64) + inherited
        error = inherited + own * size + np.where(tau, self.arithmetic.tau_acc, 0.0)
        overflows = (size + error >= self.largest) & ~np.isinf(value)
        return self.of(value, np.where(overflows, np.inf, error))

    def summed(self, value: Array, inherited: Array, reach: Array, roundings: int) -> Self:
        """A sum of terms whose magnitudes sum to ``reach``; partial sums may be stored."""
        own: Any = 0.0
        if roundings > 0:
            own = gamma(roundings, self.arithmetic.u_acc)
            own = own + self.arithmetic.u_mid * (1.0 + own)
        error = inherited + np.where(reach == 0, 0.0, own * reach)
        overflows = (reach >= self.largest) & np.isfinite(value)
        return self.of(value, np.where(overflows, np.inf, error))
