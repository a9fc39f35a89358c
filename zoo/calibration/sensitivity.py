"""How small an error each rule still sees, in a kernel that is perfect but for this error."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from assay.impl.contract import Contract
from assay.properties.context import NUMPY_DTYPES, Context
from assay.spec.ops import op as catalogue
from assay.zoo.calibration.rules import RULES, Observation, Rule
from assay.zoo.calibration.samples import Sample, Source, samples

Extent = Literal["element", "row", "head", "bias"]
EXTENTS: tuple[Extent, ...] = get_args(Extent)
"""Where the error is: one element, one row (the last axis), one head (one index of the second of
four axes or more: a head of attention, a channel of an image), each times 1 + e; or e times the
root mean square of the output, added to all of it.
"""

FINEST, COARSEST = -60, 10
"""Powers of two between which the smallest error that is seen is looked for."""

PARTS = 4
"""Steps to a power of two."""

PERFECT = Contract(
    "perfect",
    dtypes=("float32", "bfloat16", "float16", "float64"),
    grouped_heads=True,
    value_width=True,
)
"""Promises nothing unusual: sums in float32 or better, in any order."""


@dataclass(frozen=True)
class Threshold:
    """What one rule sees of one op in one dtype.

    errors  for each case the smallest relative error that is an alarm, infinity where none is
    alarms  cases in which the perfect kernel is an alarm; they count in no other figure
    """

    op: str
    dtype: str
    source: Source
    extent: Extent
    rule: str
    errors: tuple[float, ...]
    alarms: int

    @property
    def typical(self) -> float:
        """Median over the cases: seen in half of them."""
        return float(np.median(self.errors)) if self.errors else math.nan

    @property
    def least(self) -> float:
        """Seen in at least one of the cases, as a test that runs all of them sees it."""
        return min(self.errors, default=math.nan)


def thresholds(
    op: str, dtype: str, source: Source, count: int, seed: int, rules: Sequence[Rule] = RULES
) -> Iterator[Threshold]:
    """One for each rule and extent that the op's output has."""
    ctx = Context(catalogue(op), PERFECT, dtype, PERFECT.modes[0], None, gradients=True)
    chosen = [s for s in samples(ctx, source, count, seed) if s.right]
    for extent in EXTENTS:
        weighed = [(s.right[0][1], weights(s, extent)) for s in chosen]
        placed = [(o, w) for o, w in weighed if w is not None]
        if not placed:
            continue
        for rule in rules:
            quiet = [(o, w) for o, w in placed if not rule.alarms(o)]
            errors = tuple(smallest(rule, o, w) for o, w in quiet)
            alarms = len(placed) - len(quiet)
            yield Threshold(op, dtype, source, extent, rule.name, errors, alarms)


def weights(sample: Sample, extent: Extent) -> np.ndarray | None:
    """What e is multiplied by at each element of the first output; None where there is no such part
    or nothing but zeros in it.
    """
    exact = np.asarray(sample.right[0][1].exact, dtype=np.float64)
    usable = np.isfinite(exact) & (exact != 0)
    if not usable.any() or (extent == "head" and exact.ndim < 4):
        return None
    if extent == "bias":
        return np.full(exact.shape, math.sqrt(float(np.mean(exact[usable] ** 2))))
    rng = sample.case.rng(f"calibration {extent}")
    places = np.argwhere(usable)
    place = tuple(places[rng.integers(len(places))])
    parts = {"element": place, "row": place[:-1], "head": (slice(None), *place[1:2])}
    chosen = np.zeros(exact.shape, dtype=bool)
    chosen[parts[extent]] = True
    return np.where(chosen & usable, exact, 0.0)


def smallest(rule: Rule, right: Observation, weight: np.ndarray) -> float:
    """The smallest e, to a quarter of a power of two, for which exact + e weight, rounded to the
    dtype, is an alarm; by bisection, and infinity where even the coarsest is none.
    """
    low, high = FINEST * PARTS, COARSEST * PARTS
    if not _seen(rule, right, weight, high):
        return math.inf
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _seen(rule, right, weight, middle) else (middle, high)
    return float(2.0 ** (high / PARTS))


def _seen(rule: Rule, right: Observation, weight: np.ndarray, step: int) -> bool:
    with np.errstate(all="ignore"):
        wrong = (right.exact + 2.0 ** (step / PARTS) * weight).astype(NUMPY_DTYPES[right.dtype])
    return rule.alarms(replace(right, got=wrong))
