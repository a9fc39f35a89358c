"""The proof report: nothing is left out, nothing changes by itself, and gaps are named."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from assay.cli.report import proof_document, proof_tables
from assay.cli.report.markdown import escape
from assay.proofs.obligation import Assumption, Opinion, TwinOutcome
from assay.proofs.obligations import OBLIGATIONS
from assay.spec.claims import CLAIMS
from tests.cli.test_report import PROVED

TESTED = replace(PROVED, id="softmax.refines/x", claim="softmax.refines", status="enclosed")


def gaps(*outcomes: object, stale: tuple[str, ...] = ()) -> dict[str, tuple[str, ...]]:
    tables = proof_tables.build(outcomes, stale)  # type: ignore[arg-type]
    return {gap.title: gap.entries for gap in tables.gaps}


def test_times_versions_and_other_solvers_change_nothing() -> None:
    told = (Opinion("cvc5", "1", 1, 0, 0, 2.5),)
    other = replace(PROVED, seconds=99.0, version="0", cross=told, resources=7, key="x")
    assert proof_document.write([PROVED]) == proof_document.write([other])


@pytest.mark.parametrize(
    "change",
    [
        {"status": "open"},
        {"statement": "x"},
        {"generality": "n = 1"},
        {"trust": ()},
        {"assumptions": (Assumption("n > 0", "n=1"),)},
        {"twin": TwinOutcome("the sum is 2", False, "")},
        {"derivation": (("a = b",),)},
        {"theorem": "assay.proofs.theorems.masks"},
    ],
)
def test_what_is_proved_is_written(change: dict[str, object]) -> None:
    changed = replace(PROVED, **change)  # type: ignore[arg-type]
    assert proof_document.write([PROVED]) != proof_document.write([changed])


@pytest.mark.parametrize("change", [{"seconds": 9.0}, {"unneeded": ("some key is visible",)}])
def test_what_the_clock_decides_is_not_written(change: dict[str, object]) -> None:
    changed = replace(PROVED, **change)  # type: ignore[arg-type]
    assert proof_document.write([PROVED]) == proof_document.write([changed])


def test_families_are_counted_by_status_and_method() -> None:
    tables = proof_tables.build([PROVED, replace(PROVED, id="x", method="coq"), TESTED])
    softmax = next(row for row in tables.families if row.family == "softmax")
    assert tables.statuses == ("proved", "enclosed")
    assert softmax.cells == ("1 coq, 1 z3", "1 z3")
    assert softmax.claims == sum(c.family == "softmax" for c in CLAIMS)
    assert softmax.missing == softmax.owed - 1
    assert tables.total.claims == len(CLAIMS)


def test_gaps_are_named() -> None:
    found = gaps(PROVED, TESTED, replace(PROVED, id="b", status="open"), stale=("c",))
    assert "attention.prefix" in found["Owed a proof"]
    assert "softmax.row_sum" not in found["Owed a proof"]
    assert found["Covered in part"] == ("softmax.refines (enclosed)",)
    assert "attention.batch_invariant" in found["Left to tests"]
    assert found["Refuted or open"] == ("b: open",)
    assert found["Stale"] == ("c",)


def test_what_did_not_run_is_no_evidence() -> None:
    absent = replace(PROVED, status="unavailable", detail="coqc is not installed")
    found = gaps(absent)
    assert found["Not run"] == (f"{PROVED.id}: coqc is not installed",)
    assert "softmax.row_sum" in found["Owed a proof"]


def test_links_show_functions_properties_and_the_side_that_lacks() -> None:
    links = {link.claim.id: link for link in proof_tables.build([PROVED]).links}
    both, test = links["softmax.row_sum"], links["attention.prefix"]
    assert both.functions == ("masked_softmax",)
    assert both.properties == ("softmax.row_sum",)
    assert both.sides == "both"
    assert test.sides == "test only; owed: proof"
    assert links["softmax.penalty_leaks"].sides == "none; owed: proof"
    assert links["attention.batch_invariant"].sides == "test only"


def test_helpers_are_left_out_of_links() -> None:
    names = ("scalars.exp", "softmax._everywhere", "arithmetic.Format.__init__", "masks.visible")
    (first,) = PROVED.spec
    spec = tuple(replace(first, name=name) for name in names)
    links = {link.claim.id: link for link in proof_tables.build([replace(PROVED, spec=spec)]).links}
    assert links["softmax.row_sum"].functions == ("masks.visible",)


def test_the_copy_in_docs_names_every_obligation() -> None:
    # That its text is current too is compared by `make check-proofs`, which proves all of them.
    text = (Path(__file__).parents[2] / "docs" / "proofs.md").read_text()
    named = re.findall(r"^#### (.+)$", text, re.MULTILINE)
    assert named == [escape(o.id) for o in OBLIGATIONS], "make proofs"
