"""The one command: run the benchmarks, print their figures, and keep them in results.md."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.machine import describe, today

RESULTS = Path(__file__).parent / "results.md"
BENCHMARKS: dict[str, tuple[str, str]] = {
    "startup": ("benchmarks.startup:measure", "seconds"),
    "spec": ("benchmarks.spec_speed:measure", "a minute"),
    "throughput": ("benchmarks.throughput:measure", "two minutes"),
    "detection": ("benchmarks.detection:measure", "five minutes"),
    "growth": ("benchmarks.growth:measure", "two minutes"),
    "proofs": ("benchmarks.proofs:measure", "ten minutes"),
    "mutations": ("benchmarks.mutations:measure", "ten minutes"),
    "alarms": ("benchmarks.alarms:measure", "three minutes"),
    "quick": ("benchmarks.campaigns:quick", "a minute"),
    "ci": ("benchmarks.campaigns:ci", "ten minutes"),
}
HEAD = """# Measured

Written by `python -m benchmarks`; do not edit. Each section says when and on what it was taken.
"""
ONE = """
import importlib, sys
module, _, name = sys.argv[1].partition(":")
section = getattr(importlib.import_module(module), name)()
print(section.title); print(section.markdown())
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run what is selected, each in a process of its own, so that none inherits the memory of
    another.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    takes = ", ".join(f"{name} ({time})" for name, (_, time) in BENCHMARKS.items())
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, metavar="NAME", help=takes)
    chosen = parser.parse_args(argv).only or list(BENCHMARKS)
    machine = describe()
    print(machine)
    status = 0
    for name in chosen:
        print(f"\n== {name} ({BENCHMARKS[name][1]})", flush=True)
        load = f"load {os.getloadavg()[0]:.1f} before it began"
        done = subprocess.run(
            [sys.executable, "-c", ONE, BENCHMARKS[name][0]],
            stdout=subprocess.PIPE,
            text=True,
            check=False,
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )
        if done.returncode:
            print(f"{name} ended with status {done.returncode}", file=sys.stderr)
            status = 1
            continue
        title, _, body = done.stdout.partition("\n")
        print(body)
        _keep(title, f"{today()}, {machine}; {load}\n\n{body.strip()}\n")
    return status


def _keep(title: str, body: str) -> None:
    """Replace one section of results.md, or add it."""
    text = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else HEAD
    parts = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    sections = dict(part.split("\n\n", 1) for part in parts)
    sections[title] = body
    joined = "\n".join(f"## {name}\n\n{content.strip()}\n" for name, content in sections.items())
    RESULTS.write_text(f"{HEAD}\n{joined}", encoding="utf-8")
