"""A calibration: what is to be measured, and what the records of it come to."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np

from assay.properties.profiles import Profile
from assay.zoo.calibration.alarms import AlarmCount, false_alarms
from assay.zoo.calibration.comparison import Caught, compare
from assay.zoo.calibration.samples import SOURCES, Source
from assay.zoo.calibration.sensitivity import Extent, Threshold, thresholds
from assay.zoo.fault import Control, Fault

DTYPES = ("float32", "bfloat16", "float16", "float64")

Record = Threshold | AlarmCount | Caught
Records = tuple[Record, ...]
Task = Callable[[], Records]
Key = tuple[str, ...]
"""Names one task: what is measured of which fault, control, or op, dtype and source."""


def key_of(record: Record) -> Key:
    """The task that a record comes from."""
    if isinstance(record, Caught):
        return ("fault", record.fault)
    if isinstance(record, AlarmCount):
        return ("control", record.control)
    return ("errors", record.op, record.dtype, record.source)


@dataclass(frozen=True)
class Plan:
    """What to measure.

    cases  for each op, dtype and source: of sensitivity, and of each control for values and for
           gradients
    bisects  whether to look for the smallest errors that are seen
    """

    ops: tuple[str, ...]
    dtypes: tuple[str, ...]
    faults: tuple[Fault, ...]
    controls: tuple[Control, ...]
    profile: Profile
    cases: int
    seed: int
    bisects: bool = True

    def tasks(self, done: Collection[Key] = ()) -> list[Task]:
        """The comparison of faults, then false alarms, then sensitivity; without what is done."""
        return [task for key, task in self._all() if key not in done]

    def _all(self) -> Iterator[tuple[Key, Task]]:
        for fault in self.faults:
            yield ("fault", fault.name), partial(_compared, fault, self.profile, self.seed)
        for control in self.controls:
            yield ("control", control.name), partial(_counted, control, self)
        for op, dtype, source in product(self.ops, self.dtypes, SOURCES) if self.bisects else ():
            task = partial(_bisected, op, dtype, source, self.cases, self.seed)
            yield ("errors", op, dtype, source), task


def _compared(fault: Fault, profile: Profile, seed: int) -> tuple[Caught, ...]:
    return (compare(fault, profile, seed),)


def _counted(control: Control, plan: Plan) -> tuple[AlarmCount, ...]:
    return tuple(false_alarms(control, plan.ops, plan.dtypes, plan.cases, plan.seed))


def _bisected(op: str, dtype: str, source: Source, count: int, seed: int) -> tuple[Threshold, ...]:
    return tuple(thresholds(op, dtype, source, count, seed))


@dataclass(frozen=True)
class Calibration:
    """All that was measured. ``stopped`` says why that is not all that was planned, or is ""."""

    plan: Plan
    caught: tuple[Caught, ...] = ()
    counts: tuple[AlarmCount, ...] = ()
    thresholds: tuple[Threshold, ...] = ()
    stopped: str = ""

    @classmethod
    def of(cls, plan: Plan, records: Sequence[Record], stopped: str = "") -> Calibration:
        """The records sorted by kind, in the order of the plan: they come in as tasks end."""
        place = {key: i for i, (key, _) in enumerate(plan._all())}
        ordered = sorted(records, key=lambda r: place.get(key_of(r), len(place)))
        return cls(
            plan,
            tuple(r for r in ordered if isinstance(r, Caught)),
            tuple(r for r in ordered if isinstance(r, AlarmCount)),
            tuple(r for r in ordered if isinstance(r, Threshold)),
            stopped,
        )

    def found(self, rule: str, *, hard: bool = False) -> tuple[int, int]:
        """Faults that a rule catches, of how many; where it compares nothing it catches nothing."""
        asked = [c for c in self.caught if c.hard or not hard]
        return sum(c.rules.get(rule, False) for c in asked), len(asked)

    def hunted(self, *, hard: bool = False) -> tuple[int, int]:
        """The same faults, by a campaign."""
        asked = [c for c in self.caught if c.hard or not hard]
        return sum(c.campaign == "caught" for c in asked), len(asked)

    def alarms(self, rule: str, source: Source, dtype: str | None = None) -> tuple[int, int]:
        """False alarms of a rule, in how many cases."""
        own = [c for c in self.counts if c.source == source and dtype in (None, c.dtype)]
        return (
            sum(c.alarms.get(rule, 0) for c in own),
            sum(c.cases.get(rule, 0) for c in own),
        )

    def errors(self, rule: str, dtype: str, source: Source, extent: Extent) -> list[float]:
        """For each op the error that the rule sees in half of the cases."""
        return [
            t.typical
            for t in self.thresholds
            if (t.rule, t.dtype, t.source, t.extent) == (rule, dtype, source, extent) and t.errors
        ]

    def typical(self, rule: str, dtype: str, source: Source, extent: Extent) -> float:
        """The median of these over ops; NaN where there is none."""
        errors = self.errors(rule, dtype, source, extent)
        return float(np.median(errors)) if errors else float("nan")
