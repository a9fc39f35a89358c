"""What a report shows, worked out once for every format: matrix, causes, evidence, contracts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.cli.command import Status
from assay.cli.report import proof_tables
from assay.cli.report.proof_tables import ProofTables
from assay.cli.summary import conclusion, declared, status
from assay.cli.weaknesses import Weakness, weaknesses
from assay.properties.results import Cell, Finding, Result, Verdict

if TYPE_CHECKING:
    from assay.proofs.obligation import Outcome
    from assay.spec.claims import Claim

SYMBOLS: dict[Verdict, str] = {
    "held": "\N{CHECK MARK}",
    "violated": "\N{MULTIPLICATION X}",
    "crashed": "!",
    "hung": "\N{INFINITY}",
    "flaky": "\N{ALMOST EQUAL TO}",
    "unsupported": "\N{EN DASH}",
    "inconclusive": "?",
}
"""A verdict must be readable without colour."""

SHORT = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64"}

# The verdict that a claim shows when its variants differ: what is worst for the reader.
_WORST: tuple[Verdict, ...] = (
    "crashed",
    "hung",
    "violated",
    "flaky",
    "inconclusive",
    "held",
    "unsupported",
)

EVIDENCE = (
    "kernel",
    "proved",
    "bounded",
    "exhaustive",
    "derived",
    "enclosed",
    "tested",
    "assumed",
    "open",
    "refuted",
)
"""Classes of evidence, strongest first."""


@dataclass(frozen=True)
class Badge:
    """The verdict of one claim, backend, mode and dtype. ``text`` says it in words (tooltip)."""

    verdict: Verdict
    dtype: str
    text: str
    known: bool = False

    @property
    def symbol(self) -> str:
        """The verdict without colour."""
        return SYMBOLS[self.verdict]

    @property
    def short(self) -> str:
        """The dtype in at most four letters."""
        return SHORT.get(self.dtype, self.dtype)


@dataclass(frozen=True)
class Row:
    """One claim of the matrix: for each column the badges of its dtypes."""

    claim: str
    sentence: str
    columns: tuple[tuple[Badge, ...], ...]


@dataclass(frozen=True)
class Cause:
    """Findings that look like one fault: same backend, claim, hint. ``first`` is the smallest."""

    first: Finding
    others: tuple[Finding, ...]
    sentence: str


@dataclass(frozen=True)
class Evidence:
    """Everything known about one claim: (class, what was found) pairs, strongest first."""

    claim: Claim
    entries: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Page:
    """The whole report."""

    result: Result
    status: Status
    conclusion: str
    weaknesses: tuple[Weakness, ...]
    columns: tuple[tuple[str, str], ...]
    rows: tuple[Row, ...]
    causes: tuple[Cause, ...]
    evidence: tuple[Evidence, ...]
    contracts: tuple[tuple[str, tuple[str, ...]], ...]
    contract_names: tuple[str, ...]
    outcomes: tuple[Outcome, ...]
    tables: ProofTables


def build(
    result: Result,
    outcomes: Sequence[Outcome] = (),
    stale: Sequence[str] = (),
    expired: Sequence[str] = (),
) -> Page:
    """The page for a campaign.

    outcomes  the proofs at hand; expired: ids of those that no longer count
    stale     expected findings that no longer show
    """
    from assay.spec.claims import CLAIMS

    sentences = {claim.id: claim.sentence for claim in CLAIMS}
    ended = status(result, stale)
    columns = tuple(sorted({(c.key.backend, c.key.mode) for c in result.cells}))
    doubts = weaknesses(result, stale)
    evidence = tuple(_evidence(claim, result.cells, outcomes) for claim in CLAIMS)
    doubts = (*doubts, *_proof_doubts(outcomes, expired), *_bare(evidence))
    names = tuple(sorted(result.contracts))
    return Page(
        result=result,
        status=ended,
        conclusion=conclusion(result, ended),
        weaknesses=doubts,
        columns=columns,
        rows=tuple(_rows(result.cells, columns, sentences)),
        causes=_causes(result.findings, sentences),
        evidence=evidence,
        contracts=_contracts(result, names),
        contract_names=names,
        outcomes=tuple(outcomes),
        tables=proof_tables.build(outcomes, expired),
    )


def _rows(
    cells: Iterable[Cell], columns: Sequence[tuple[str, str]], sentences: dict[str, str]
) -> Iterable[Row]:
    by_claim: dict[str, list[Cell]] = {claim: [] for claim in sentences}
    for cell in cells:
        by_claim.setdefault(cell.claim, []).append(cell)
    for claim, own in by_claim.items():
        if own:
            parts = (
                _badges([c for c in own if (c.key.backend, c.key.mode) == column])
                for column in columns
            )
            yield Row(claim, sentences.get(claim, ""), tuple(parts))


def _badges(cells: Sequence[Cell]) -> tuple[Badge, ...]:
    by_dtype: dict[str, list[Cell]] = {}
    for cell in cells:
        by_dtype.setdefault(cell.key.dtype, []).append(cell)
    order = [*(d for d in SHORT if d in by_dtype), *sorted(set(by_dtype) - set(SHORT))]
    return tuple(_badge(dtype, by_dtype[dtype]) for dtype in order)


def _badge(dtype: str, cells: Sequence[Cell]) -> Badge:
    present: set[Verdict] = {c.verdict for c in cells}
    verdict: Verdict = next(v for v in _WORST if v in present)
    findings = [c.finding for c in cells if c.finding is not None]
    known = bool(findings) and all(f.known for f in findings)
    text = "\n".join(_describe(cell) for cell in sorted(cells, key=lambda c: c.key))
    return Badge(verdict, dtype, text, known)


def _describe(cell: Cell) -> str:
    parts = [f"{cell.key}: {cell.verdict}", f"{cell.examples} examples"]
    if cell.worst:
        parts.append(f"worst error/bound {cell.worst:.3g}")
    parts += ["cut short"] if cell.cut else []
    parts += [text for text in (cell.grade, cell.reason) if text]
    if cell.finding is not None:
        parts += [
            cell.finding.message,
            *([f"known: {cell.finding.known}"] if cell.finding.known else []),
        ]
    return ", ".join(parts)


def _causes(findings: Iterable[Finding], sentences: dict[str, str]) -> tuple[Cause, ...]:
    groups: dict[tuple[str, str, str, bool], list[Finding]] = {}
    for finding in findings:
        key = (finding.cell.backend, finding.claim, finding.hint, bool(finding.known))
        groups.setdefault(key, []).append(finding)
    # The shortest summary stands for the smallest case: it names what differs from the defaults.
    ordered = (sorted(group, key=lambda f: (len(f.summary), f.cell)) for group in groups.values())
    return tuple(Cause(g[0], tuple(g[1:]), sentences.get(g[0].claim, "")) for g in ordered)


def _evidence(claim: Claim, cells: Iterable[Cell], outcomes: Iterable[Outcome]) -> Evidence:
    entries: list[tuple[str, str]] = [
        (o.status, f"{o.id}: {o.generality}")
        for o in outcomes
        if o.claim == claim.id and o.status != "unavailable"
    ]
    own = [c for c in cells if c.claim == claim.id]
    held = [c for c in own if c.verdict == "held"]
    failed = {c.key.backend for c in own if c.finding is not None}
    if held:
        worst = max(c.worst for c in held)
        backends = len({c.key.backend for c in held})
        parts = [f"{sum(c.examples for c in held)} examples", f"{len(held)} cells"]
        parts += [f"{backends} backend{'' if backends == 1 else 's'}"]
        parts += [f"worst error/bound {worst:.2g}"] if worst else []
        entries.append(("tested", ", ".join(parts)))
    if failed:
        entries.append(("refuted", f"by {', '.join(sorted(failed))}"))
    entries.sort(key=lambda entry: EVIDENCE.index(entry[0]))
    return Evidence(claim, tuple(entries))


def _proof_doubts(outcomes: Sequence[Outcome], expired: Sequence[str]) -> Iterable[Weakness]:
    """What weakens the proofs: none at all, some that did not succeed, some that could not fail."""
    if not outcomes:
        missing = "no obligation was discharged for this state of the spec: assay prove"
        yield Weakness("No proofs", "every claim below rests on tests alone", (missing,))
    if expired:
        moved = "what they rest on has changed since: assay prove"
        yield Weakness("Stale proofs", moved, tuple(expired))
    failed = tuple(f"{o.id}: {o.status}, {o.detail}" for o in outcomes if o.failed)
    if failed:
        yield Weakness("Proofs that failed", "refuted or open: no evidence", failed)
    absent = tuple(o.id for o in outcomes if o.status == "unavailable")
    if absent:
        yield Weakness("Proofs not run", _reason(outcomes), absent)
    ran = [o for o in outcomes if o.status != "unavailable"]
    blunt = tuple(f"{o.id}: {o.twin.text}" for o in ran if not o.twin.refuted)
    if blunt:
        yield Weakness("Twins not refuted", "a wrong statement was not told apart", blunt)


def _reason(outcomes: Iterable[Outcome]) -> str:
    """What is not installed, once."""
    return "; ".join(dict.fromkeys(o.detail for o in outcomes if o.status == "unavailable"))


def _bare(evidence: Iterable[Evidence]) -> Iterable[Weakness]:
    bare = tuple(entry.claim.id for entry in evidence if not entry.entries)
    if bare:
        yield Weakness("No evidence", "claims that were neither proved nor tested here", bare)


def _contracts(result: Result, names: Sequence[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    fields = dict.fromkeys(f for name in names for f in result.contracts[name] if f != "name")
    return tuple(
        (f, tuple(declared(result.contracts[name].get(f)) for name in names)) for f in fields
    )
