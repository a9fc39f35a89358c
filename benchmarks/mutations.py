"""How many one-line mutations of the spec the proofs alone notice."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from assay.proofs.mutations import MUTATIONS
from assay.proofs.sensitivity import Notice, notice
from benchmarks.figure import Figure, Section, table


def measure() -> Section:
    """Every mutation, on as many copies at a time as there are cores."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        notices = list(pool.map(notice, MUTATIONS))
    covered = [n for n in notices if n.mutation.claims]
    others = [n for n in notices if not n.mutation.claims]
    seen = sum(n.noticed for n in covered)
    figures = (
        Figure(
            "mutations that make a claim with proofs false: noticed",
            f"{seen} of {len(covered)} ({seen / len(covered):.0%})",
            "80%",
        ),
        Figure(
            "of these refuted with a counterexample",
            str(sum(n.said.startswith("refuted") for n in covered)),
        ),
        Figure("other mutations: noticed", f"{sum(n.noticed for n in others)} of {len(others)}"),
        Figure("slowest", f"{max(n.seconds for n in notices):.0f} s"),
    )
    method = (
        "Each mutation in a copy of the package; obligations are settled there, without their "
        "twins, until one does not hold.\n\n" + _details(notices)
    )
    return Section("Mutations of the spec", method, figures)


def _details(notices: Sequence[Notice]) -> str:
    rows = [
        (
            n.mutation.file,
            _code(n.mutation.old),
            _code(n.mutation.new),
            ", ".join(n.mutation.claims),
            n.by or "**not noticed**",
            n.said.partition(":")[0] if n.noticed else n.mutation.why,
        )
        for n in notices
    ]
    return table(("file", "old", "new", "claims", "noticed by", "how, or why not"), rows)


def _code(text: str) -> str:
    return f"`{' '.join(text.split())}`".replace("|", "\\|")
