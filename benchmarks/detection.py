"""How fast the quick profile finds each planted fault: examples and CPU seconds to the first
failure, and to the small case.
"""

from __future__ import annotations

import os

from assay.cli.zoo_summary import FAULT_COLUMNS, fault_row
from assay.properties.profiles import PROFILES
from assay.zoo.catalogue import FAULTS
from assay.zoo.detection import Detection, Plan
from assay.zoo.figures import figures
from assay.zoo.spread import spread
from benchmarks.figure import Figure, Section, table

SEEDS = 5


def measure() -> Section:
    """Every fault, with several seeds."""
    plan = Plan(FAULTS, (), PROFILES["quick"], tuple(range(SEEDS)))
    records = spread(plan.tasks(), os.cpu_count() or 1)
    detection = Detection(plan, tuple(records))
    method = (
        f"`assay zoo --faults '*' --repeat {SEEDS}`: the quick profile on each fault in the order "
        "of its plan, until a claim that is about the fault finds it.\n\n"
        + table(FAULT_COLUMNS, [fault_row(trail) for trail in detection.trails])
    )
    found = tuple(Figure(f.what, f.value, f.aim) for f in figures(detection))
    return Section("Detection", method, found)
