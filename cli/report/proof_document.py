"""The proof report as Markdown: without times and versions, so that equal proofs are equal text."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from assay.cli.report import proof_tables
from assay.cli.report.markdown import escape, families, table
from assay.cli.report.proof_tables import ProofTables

if TYPE_CHECKING:
    from assay.proofs.obligation import Outcome

HEAD = """# Proofs about the specification

Written by `make proofs`; do not edit. What the words mean and what they ask you to believe:
[trust.md](trust.md). Times, versions, solver texts and what other solvers say: run
`assay prove --cross-check`, then `assay report`.
"""


MOST_FUNCTIONS = 12
"""Above this many, functions are counted by module."""

DECIMAL = re.compile(r"-?\d+\.\d+(e[-+]?\d+)?")


def write(outcomes: Sequence[Outcome], stale: Sequence[str] = ()) -> str:
    """The whole document."""
    tables = proof_tables.build(outcomes, stale)
    parts = (
        [HEAD],
        summary(tables),
        gaps(tables),
        _links(tables),
        _trust(tables),
        _obligations(outcomes),
    )
    return "\n".join(line for part in parts for line in part).rstrip("\n") + "\n"


def summary(tables: ProofTables) -> Iterable[str]:
    """The table by family."""
    yield "## Summary"
    yield ""
    yield from families(tables)
    yield ""


def gaps(tables: ProofTables) -> Iterable[str]:
    """What no proof covers."""
    yield "## What is not covered"
    yield ""
    if not tables.gaps:
        yield "Every claim is proved for every size."
    for gap in tables.gaps:
        listed = ", ".join(escape(entry) for entry in gap.entries)
        yield f"- **{escape(gap.title)}** ({len(gap.entries)}; {escape(gap.meaning)}): {listed}"
    yield ""


def _links(tables: ProofTables) -> Iterable[str]:
    yield "## Claims, the functions that their proofs ran, and the properties that test them"
    yield ""
    yield "Helpers of `spec/scalars.py` and private functions are left out. Where there are many,"
    yield "each module is named with the number of its functions."
    yield ""
    rows = (
        (
            link.claim.id,
            link.status or "-",
            link.sides,
            _functions(link.functions),
            ", ".join(link.properties),
        )
        for link in tables.links
    )
    yield from table(("claim", "proof", "sides", "spec functions", "properties"), rows)
    yield ""


def _functions(names: Sequence[str]) -> str:
    if len(names) <= MOST_FUNCTIONS:
        return ", ".join(names)
    modules = Counter(_module(name) for name in names)
    return ", ".join(f"{module} ({number})" for module, number in modules.items())


def _module(function: str) -> str:
    """The part of a dotted name before its first class or function: modules are lower case and not
    last.
    """
    parts = function.partition(".<locals>")[0].split(".")[:-1]
    return ".".join(itertools.takewhile(str.islower, parts))


def _trust(tables: ProofTables) -> Iterable[str]:
    yield "## What must be believed"
    yield ""
    yield "The software that decided, with the number of obligations that rest on it:"
    yield ""
    yield from (f"- {escape(name)} ({number})" for name, number in tables.software)
    yield ""
    yield "What obligations name beside it:"
    yield ""
    yield from (f"- {escape(text)} ({number})" for text, number in tables.trusted)
    yield ""


def _obligations(outcomes: Sequence[Outcome]) -> Iterable[str]:
    from assay.spec.claims import claim

    yield "## Obligations"
    yield ""
    before = ""
    for outcome in outcomes:
        if outcome.claim != before:
            before = outcome.claim
            yield f"### {escape(before)}"
            yield ""
            yield escape(claim(before).sentence)
            yield ""
        yield from _obligation(outcome)


def _obligation(outcome: Outcome) -> Iterable[str]:
    # Measured figures depend on the processor, and whether a core was found in time on its speed:
    # the HTML report shows those of its machine.
    measured = outcome.method in ("arb", "enumeration")
    yield f"#### {escape(outcome.id)}"
    yield ""
    yield f"**{outcome.status}** by {escape(outcome.method)}: {escape(outcome.generality)}"
    yield ""
    yield _formula(outcome.statement)
    yield ""
    if not outcome.held:
        yield f"- {outcome.status}: {escape(outcome.detail)}"
    for given in outcome.assumptions:
        values = f" on {escape(given.witness)}" if given.witness else ""
        yield f"- assumes {_inline(given.text)} (satisfied{values})"
    if outcome.trust:
        yield f"- trusts {escape('; '.join(outcome.trust))}"
    twin = outcome.twin
    shown = DECIMAL.sub("…", twin.counterexample) if measured else twin.counterexample
    told = f"refuted by {escape(shown)}" if twin.refuted else "**not refuted**"
    yield f"- twin: {escape(twin.text)}: {told}"
    yield f"- stated in {escape(outcome.theorem.removeprefix('assay.').replace('.', '/'))}.py"
    yield ""
    for lines in () if measured else outcome.derivation:
        yield "<details><summary>derivation</summary>"
        yield ""
        for line in lines:
            yield _formula(line)
            yield ""
        yield "</details>"
        yield ""


def _formula(latex: str) -> str:
    return f"```math\n{latex}\n```"


def _inline(text: str) -> str:
    """A premise's text: LaTeX, or words."""
    return f"$`{text}`$" if "\\" in text or "=" in text else escape(text)
