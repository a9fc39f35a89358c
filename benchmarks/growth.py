"""Memory gained over 10,000 examples, of the process that draws and judges and of the worker that
computes.
"""

from __future__ import annotations

import os
from dataclasses import replace

from assay.impl.loading import resolve
from assay.impl.session import open_session
from assay.properties.cell import run_cell
from assay.properties.context import context_of
from assay.properties.profiles import PROFILES
from assay.properties.properties import find
from assay.properties.results import CellKey
from assay.properties.trial import Bench
from assay.spec.ops import op
from assay.zoo.cpu import descendants
from benchmarks.figure import Figure, Section, megabytes
from benchmarks.processes import peak_bytes, resident_bytes

BACKEND = "torch.manual"
PROPERTY = "attention.refines"
ROUND = 1000
ROUNDS = 11


def measure() -> Section:
    """Eleven rounds of 1,000 examples; growth counts from the end of the first."""
    sizes = []
    with open_session(resolve(BACKEND), isolate=True) as session:
        mode = session.description.contract.modes[0]
        ctx = context_of(op("attention"), session.description, "float32", mode)
        key = CellKey(BACKEND, PROPERTY, "float32", mode, "attention")
        profile = replace(PROFILES["ci"], examples=ROUND // 2, cell_seconds=600.0)
        examples, others = 0, [os.getpid()]
        for seed in range(ROUNDS):
            cell = run_cell(Bench(find(PROPERTY), ctx, session), profile, key, BACKEND, seed, None)
            others = [pid for pid in descendants() if pid != os.getpid()]
            sizes.append((resident_bytes(), max(map(resident_bytes, others))))
            examples += cell.examples if seed else 0
        worker = max(map(peak_bytes, others))
    (own, other), (half, _), (end, other_end) = sizes[0], sizes[ROUNDS // 2], sizes[-1]
    figures = (
        Figure("growth of the drawing process", megabytes(end - own), "none"),
        Figure("of that in the second half", megabytes(end - half), "none"),
        Figure("growth of the worker", megabytes(other_end - other), "none"),
        Figure("peak of the drawing process", megabytes(peak_bytes(os.getpid())), "1500 MB"),
        Figure("peak of the worker", megabytes(worker)),
    )
    method = f"`{PROPERTY}` of `{BACKEND}` in a worker, {examples} examples after a first {ROUND}."
    return Section("Growth", method, figures)
