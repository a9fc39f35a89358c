"""The oracle tested: the spec run on Arb balls must enclose what the campaign took for exact."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from assay.properties.context import Context

RATE = 64
"""One example in so many is judged again."""

LARGEST = 1 << 11
"""Most input elements of an example that is judged again: a ball costs about a microsecond an
operation.
"""

PRECISION = 160
"""Bits of the balls: far beyond extended precision, whatever cancels."""

SHARE = 2.0**-10
"""What the reference's own error may take of a bound: the slack that the bounds are derived with.
"""

SMALLEST = 2.0**-1060
"""Where float64 underflows, the reference may be off by this."""


def affordable(inputs: Mapping[str, np.ndarray]) -> bool:
    """Finite inputs (a mask may hold -inf), few enough."""
    numbers = [a.astype(np.float64) for a in inputs.values()]
    return sum(a.size for a in numbers) <= LARGEST and not any(
        np.any(np.isnan(a) | np.isposinf(a)) for a in numbers
    )


def disagreement(
    ctx: Context,
    inputs: Mapping[str, np.ndarray],
    attributes: Mapping[str, Any],
    want: Mapping[str, np.ndarray],
    bound: Mapping[str, np.ndarray],
) -> str:
    """In words, where the reference ``want`` is off from the enclosure by more than its share of
    ``bound``; "" if nowhere.
    """
    import flint

    before, flint.ctx.prec = flint.ctx.prec, PRECISION
    try:
        balls = ctx.op.forward({n: _balls(n, a, ctx) for n, a in inputs.items()}, attributes)
        for name, exact in balls.items():
            for index in np.ndindex(exact.shape):
                ball, got = _ball(exact[index]), want[name][index]
                slack = SHARE * float(bound[name][index]) + SMALLEST
                if np.isfinite(slack) and not abs(_exact(got) - ball) <= flint.arb(slack):
                    place = ",".join(map(str, index))
                    return f"{name}[{place}]: reference {got!r}, enclosure {ball}"
    finally:
        flint.ctx.prec = before
    return ""


def _balls(name: str, array: np.ndarray, ctx: Context) -> np.ndarray:
    """Exact balls of an input's values. Masks stay: they select, or add exact numbers."""
    import flint

    if name not in ctx.op.differentiable:
        return array if array.dtype.kind in "biu" else array.astype(np.float64)
    return np.asarray(np.frompyfunc(flint.arb, 1, 1)(array.astype(np.float64)), dtype=object)


def _ball(value: Any) -> Any:
    """A result as a ball: where nothing is summed it is a number of numpy's."""
    import flint

    return value if isinstance(value, flint.arb) else flint.arb(float(value))


def _exact(value: Any) -> Any:
    """A float64 or extended-precision number as an exact ball."""
    import flint

    high = float(value)
    return flint.arb(high) + flint.arb(float(value - high))
