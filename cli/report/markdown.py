"""The report and the proof table as Markdown, for pull requests and files in a repository."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from assay.cli.console import plain
from assay.cli.report.model import Page
from assay.cli.report.proof_tables import ProofTables
from assay.cli.summary import finding_line

if TYPE_CHECKING:
    from assay.proofs.obligation import Outcome

_SPECIAL = "\\`*_{}[]<>#|~$&"


def escape(text: str) -> str:
    r"""``text`` so that Markdown shows it as it is, on one line.

    >>> escape("a|b <i>")
    'a\\|b \\<i\\>'
    """
    return "".join(f"\\{c}" if c in _SPECIAL else c for c in plain(text))


def report(page: Page) -> str:
    """The whole report."""
    return "\n".join(
        [
            "# assay report",
            "",
            escape(page.conclusion),
            "",
            *_weaknesses(page),
            *_findings(page),
            *_matrix(page),
            proofs(page.outcomes, page.tables),
        ]
    )


def proofs(outcomes: Sequence[Outcome], tables: ProofTables) -> str:
    """The proofs by family and one by one; a sentence when there is none."""
    if not outcomes:
        return "## Proofs\n\nNo obligation was discharged.\n"
    lines = ["## Proofs", "", *families(tables), ""]
    rows = [
        (
            o.id,
            o.claim,
            o.status,
            o.method,
            f"{o.solver} {o.version}".strip(),
            f"{o.seconds:.2f}",
            o.generality,
        )
        for o in outcomes
    ]
    head = ("obligation", "claim", "status", "method", "by", "seconds", "how general")
    return "\n".join([*lines, *table(head, rows)]) + "\n"


def families(tables: ProofTables) -> Iterable[str]:
    """Families of claims by status of their obligations, each cell by method."""
    head = ("family", "claims", "proof owed", "of these without", *tables.statuses)
    rows = (*tables.families, tables.total)
    yield from table(
        head,
        ((r.family, str(r.claims), str(r.owed), str(r.missing or "-"), *r.cells) for r in rows),
    )


def _weaknesses(page: Page) -> Iterable[str]:
    yield "## What could make this result meaningless"
    yield ""
    if not page.weaknesses:
        yield "Nothing was found."
    for entry in page.weaknesses:
        yield f"- **{escape(entry.title)}**" + (
            f": {escape(entry.meaning)}" if entry.meaning else ""
        )
        yield from (f"  - {escape(text)}" for text in entry.entries)
    yield ""


def _findings(page: Page) -> Iterable[str]:
    yield "## Findings"
    yield ""
    if not page.causes:
        yield "None."
    for cause in page.causes:
        yield f"- {escape(finding_line(cause.first))}"
        if cause.first.hint:
            yield f"  - hint: {escape(cause.first.hint)}"
        if cause.others:
            yield f"  - also in: {escape(', '.join(str(f.cell) for f in cause.others))}"
    yield ""


def _matrix(page: Page) -> Iterable[str]:
    yield "## Verdicts"
    yield ""
    names = [
        backend if mode == "default" else f"{backend} ({mode})" for backend, mode in page.columns
    ]
    rows = [
        (row.claim, *(" ".join(f"{b.short}{b.symbol}" for b in badges) for badges in row.columns))
        for row in page.rows
    ]
    yield from table(("claim", *names), rows)
    yield ""
    if page.result.absent:
        absent = ", ".join(entry.backend for entry in sorted(page.result.absent))
        yield escape(f"Absent, and so without a column: {absent}.")
        yield ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterable[str]:
    """A table, every entry escaped."""
    yield "| " + " | ".join(map(escape, head)) + " |"
    yield "|" + " --- |" * len(head)
    for row in rows:
        yield "| " + " | ".join(map(escape, row)) + " |"
