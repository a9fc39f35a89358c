"""How fast the quick profile finds each planted fault: examples and seconds to the first failure,
seconds to the small case.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from assay.properties.profiles import PROFILES
from assay.properties.results import Finding
from assay.zoo.catalogue import FAULTS
from assay.zoo.fault import Fault
from assay.zoo.measure import examine
from benchmarks.figure import Figure, Section, table

SEEDS = 5
# The time limit of a cell must not end a search on a busy machine.
QUICK = replace(PROFILES["quick"], cell_seconds=60.0)


@dataclass(frozen=True)
class _Sighting:
    """The first finding of one run: examples and seconds until it failed, seconds until it was
    small.
    """

    examples: int
    seconds: float
    shrink: float
    finding: Finding


def measure() -> Section:
    """Every fault, with several seeds."""
    rows = {fault: [_first(fault, seed) for seed in range(SEEDS)] for fault in FAULTS}
    every = [s for sightings in rows.values() for s in sightings]
    seen = [s for s in every if s is not None]
    typical = [_median(sightings, "seconds") for sightings in rows.values()]
    shrinks = [s.shrink for s in seen]
    figures = (
        Figure(
            "faults found with every seed",
            f"{sum(None not in s for s in rows.values())} of {len(rows)}",
        ),
        Figure("runs in which the fault was found", f"{len(seen)} of {len(every)}"),
        Figure("first failure, median over faults", f"{statistics.median(typical):.2f} s", "1 s"),
        Figure("first failure, slowest fault (median)", f"{max(typical):.1f} s"),
        Figure("made small, median", f"{statistics.median(shrinks):.2f} s"),
        Figure("made small, slowest", f"{max(shrinks):.1f} s", "5 s"),
    )
    method = (
        "The whole quick profile on each fault in the order of its plan, up to the first finding, "
        f"{SEEDS} seeds. Wall-clock seconds of one process.\n\n" + _details(rows)
    )
    return Section("Detection", method, figures)


def _first(fault: Fault, seed: int) -> _Sighting | None:
    """Examples and seconds to the first finding, all cells before it included."""
    examples, began = 0, time.monotonic()
    for cell in examine(fault.target, QUICK, seed=seed, isolated=fault.isolated):
        if cell.finding is not None:
            found = cell.finding
            spent = time.monotonic() - began - found.shrink_seconds
            return _Sighting(examples + found.examples, spent, found.shrink_seconds, found)
        examples += cell.examples
    return None


def _median(sightings: Sequence[_Sighting | None], field: str) -> float:
    values = [float(getattr(s, field)) for s in sightings if s is not None]
    return statistics.median(values) if values else float("inf")


def _details(rows: dict[Fault, list[_Sighting | None]]) -> str:
    lines = []
    for fault, sightings in rows.items():
        seen = [s for s in sightings if s is not None]
        first = seen[0].finding if seen else None
        lines.append(
            (
                fault.name,
                f"{len(seen)} of {len(sightings)}",
                f"{_median(sightings, 'examples'):.0f}",
                f"{_median(sightings, 'seconds'):.2f}",
                f"{_median(sightings, 'shrink'):.2f}",
                first.claim if first else "",
                first.summary.replace("|", "/") if first else "",
                first.hint if first else "",
            )
        )
    head = ("fault", "found", "examples", "s to failure", "s to small", "claim", "case", "hint")
    return table(head, lines)
