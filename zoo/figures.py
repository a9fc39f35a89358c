"""The figures that all runs over the zoo come to, beside what is aimed at."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from assay.zoo.detection import Detection, Trail
from assay.zoo.hunt import Clearance, Sighting


@dataclass(frozen=True)
class Figure:
    """One figure in words, and what is aimed at ("" where nothing is)."""

    what: str
    value: str
    aim: str = ""


def figures(detection: Detection) -> list[Figure]:
    """What it all comes to."""
    present = [t for t in detection.trails if t.outcome != "absent"]
    return [
        *(_caught(present) if present else []),
        *(_effort(present) if any(t.first for t in present) else []),
        *(_hints(present)),
        *(_controls(detection.clearances) if detection.clearances else []),
        Figure("CPU seconds of all runs", f"{sum(r.seconds for r in detection.records):.0f}"),
    ]


def _caught(trails: Sequence[Trail]) -> list[Figure]:
    hard = [t for t in trails if t.fault.hard]
    count = Counter(t.outcome for t in trails)
    runs = [h for t in trails for h in t.hunts]
    found = [
        Figure(
            "faults caught for the right reason, with every seed",
            _share(count["caught"], trails),
            "95 %",
        )
    ]
    if hard:
        caught = sum(t.outcome == "caught" for t in hard)
        found.append(Figure("hard ones among them", _share(caught, hard), "90 %"))
    at_once = sum(h.right is not None and h.right == h.first for h in runs)
    return [
        *found,
        Figure("missed with some seed", str(count["missed"])),
        Figure("found for another reason only", str(count["wrong reason"])),
        Figure(
            "runs in which the fault was caught", _share(sum(t.times_caught for t in trails), runs)
        ),
        Figure("runs in which that was the very first finding", _share(at_once, runs)),
    ]


def _effort(trails: Sequence[Trail]) -> list[Figure]:
    def medians(measure: Callable[[Sighting], float]) -> list[float]:
        return [m for t in trails if (m := t.median(measure)) is not None]

    seconds, shrinks = medians(lambda s: s.seconds), medians(lambda s: s.shrink)
    examples, sizes = medians(lambda s: s.examples), medians(lambda s: s.size)
    return [
        Figure(
            "examples to the first failure, median over the faults found",
            f"{statistics.median(examples):.0f}",
        ),
        Figure(
            "CPU seconds to the first failure, median", f"{statistics.median(seconds):.2f}", "1"
        ),
        Figure("the same, slowest fault", f"{max(seconds):.1f}"),
        Figure(
            "CPU seconds from there to the small case, median",
            f"{statistics.median(shrinks):.2f}",
            "5",
        ),
        Figure("the same, slowest fault", f"{max(shrinks):.1f}", "20"),
        Figure("largest dim of the small case, median", f"{statistics.median(sizes):.0f}"),
    ]


def _hints(trails: Sequence[Trail]) -> list[Figure]:
    hints = [hint for t in trails for hint in t.hints]
    if not hints:
        return []
    return [
        Figure(
            "blame hints that name the fault, where it has a name",
            _share(sum(hints), hints),
            "70 %",
        )
    ]


def _controls(clearances: Sequence[Clearance]) -> list[Figure]:
    present = [c for c in clearances if not c.absent]
    accused = {c.control.name for c in present if c.alarms}
    names = {c.control.name for c in present}
    cases = sum(c.examples for c in present)
    return [
        Figure("controls accused", f"{len(accused)} of {len(names)}", "0"),
        Figure(
            "false alarms", f"{sum(len(c.alarms) for c in present)} in {cases} cases", "0 in 10000"
        ),
        Figure(
            "greatest error over bound in a control",
            f"{max((c.worst for c in present), default=0.0):.2f}",
            "1",
        ),
    ]


def _share(part: int, of: Sequence[object]) -> str:
    return f"{part} of {len(of)} ({part / len(of):.0%})"
