"""False alarms on sound backends and controls, over at least 10,000 cases."""

from __future__ import annotations

from dataclasses import replace

from assay.properties.profiles import PROFILES
from assay.zoo.catalogue import CONTROLS
from assay.zoo.measure import examine
from benchmarks.figure import Figure, Section

SOUND = ("numpy.float32", "torch.manual")
LEAST = 10_000
PROFILE = replace(PROFILES["quick"], cell_seconds=60.0, thorough=True)


def measure() -> Section:
    """All properties in all dtypes, round after round until there are enough cases."""
    targets = [*SOUND, *(c.target for c in CONTROLS)]
    cases, alarms, worst, seed = 0, [], ("", 0.0), 0
    while cases < LEAST:
        for target in targets:
            for cell in examine(target, PROFILE, seed=1000 + seed):
                cases += cell.examples
                if cell.finding is not None:
                    alarms.append(f"{cell.key}: {cell.finding.message}")
                elif cell.worst > worst[1]:
                    worst = (str(cell.key), cell.worst)
        seed += 1
    figures = (
        Figure("false alarms", f"{len(alarms)} in {cases} cases", "0 in 10000"),
        Figure("greatest error over bound", f"{worst[1]:.2f} ({worst[0]})", "at most 1"),
        *(Figure("alarm", alarm) for alarm in alarms),
    )
    names = ", ".join(f"`{name}`" for name in (*SOUND, *(c.name for c in CONTROLS)))
    return Section("False alarms", f"All properties in all dtypes of {names}.", figures)
