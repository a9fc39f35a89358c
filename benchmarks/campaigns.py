"""Wall time, CPU time and memory of whole campaigns over the built-in backends, run as a user runs
them.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from assay.impl.registry import BACKENDS
from assay.properties.campaign import Options, run_campaign
from assay.zoo.cpu import cpu_seconds
from benchmarks.figure import Figure, Section, megabytes
from benchmarks.processes import Watch, peak_bytes


def quick() -> Section:
    """The quick profile."""
    return _campaign("quick", "60 s")


def ci() -> Section:
    """The ci profile."""
    return _campaign("ci", "600 s")


def _campaign(profile: str, aim: str) -> Section:
    targets = tuple(b.name for b in BACKENDS)
    cpu, began = cpu_seconds(), time.monotonic()
    with tempfile.TemporaryDirectory() as folder, Watch() as watch:
        result = run_campaign(
            Options(targets, profile=profile, seed=0, directory=Path(folder) / "assay")
        )
        wall = time.monotonic() - began
        spent = cpu_seconds() - cpu
    others = [size for pid, size in watch.peaks.items() if pid != os.getpid()]
    figures = (
        Figure("wall time", f"{wall:.0f} s", aim),
        Figure("CPU time", f"{spent:.0f} s"),
        Figure("cells with a verdict", f"{len(result.cells)} of {result.planned}"),
        Figure("examples", str(sum(cell.examples for cell in result.cells))),
        Figure("findings", str(len(result.findings))),
        Figure("peak memory of the parent", megabytes(peak_bytes(os.getpid())), "1500 MB"),
        Figure("peak memory of the largest other process", megabytes(max(others, default=0))),
        Figure("most memory of all processes together", megabytes(watch.most_together)),
    )
    method = f"The {profile} profile over {', '.join(targets)}, in workers, as a user runs it."
    return Section(f"Campaign: {profile}", method, figures)
