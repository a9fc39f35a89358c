"""What could make a green result meaningless: said first in every report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from assay.properties.absence import by_reason
from assay.properties.results import Cell, Result

FEW = 15
"""Below this many, a fault that one case in ten shows escapes with probability 0.2 or more."""


@dataclass(frozen=True)
class Weakness:
    """One reason for doubt: a short title, what it means, and the entries it concerns."""

    title: str
    meaning: str
    entries: tuple[str, ...]


# Declarations that promise less than a caller would assume, and what each gives up.
_DECLARATIONS: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
    ("empty_row", lambda v: v != "zeros", "a query without visible key need not get zeros"),
    (
        "blocked_nonfinite",
        lambda v: v == "propagates",
        "NaN at a blocked position may reach outputs",
    ),
    (
        "accuracy",
        lambda v: v == "normwise",
        "a convolution's small elements may be wrong by as much as its large ones",
    ),
    ("deterministic", lambda v: v is False, "the same call may give other bits"),
    ("subnormals", lambda v: v is False, "subnormal numbers may be flushed to zero"),
    ("gradients", lambda v: v is False, "no derivative is offered, so none was checked"),
    (
        "accumulate",
        lambda v: v in ("float16", "bfloat16"),
        "bounds are those of a 16-bit accumulator",
    ),
    ("intermediate", lambda v: v in ("float16", "bfloat16"), "bounds are those of 16-bit scores"),
    (
        "exp_ulps",
        lambda v: isinstance(v, (int, float)) and v > 4,
        "bounds allow an inexact exponential",
    ),
    ("masks", lambda v: not v, "no mask is taken, so no masked claim was checked"),
)


def weaknesses(result: Result, stale: Iterable[str] = ()) -> tuple[Weakness, ...]:
    """Every reason for doubt about ``result``; ``stale``: expected findings that no longer show."""
    cells, absent = result.cells, tuple(map(str, by_reason(result.absent)))
    found = (
        _unrun(result),
        Weakness("Absent", "not run here, so nothing is known about them", absent),
        Weakness("Stale known findings", "they no longer show; take the entries out", tuple(stale)),
        Weakness("Known findings", "expected; the claims do not hold here", _known(cells)),
        Weakness("Inconclusive", "no answer could be had", _inconclusive(cells)),
        Weakness("Unsupported", "not offered by the backend: not a pass", _unsupported(cells)),
        Weakness("Cut short", "held, but the time was over before all examples", _cut(cells)),
        Weakness("Few examples", f"held, but on fewer than {FEW}", _few(cells)),
        Weakness("Weaker promises", "held only in a weaker form, as declared", _weaker(cells)),
        Weakness("Weak declarations", "who promises less can hardly fail", _declarations(result)),
        Weakness("Static notes", "what the source suggests; no verdicts", result.static_notes),
        Weakness("Notes of the campaign", "", result.notes),
    )
    return tuple(entry for entry in found if entry.entries)


def _unrun(result: Result) -> Weakness:
    missing = result.planned - len(result.cells)
    entries = [f"{missing} of {result.planned} planned cells"] if missing > 0 else []
    if not result.finished and not entries:
        entries = ["the campaign was stopped before its end"]
    if not any(c.verdict == "held" for c in result.cells):
        entries.append("no cell held at all")
    return Weakness("Not run", "nothing is known about these", tuple(entries))


def _unsupported(cells: Iterable[Cell]) -> tuple[str, ...]:
    """One line for each backend and reason: a list of unsupported cells says little more."""
    groups = _grouped(cells, lambda c: c.verdict == "unsupported")
    return tuple(
        f"{backend}: {_number(own)}{f' ({reason})' if reason else ''}"
        for (backend, reason), own in groups
    )


def _weaker(cells: Iterable[Cell]) -> tuple[str, ...]:
    """One line for each backend and declaration, with the claims that it weakens."""
    groups = _grouped(cells, lambda c: c.verdict == "held" and c.grade == "weaker promise")
    return tuple(
        f"{backend}: {reason or 'weaker'} "
        f"({', '.join(sorted({c.claim for c in own}))}; {_number(own)})"
        for (backend, reason), own in groups
    )


def _cut(cells: Iterable[Cell]) -> tuple[str, ...]:
    """One line for each backend, with how few examples were left."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        if cell.verdict == "held" and cell.cut:
            groups.setdefault(cell.key.backend, []).append(cell)
    return tuple(
        f"{backend}: {_number(own)}, after as few as {min(c.examples for c in own)} examples"
        for backend, own in sorted(groups.items())
    )


def _few(cells: Iterable[Cell]) -> tuple[str, ...]:
    """One line for each backend, with the properties that ran on so few."""
    few: dict[str, list[Cell]] = {}
    for cell in cells:
        if cell.verdict == "held" and cell.examples < FEW:
            few.setdefault(cell.key.backend, []).append(cell)
    return tuple(
        f"{backend}: {_number(own)}, as few as {min(c.examples for c in own)} examples "
        f"({', '.join(sorted({c.key.property for c in own}))})"
        for backend, own in sorted(few.items())
    )


def _grouped(
    cells: Iterable[Cell], wanted: Callable[[Cell], bool]
) -> list[tuple[tuple[str, str], list[Cell]]]:
    """The wanted cells by backend and reason."""
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in filter(wanted, cells):
        groups.setdefault((cell.key.backend, cell.reason), []).append(cell)
    return sorted(groups.items())


def _number(cells: Sequence[Cell]) -> str:
    return f"{len(cells)} cell{'' if len(cells) == 1 else 's'}"


def _declarations(result: Result) -> tuple[str, ...]:
    return tuple(
        f"{backend}: {field}={contract[field]!r}: {meaning}"
        for backend, contract in sorted(result.contracts.items())
        for field, weak, meaning in _DECLARATIONS
        if field in contract and weak(contract[field])
    )


def _known(cells: Iterable[Cell]) -> tuple[str, ...]:
    found = sorted((c.key, c.finding.known) for c in cells if c.finding and c.finding.known)
    return tuple(f"{key}: {reason}" for key, reason in found)


def _inconclusive(cells: Iterable[Cell]) -> tuple[str, ...]:
    found = sorted((c.key, c.reason) for c in cells if c.verdict == "inconclusive")
    return tuple(f"{key}: {reason}" if reason else str(key) for key, reason in found)
