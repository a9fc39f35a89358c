"""How long ``assay prove`` takes: everything from nothing, again, and by other solvers as well."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from benchmarks.figure import Figure, Section, table


def measure() -> Section:
    """Every obligation, on as many processes as there are cores."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        alone, again = _seconds(folder), _seconds(folder)
        outcomes = json.loads((folder / "outcomes.json").read_text())["outcomes"]
        crossed = _seconds(folder, "--cross-check", "--no-cache")
    figures = (
        Figure("`assay prove`", f"{alone:.0f} s", "120 s"),
        Figure("`assay prove` again", f"{again:.1f} s"),
        Figure("`assay prove --cross-check --no-cache`", f"{crossed:.0f} s"),
    )
    counts: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    for outcome in outcomes:
        counts[outcome["method"]] += 1
        seconds[outcome["method"]] += outcome["seconds"]
    rows = [(m, str(counts[m]), f"{seconds[m]:.0f}") for m, _ in seconds.most_common()]
    method = f"{len(outcomes)} obligations, of which\n\n" + table(
        ("method", "obligations", "s"), rows
    )
    return Section("Proofs", method, figures)


def _seconds(folder: Path, *options: str) -> float:
    command = [sys.executable, "-m", "assay", "prove", "--directory", str(folder), *options]
    command += ["--timeout", "120", "--json", str(folder / "outcomes.json")]
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - began
