"""Findings and cells made by hand: hostile text, numbers that JSON lacks."""

from __future__ import annotations

from importlib.metadata import entry_points

from assay.properties.results import Cell, CellKey, Finding

INSTALLED = any(point.name == "assay" for point in entry_points(group="pytest11"))
PLUGIN = "" if INSTALLED else "-p assay.cli.pytest_plugin"
"""What pytest has to be told where the package is not installed, or was before it had a plugin."""

HOSTILE = "<script>alert('x')</script>\x1b[31m\n\x00 & \"quoted\""

FUTURE = Finding(
    id="7f3a0b1c",
    cell=CellKey("my-flash", "attention.future_zero@keys", "float32", "eval"),
    claim="attention.future_zero",
    target="my_kernels.py:MyFlash",
    verdict="violated",
    kind="functional",
    message="out[0,0,1,0]=0.412, should be 0.398 (error 31 x bound)",
    case={"dims": {"L": 5}, "seed": 3, "score": float("inf")},
    summary="T=5 offset=1",
    hint="only future columns",
    score=31.0,
    picture={
        "mask": [[1, 0, 0], [1, 1, 0], [1, 1, 1]],
        "error": [[0.0, 1e-3, 0.5], [0.0, float("nan"), 0.2], [0.0, 0.0, float("inf")]],
        "got": [[0.1, -0.4], [0.412, 2.0]],
    },
    examples=7,
    seconds=0.4,
    shrink_seconds=1.2,
)


def held(backend: str, claim: str, dtype: str = "float32", mode: str = "default") -> Cell:
    """A cell that held on enough examples."""
    scores = tuple(0.01 * (i % 13 + 1) for i in range(60))
    return Cell(
        CellKey(backend, claim, dtype, mode),
        claim,
        "held",
        120,
        0.5,
        0.31,
        scores,
        grade="within bound",
    )


def failed(finding: Finding) -> Cell:
    """The cell of a finding."""
    return Cell(
        finding.cell, finding.claim, finding.verdict, finding.examples, 1.0, 31.0, finding=finding
    )
