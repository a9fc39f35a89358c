"""What a campaign yields: cells, verdicts, findings. Everything here turns into JSON and back."""

from __future__ import annotations

from dataclasses import dataclass, field
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
    """One property of one backend, in one dtype and mode."""

    backend: str
    property: str
    dtype: str
    mode: str = "default"

    def __str__(self) -> str:
        mode = "" if self.mode == "default" else f" ({self.mode})"
        return f"{self.backend}{mode} {self.property} {self.dtype}"


@dataclass(frozen=True)
class Finding:
    """A violated, crashed or hung cell with its smallest known case.

    id        8 hex digits, stable for the same cell, claim and case
    target    text that loads the backend again
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
    trace: str = ""


@dataclass(frozen=True)
class Cell:
    """What became of one cell.

    reason    why it is unsupported or inconclusive, or in what way a held claim is weaker
              ("contract declares ...")
    worst     greatest score seen;  scores: all scores, thinned to at most 200, for the plot
    grade     "bitwise" | "within bound" | "exact" | "weaker promise" for a held cell
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
    finding: Finding | None = None


@dataclass(frozen=True)
class Result:
    """One campaign: configuration, versions, cells. ``finished`` is False when it was stopped or
    out of budget.
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

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, unexpected ones first."""
        found = [c.finding for c in self.cells if c.finding is not None]
        return tuple(sorted(found, key=lambda f: (bool(f.known), f.cell)))
