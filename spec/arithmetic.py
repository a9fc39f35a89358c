"""The arithmetic that an error bound assumes: formats, roundoffs, gamma_n = n u / (1 - n u)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Shaped


@dataclass(frozen=True)
class Format:
    """A binary floating-point format: ``precision`` significand bits, exponents ``emin..emax``.

    >>> FORMATS["float16"].max
    65504.0
    >>> FORMATS["bfloat16"].unit
    0.00390625
    """

    name: str
    precision: int
    emin: int
    emax: int

    @property
    def unit(self) -> float:
        """Unit roundoff u = 2^-p: |fl(x) - x| <= u |x| when nothing under- or overflows."""
        return 2.0**-self.precision

    @property
    def tiny(self) -> float:
        """Smallest normal number."""
        return 2.0**self.emin

    @property
    def subnormal(self) -> float:
        """Smallest subnormal number (rounds to 0 in Python below float64's own)."""
        return 2.0 ** (self.emin - self.precision + 1)

    @property
    def max(self) -> float:
        """Largest finite number."""
        return (2.0 - 2.0 ** (1 - self.precision)) * 2.0**self.emax


FORMATS: dict[str, Format] = {
    f.name: f
    for f in (
        Format("float16", 11, -14, 15),
        Format("bfloat16", 8, -126, 127),
        Format("tfloat32", 11, -126, 127),
        Format("float32", 24, -126, 127),
        Format("float64", 53, -1022, 1023),
    )
}


@dataclass(frozen=True)
class Arithmetic:
    """What a backend says of its rounding, as far as an error bound needs it.

    storage       format of inputs, outputs and gradients
    accumulate    format of products and running sums
    intermediate  format in which scores and weights are kept between stages
    exp_ulps      error of one exponential, in units in the last place of ``accumulate``
    block         keys handled at a time by an online (flash) form; 0: the whole row at once
    flush         subnormals may be flushed to zero
    exp2          exponentials are taken to base 2 after multiplying scores by log2(e)
    normwise      convolutions may transform their operands first, whose error norms alone bound

    >>> Arithmetic("bfloat16", accumulate="float32").u_acc == 2.0**-24
    True
    """

    storage: str = "float32"
    accumulate: str = "float32"
    intermediate: str = "float32"
    exp_ulps: float = 2.0
    block: int = 0
    flush: bool = False
    exp2: bool = False
    normwise: bool = False

    def __post_init__(self) -> None:
        for field in ("storage", "accumulate", "intermediate"):
            value = getattr(self, field)
            if value not in FORMATS:
                raise ValueError(
                    f"{field}={value!r} is not a known format; valid: {sorted(FORMATS)}"
                )
        if self.exp_ulps < 0 or self.block < 0:
            raise ValueError(
                f"exp_ulps={self.exp_ulps!r} and block={self.block!r} must not be negative"
            )

    @cached_property
    def u_store(self) -> float:
        """Unit roundoff of the stored result."""
        return FORMATS[self.storage].unit

    @cached_property
    def u_acc(self) -> float:
        """Unit roundoff of one operation."""
        return FORMATS[self.accumulate].unit

    @cached_property
    def u_mid(self) -> float:
        """Unit roundoff of a stored intermediate; 0 when it is kept in ``accumulate``."""
        return 0.0 if self.intermediate == self.accumulate else FORMATS[self.intermediate].unit

    @cached_property
    def eta(self) -> float:
        """Relative error of one exponential: one ulp is at most 2 u."""
        return 2.0 * self.u_acc * self.exp_ulps

    @cached_property
    def unit(self) -> float:
        """Unit roundoff of one operation whose result may be stored: (1 + u) (1 + u') - 1."""
        return self.u_acc + self.u_mid * (1.0 + self.u_acc)

    @cached_property
    def largest(self) -> float:
        """Beyond this an intermediate result overflows."""
        return min(FORMATS[name].max for name in (self.accumulate, self.intermediate))

    @cached_property
    def smallest(self) -> float:
        """Below this an intermediate result is subnormal."""
        return max(FORMATS[name].tiny for name in (self.accumulate, self.intermediate))

    def _absolute(self, name: str) -> float:
        fmt = FORMATS[name]
        return fmt.tiny if self.flush else fmt.subnormal

    @cached_property
    def tau_acc(self) -> float:
        """Absolute error of one operation whose result underflows."""
        mid = 0.0 if self.intermediate == self.accumulate else self._absolute(self.intermediate)
        return max(self._absolute(self.accumulate), mid)

    @cached_property
    def tau_store(self) -> float:
        """Absolute error of storing a result that underflows."""
        return self._absolute(self.storage)

    def blocks(self, keys: int) -> int:
        """Number of key blocks that an online form of ``keys`` keys passes through."""
        return -(-keys // self.block) if self.block and keys else 1


def gamma(n: float | Shaped[np.ndarray, "..."], u: float) -> float | Shaped[np.ndarray, "..."]:
    """Bound (1 + u)^n - 1 <= n u / (1 - n u) on n accumulated roundings, for any order of them.

    Domain n u < 1; beyond it nothing is promised and the bound is infinite.
    Source: N. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., lemma 3.1.

    >>> float(gamma(2, 0.25))
    1.0
    >>> float(gamma(4, 0.25))
    inf
    """
    if not isinstance(n, float | np.ndarray):
        return n * u / (1.0 - n * u) if n * u < 1.0 else np.inf
    product = np.asarray(n, dtype=np.float64) * u
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(product < 1.0, product / (1.0 - product), np.inf)
