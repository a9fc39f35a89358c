"""The end of a campaign: exit status, verdict table, what weakens it, what comes next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from assay.cli import console
from assay.cli.command import Status
from assay.cli.weaknesses import weaknesses
from assay.properties.absence import by_reason
from assay.properties.results import BAD, VERDICTS, Cell, Finding, Result

_BESIDE = 4
"""Contracts beside one another in one table."""

_SHOWN = 8
"""Entries of one weakness that are printed; the report holds them all."""


def status(result: Result, stale: Sequence[str] = ()) -> Status:
    """What the campaign's exit status is.

    An expected finding does not count; one that no longer shows does. Nothing held is no answer.
    """
    if stale or any(_unexpected(cell) for cell in result.cells):
        return Status.FINDINGS
    verdicts = {cell.verdict for cell in result.cells}
    complete = result.finished and len(result.cells) >= result.planned
    answered = complete and "inconclusive" not in verdicts and "held" in verdicts
    return Status.HELD if answered else Status.UNANSWERED


def _unexpected(cell: Cell) -> bool:
    return cell.verdict in BAD and (cell.finding is None or not cell.finding.known)


def finding_line(finding: Finding) -> str:
    """One finding on one line, ending in the command that shows it again."""
    text = f"{finding.cell}: {finding.message}"
    if finding.summary:
        text += f" [{finding.summary}]"
    if finding.known:
        return f"{text} known: {finding.known}"
    return f"{text} replay: assay replay {finding.id}"


def show(result: Result, ended: Status, stale: Sequence[str], *, contracts: bool = False) -> None:
    """Print everything that follows the findings."""
    if contracts:
        _contracts(result)
    _verdicts(result)
    for entry in weaknesses(result, stale):
        meaning = f" ({entry.meaning})" if entry.meaning else ""
        console.line(f"{entry.title}{meaning}:")
        for text in entry.entries[:_SHOWN]:
            console.block(f"  {console.plain(text)}")
        if len(entry.entries) > _SHOWN:
            console.block(f"  and {len(entry.entries) - _SHOWN} more (assay report)")
    console.line(conclusion(result, ended))
    _next(result)


def conclusion(result: Result, ended: Status) -> str:
    """The campaign in one sentence."""
    counts = Counter(cell.verdict for cell in result.cells)
    new = sum(_unexpected(cell) for cell in result.cells)
    known = sum(finding.known != "" for finding in result.findings)
    parts = [f"{len(result.cells)} of {result.planned} cells ran", f"{counts['held']} held"]
    parts += [f"{new} failed"] if new else []
    parts += [f"{known} failed as expected"] if known else []
    parts += [f"{counts['unsupported']} unsupported"] if counts["unsupported"] else []
    parts += [f"{counts['inconclusive']} inconclusive"] if counts["inconclusive"] else []
    absent = len(result.absent)
    parts += [f"{absent} backend{'s'[: absent > 1]} absent"] if absent else []
    word = {Status.HELD: "held", Status.FINDINGS: "findings", Status.UNANSWERED: "no answer"}[ended]
    examples = sum(cell.examples for cell in result.cells)
    return (
        f"{word}: {', '.join(parts)}; {examples} examples in {result.seconds:.1f} s "
        f"(profile {result.profile}, seed {result.seed}, campaign {result.campaign})"
    )


def verdict_rows(result: Result) -> list[tuple[str, str, Counter[str]]]:
    """(backend, mode, number of cells by verdict) in the order of the backends."""
    rows: dict[tuple[str, str], Counter[str]] = {}
    for cell in sorted(result.cells, key=lambda c: c.key):
        rows.setdefault((cell.key.backend, cell.key.mode), Counter())[cell.verdict] += 1
    return [(backend, mode, counts) for (backend, mode), counts in rows.items()]


def _verdicts(result: Result) -> None:
    used = [v for v in VERDICTS if any(cell.verdict == v for cell in result.cells)]
    worst: dict[tuple[str, str], float] = {}
    for cell in result.cells:
        if cell.verdict == "held":
            place = (cell.key.backend, cell.key.mode)
            worst[place] = max(worst.get(place, 0.0), cell.worst)
    rows = [
        [
            backend if mode == "default" else f"{backend} ({mode})",
            *(str(counts[verdict] or "") for verdict in used),
            f"{worst[backend, mode]:.2g}" if (backend, mode) in worst else "",
        ]
        for backend, mode, counts in verdict_rows(result)
    ]
    columns = [*used, "worst error/bound that held"]
    for group in by_reason(result.absent):
        rows.append([f"{group.title} (absent)", *[""] * len(columns)])
    console.table("", ["backend", *columns], rows, right=columns)


def _contracts(result: Result) -> None:
    """Every declaration, a few backends beside one another."""
    every = sorted(result.contracts)
    for names in (every[i : i + _BESIDE] for i in range(0, len(every), _BESIDE)):
        contracts = [result.contracts[name] for name in names]
        fields = dict.fromkeys(f for contract in contracts for f in contract if f != "name")
        rows = [[f, *(declared(contract.get(f)) for contract in contracts)] for f in fields]
        console.table("declared, not proved", ["contract", *names], rows)


def declared(value: object) -> str:
    """A declaration as text.

    >>> declared(("a", "b")), declared(None), declared(())
    ('a, b', 'default', 'none')
    """
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "default" if value is None else str(value)


def _next(result: Result) -> None:
    unexpected = [finding for finding in result.findings if not finding.known]
    if unexpected:
        first = unexpected[0].id
        console.block(f"next: assay replay {first}           run the smallest case again")
        console.block(f"      assay repro {first} -o bug.py  write it as a script free of assay")
        console.block("      assay report --html report.html")
    else:
        console.block("next: assay report --html report.html")
    if not result.finished:
        console.block("      the same command with --resume goes on where this campaign stopped")
