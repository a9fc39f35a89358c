"""What could make a green result meaningless: said first in every report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from assay.properties.results import Cell, Result

FEW = 20
"""Below this many, a fault that one case in ten shows escapes with probability 0.12 or more."""


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
    cells = result.cells
    found = (
        _unrun(result),
        Weakness(
            "Stale known findings",
            "expected faults that no longer show; take the entries out",
            tuple(stale),
        ),
        Weakness(
            "Known findings",
            "expected faults; the claims below do not hold here",
            _lines(
                (c for c in cells if c.finding is not None and c.finding.known),
                lambda c: f"{c.key}: {c.finding.known if c.finding else ''}",
            ),
        ),
        Weakness(
            "Inconclusive",
            "no answer could be had",
            _lines((c for c in cells if c.verdict == "inconclusive"), _with_reason),
        ),
        Weakness("Unsupported", "not offered by the backend: not a pass", _unsupported(cells)),
        Weakness(
            "Few examples",
            f"held, but on fewer than {FEW} examples",
            _lines(
                (c for c in cells if c.verdict == "held" and c.examples < FEW),
                lambda c: f"{c.key}: {c.examples}",
            ),
        ),
        Weakness(
            "Weaker promises",
            "held only in the weaker form that the contract declares",
            _lines(
                (c for c in cells if c.verdict == "held" and c.grade == "weaker promise"),
                _with_reason,
            ),
        ),
        Weakness(
            "Weak declarations",
            "a contract that promises less can hardly fail",
            _declarations(result),
        ),
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
    """One line for each backend and reason: a matrix of unsupported cells says little more."""
    counts = Counter((c.key.backend, c.reason) for c in cells if c.verdict == "unsupported")
    return tuple(
        f"{backend}: {number} cell{'s' if number > 1 else ''}{f' ({reason})' if reason else ''}"
        for (backend, reason), number in sorted(counts.items())
    )


def _declarations(result: Result) -> tuple[str, ...]:
    return tuple(
        f"{backend}: {field}={contract[field]!r}: {meaning}"
        for backend, contract in sorted(result.contracts.items())
        for field, weak, meaning in _DECLARATIONS
        if field in contract and weak(contract[field])
    )


def _with_reason(cell: Cell) -> str:
    return f"{cell.key}: {cell.reason}" if cell.reason else str(cell.key)


def _lines(cells: Iterable[Cell], text: Callable[[Cell], str]) -> tuple[str, ...]:
    return tuple(text(cell) for cell in sorted(cells, key=lambda c: c.key))
