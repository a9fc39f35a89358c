"""What a campaign yields: cells, verdicts, findings. Everything here turns into JSON and back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Verdict = Literal["held", "violated", "crashed", "hung", "flaky", "unsupported", "inconclusive"]
VERDICTS: tuple[Verdict, ...] = (
    "held",
    "violated",
    "crashed",
    "hung",
    "flaky",
    "unsupported",
    "inconclusive",
)
BAD: frozenset[Verdict] = frozenset({"violated", "crashed", "hung", "flaky"})
Class = Literal["functional", "numerical"]


@dataclass(frozen=True, order=True)
class CellKey:
    """One property of one op of one backend, in one dtype and mode."""

    backend: str
    property: str
    dtype: str
    mode: str = "default"
    op: str = ""

    def __str__(self) -> str:
        mode = "" if self.mode == "default" else f" ({self.mode})"
        # attention.prefix says of which op it is; norm.refines is about several.
        said = not self.op or self.property.startswith(f"{self.op}.")
        op = "" if said else f" of {self.op}"
        return f"{self.backend}{mode} {self.property}{op} {self.dtype}"


@dataclass(frozen=True)
class Finding:
    """A violated, crashed or hung cell with its smallest known case.

    id        8 hex digits, stable for the same cell, claim and case
    target    text that loads the backend again, on ``device`` where one was asked for, and in the
              mode for ``adversarial`` kernels where it was found there
    message   "out[0,1,3]=0.412, should be 0.398 (error 31 x bound)"
    case      the shrunk case, as JSON
    summary   the case in a few words: "T=5 offset=1"
    hint      blame hint, or ""
    score     error / bound; infinity for exact claims
    picture   arrays for the report by name ("mask", "error", "got", "want"), at most
              two-dimensional, as nested lists
    examples  examples run up to the first failure;  shrink_seconds: time spent making it small
    known     reason from known.toml when the finding is expected, else ""
    """

    id: str
    cell: CellKey
    claim: str
    target: str
    verdict: Verdict
    kind: Class
    message: str
    case: dict[str, Any]
    summary: str
    hint: str = ""
    score: float = 0.0
    picture: dict[str, Any] = field(default_factory=dict)
    examples: int = 0
    seconds: float = 0.0
    shrink_seconds: float = 0.0
    known: str = ""
    device: str = ""
    trace: str = ""
    adversarial: bool = False


@dataclass(frozen=True)
class Cell:
    """What became of one cell.

    reason    why it is unsupported or inconclusive, or in what way a held claim is weaker
              ("contract declares ...")
    worst     greatest score seen;  scores: all scores, thinned to at most 200, for the plot
    rejudged  examples whose reference was tested by enclosure
    grade     "bitwise" | "within bound" | "exact" | "weaker promise" for a held cell
    cut       its time was over before all its examples were drawn
    """

    key: CellKey
    claim: str
    verdict: Verdict
    examples: int = 0
    seconds: float = 0.0
    worst: float = 0.0
    scores: tuple[float, ...] = ()
    reason: str = ""
    grade: str = ""
    rejudged: int = 0
    finding: Finding | None = None
    cut: bool = False


@dataclass(frozen=True, order=True)
class Absent:
    """A backend that was asked for and cannot run on this machine: nothing is known about it.

    reason  what is missing;  remedy: the command that brings it, or ""
    """

    backend: str
    reason: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.backend}: {self.why}"

    @property
    def why(self) -> str:
        """The reason, and the command in parentheses."""
        return f"{self.reason} ({self.remedy})" if self.remedy else self.reason


@dataclass(frozen=True)
class Result:
    """One campaign: configuration, versions, cells. ``finished`` is False when it was stopped or
    out of budget.

    absent        backends without cells, since they cannot run here
    adversarial   backends were kept in the dark, and their sources read for ``static_notes``
    static_notes  what the sources suggest, which is no verdict
    """

    campaign: str
    started: str
    profile: str
    seed: int
    targets: tuple[str, ...]
    versions: dict[str, str]
    contracts: dict[str, dict[str, Any]]
    planned: int
    cells: tuple[Cell, ...] = ()
    finished: bool = False
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    absent: tuple[Absent, ...] = ()
    adversarial: bool = False
    static_notes: tuple[str, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, unexpected ones first."""
        found = [c.finding for c in self.cells if c.finding is not None]
        return tuple(sorted(found, key=lambda f: (bool(f.known), f.cell)))


def to_json(value: Cell | Finding | Result) -> dict[str, Any]:
    """As plain JSON; infinities and NaN become strings, which JSON has no numbers for."""
    return dict(plain(asdict(value)))


def plain(value: Any) -> Any:
    """The same for anything of numbers, texts, sequences and mappings."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


def finding_from_json(record: Mapping[str, Any]) -> Finding:
    """The inverse of ``to_json`` for a finding."""
    return Finding(**{**record, "cell": CellKey(**record["cell"]), "score": float(record["score"])})


def cell_from_json(record: Mapping[str, Any]) -> Cell:
    """The inverse of ``to_json`` for a cell."""
    found = record["finding"]
    return Cell(
        **{
            **record,
            "key": CellKey(**record["key"]),
            "worst": float(record["worst"]),
            "scores": tuple(float(s) for s in record["scores"]),
            "finding": None if found is None else finding_from_json(found),
        }
    )


def result_from_json(record: Mapping[str, Any]) -> Result:
    """The inverse of ``to_json`` for a result."""
    fields = {name: value for name, value in record.items() if name in Result.__dataclass_fields__}
    return Result(
        **{
            **fields,
            "targets": tuple(record["targets"]),
            "cells": tuple(cell_from_json(c) for c in record["cells"]),
            "notes": tuple(record["notes"]),
            "absent": tuple(Absent(**a) for a in record.get("absent", ())),
            "static_notes": tuple(record.get("static_notes", ())),
        }
    )
