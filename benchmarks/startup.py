"""How long ``assay --help`` and ``import assay`` take."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time

from benchmarks.figure import Figure, Section

REPEATS = 11
COMMANDS = {
    "python -m assay --help": ("-m", "assay", "--help"),
    "python -c 'import assay'": ("-c", "import assay"),
    "python -c pass, for comparison": ("-c", "pass"),
}


def measure() -> Section:
    """New interpreters, files in the page cache; wall and CPU time."""
    figures = []
    for name, arguments in COMMANDS.items():
        runs = [_once(arguments) for _ in range(REPEATS)]
        wall, cpu = (statistics.median(column) for column in zip(*runs, strict=True))
        aim = "" if "pass" in name else "0.3 s"
        figures.append(Figure(f"`{name}`", f"{wall:.2f} s ({cpu:.2f} s of CPU)", aim))
    return Section("Start-up", f"Median of {REPEATS} new interpreters.", tuple(figures))


def _once(arguments: tuple[str, ...]) -> tuple[float, float]:
    before, began = os.times(), time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    after, wall = os.times(), time.perf_counter() - began
    cpu = after.children_user + after.children_system
    return wall, cpu - before.children_user - before.children_system
