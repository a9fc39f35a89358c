"""False alarms on sound backends and controls, over at least 10,000 cases."""

from __future__ import annotations

from dataclasses import replace

from assay.properties.profiles import PROFILES
from assay.zoo.catalogue import CONTROLS
from assay.zoo.measure import examine
from benchmarks.figure import Figure, Section

SOUND = ("numpy.float32", "torch.manual")
LEAST = 10_000
# A few examples of each property: there are many controls.
PROFILE = replace(PROFILES["quick"], examples=4, cell_seconds=60.0, breadth="all")


def measure() -> Section:
    """All properties in all dtypes, round after round until there are enough cases."""
    targets = [*SOUND, *(c.target for c in CONTROLS)]
    cases, alarms, worst, seed = 0, [], ("", 0.0), 0
    clean = set(targets)
    while cases < LEAST:
        for target in targets:
            for cell in examine(target, PROFILE, seed=1000 + seed):
                cases += cell.examples
                if cell.finding is not None:
                    alarms.append(f"{cell.key}: {cell.finding.message}")
                    clean.discard(target)
                elif cell.worst > worst[1]:
                    worst = (str(cell.key), cell.worst)
        seed += 1
    figures = (
        Figure("false alarms", f"{len(alarms)} in {cases} cases", "0 in 10000"),
        Figure("backends without one", f"{len(clean)} of {len(targets)}", "all"),
        Figure("greatest error over bound", f"{worst[1]:.2f} ({worst[0]})", "at most 1"),
        *(Figure("alarm", alarm) for alarm in alarms),
    )
    names = " and ".join(f"`{name}`" for name in SOUND)
    method = f"All properties in all dtypes of {names}, and of the zoo's {len(CONTROLS)} controls."
    return Section("False alarms", method, figures)
