"""How well assay detects: all runs over the zoo, and what they come to."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from assay.properties.profiles import Profile
from assay.zoo.fault import Control, Fault
from assay.zoo.hunt import (
    Clearance,
    Hunt,
    Outcome,
    Record,
    Sighting,
    Sweep,
    Task,
    clear,
    hunt,
    sweep,
)


@dataclass(frozen=True)
class Plan:
    """What to run: each fault and control once for each seed; and, where ``sweeps``, all claims on
    each fault with the first seed.
    """

    faults: tuple[Fault, ...]
    controls: tuple[Control, ...]
    profile: Profile
    seeds: tuple[int, ...]
    sweeps: bool = False

    def tasks(self) -> list[Task]:
        """One seed after another, so that what was done when it is stopped is about every fault."""
        tasks: list[Task] = []
        for seed in self.seeds:
            tasks += [partial(hunt, fault, self.profile, seed) for fault in self.faults]
            tasks += [partial(clear, control, self.profile, seed) for control in self.controls]
        if self.sweeps:
            tasks += [partial(sweep, fault, self.profile, self.seeds[0]) for fault in self.faults]
        return tasks


@dataclass(frozen=True)
class Trail:
    """All runs over one fault. Times and counts are medians over those that found something."""

    fault: Fault
    hunts: tuple[Hunt, ...]

    @property
    def outcome(self) -> Outcome:
        """Caught: with every seed. Else the worst that happened."""
        outcomes = {h.outcome for h in self.hunts}
        order: tuple[Outcome, ...] = ("absent", "missed", "wrong reason", "caught")
        return next(word for word in order if word in outcomes)

    @property
    def times_caught(self) -> int:
        """Runs in which it was found for the right reason."""
        return sum(h.outcome == "caught" for h in self.hunts)

    @property
    def first(self) -> Sighting | None:
        """The first finding of the first run that has one."""
        return next((h.first for h in self.hunts if h.first is not None), None)

    @property
    def right(self) -> Sighting | None:
        """The same for the right reason."""
        return next((h.right for h in self.hunts if h.right is not None), None)

    @property
    def hints(self) -> tuple[bool, ...]:
        """For each run that could say it, whether the blame hint names the fault."""
        return tuple(h.hinted for h in self.hunts if h.hinted is not None)

    def median(self, measure: Callable[[Sighting], float]) -> float | None:
        """Over the first findings."""
        values = [measure(h.first) for h in self.hunts if h.first is not None]
        return statistics.median(values) if values else None


@dataclass(frozen=True)
class Detection:
    """The records of ``plan``, all of them unless it was stopped."""

    plan: Plan
    records: tuple[Record, ...]
    stopped: str = ""

    @property
    def hunts(self) -> list[Hunt]:
        """Runs over faults, in the plan's order."""
        order = {fault.name: index for index, fault in enumerate(self.plan.faults)}
        found = [r for r in self.records if isinstance(r, Hunt)]
        return sorted(found, key=lambda h: (order[h.fault.name], h.seed))

    @property
    def clearances(self) -> list[Clearance]:
        """Runs over controls."""
        order = {control.name: index for index, control in enumerate(self.plan.controls)}
        found = [r for r in self.records if isinstance(r, Clearance)]
        return sorted(found, key=lambda c: (order[c.control.name], c.seed))

    @property
    def sweeps(self) -> list[Sweep]:
        """All claims on each fault, where they were asked."""
        order = {fault.name: index for index, fault in enumerate(self.plan.faults)}
        found = [r for r in self.records if isinstance(r, Sweep)]
        return sorted(found, key=lambda s: order[s.fault.name])

    @property
    def trails(self) -> list[Trail]:
        """The hunts by fault; faults that no run has reached are left out."""
        by_name: dict[str, list[Hunt]] = {}
        for run in self.hunts:
            by_name.setdefault(run.fault.name, []).append(run)
        return [Trail(runs[0].fault, tuple(runs)) for runs in by_name.values()]

    @property
    def troubles(self) -> list[str]:
        """Cells without a verdict, each named once."""
        runs: list[Hunt | Clearance] = [*self.hunts, *self.clearances]
        return list(dict.fromkeys(text for run in runs for text in run.troubles))

    @property
    def clean(self) -> bool:
        """Every fault was caught with every seed, no control was accused, no cell lacks a
        verdict.
        """
        caught = all(t.outcome in ("caught", "absent") for t in self.trails)
        return caught and not self.troubles and not any(c.alarms for c in self.clearances)
