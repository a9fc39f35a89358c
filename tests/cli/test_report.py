"""The report loads nothing, escapes what is foreign, and says first what weakens it."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from assay.cli.report import markdown, model, pages, picture, plots
from assay.cli.report.mathml import mathml
from assay.proofs.obligation import (
    Assumption,
    Opinion,
    Outcome,
    Script,
    SpecFunction,
    TwinOutcome,
)
from assay.properties.results import Result
from assay.spec.claims import CLAIMS
from tests.cli.samples import HOSTILE

PROVED = Outcome(
    id="softmax.row_sum/any_length", claim="softmax.row_sum", statement=r"\sum_j w_j = 1",
    generality="any number of keys", status="proved", method="z3", solver="z3", version="5.4.1",
    seconds=0.05, checks=3, detail="3 queries",
    assumptions=(Assumption("some key is visible", "a = (1, 0)"),),
    trust=("the law of exp",), twin=TwinOutcome("the sum is 2", True, "n = 1"),
    spec=(SpecFunction("masked_softmax", "spec/softmax.py", 12, "abcdef0123"),),
    theorem="assay.proofs.theorems.softmax_reals",
)  # fmt: skip


class Tags(HTMLParser):
    """All tags and attributes of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.ids: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect."""
        self.tags.append(tag)
        self.attributes += attrs
        self.ids += [value or "" for name, value in attrs if name == "id"]


def render(result: Result, outcomes: tuple[Outcome, ...] = (PROVED,)) -> str:
    """The page, with a hostile reproducer."""
    return pages.html(model.build(result, outcomes), lambda finding: HOSTILE)


def test_foreign_text_is_never_markup(faulty: Result) -> None:
    page = render(faulty)
    assert "script" not in Tags(page).tags
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page
    assert "\x00" not in page
    assert "\x1b" not in page


def test_hostile_backend_names_reach_no_attribute_or_plot(faulty: Result) -> None:
    name = '"><img src=x onerror=alert(1)>$\\alpha$'
    cells = tuple(replace(c, key=replace(c.key, backend=name)) for c in faulty.cells)
    page = render(replace(faulty, cells=cells, contracts={name: {"name": name}}))
    found = Tags(page)
    assert "img" not in found.tags
    assert not [n for n, _ in found.attributes if n.startswith("on")]


def test_page_loads_nothing_from_anywhere(faulty: Result) -> None:
    page = render(faulty)
    found = Tags(page)
    assert not {"script", "link", "iframe", "object", "embed", "base", "form"} & set(found.tags)
    assert not [(n, v) for n, v in found.attributes if n in ("src", "action", "data")]
    links = [v for n, v in found.attributes if n.endswith("href")]
    assert all(v is not None and v.startswith("#") for v in links), links
    assert "url(http" not in page
    assert "@import" not in page


def test_every_link_and_label_leads_somewhere_in_the_page(faulty: Result) -> None:
    found = Tags(render(faulty))
    wanted = {
        v.removeprefix("#") for n, v in found.attributes if n in ("href", "aria-labelledby") and v
    }
    assert wanted <= set(found.ids)
    assert len(found.ids) == len(set(found.ids))


def test_doubts_come_before_everything_else(faulty: Result) -> None:
    page = render(faulty)
    places = [
        page.index(f'<section id="{name}"')
        for name in ("doubts", "findings", "matrix", "evidence", "proofs")
    ]
    assert places == sorted(places)
    assert "2 of 10 planned cells" in page


def test_absent_backends_are_named_though_they_have_no_column(faulty: Result) -> None:
    for text in (render(faulty), markdown.report(model.build(faulty, ()))):
        assert "Absent, and so without a column: chip.fast." in text


def test_verdicts_can_be_read_without_colour(faulty: Result) -> None:
    page = render(faulty)
    for verdict in ("held", "violated", "crashed", "unsupported", "inconclusive"):
        assert f'aria-label="float32 {verdict}"' in page or f"{verdict}</span>" in page
    assert len(set(model.SYMBOLS.values())) == len(model.SYMBOLS)


def test_missing_proofs_are_a_doubt_and_present_ones_are_shown(sound: Result) -> None:
    assert "every claim below rests on tests alone" in render(sound, ())
    page = render(sound)
    assert "rests on tests alone" not in page
    assert "some key is visible" in page
    assert "the sum is 2" in page


def test_twin_that_was_not_refuted_is_said(sound: Result) -> None:
    page = render(sound, (replace(PROVED, twin=TwinOutcome("the sum is 2", False, "")),))
    assert "not refuted, so this obligation shows nothing" in page


@pytest.mark.parametrize(
    ("outcome", "title"),
    [
        (replace(PROVED, status="open", detail="timeout"), "Proofs that failed"),
        (replace(PROVED, status="refuted", detail="n = 2"), "Proofs that failed"),
        (replace(PROVED, twin=TwinOutcome("x", False, "")), "Twins not refuted"),
    ],
)
def test_what_weakens_a_proof_is_a_doubt(sound: Result, outcome: Outcome, title: str) -> None:
    assert title in [w.title for w in model.build(sound, (outcome,)).weaknesses]
    assert title not in [w.title for w in model.build(sound, (PROVED,)).weaknesses]


def test_texts_derivations_and_spare_assumptions_are_shown(sound: Result) -> None:
    outcome = replace(
        PROVED,
        scripts=(Script("the sum", "abc", "(assert (< x 1))"),),
        derivation=((r"L = x^2", r"\frac{a}{b} = 1"),),
        unneeded=("some key is visible",),
        resources=12345,
        cross=(Opinion("cvc5", "1.4", 1, 0, 0, 0.1),),
    )
    page = render(sound, (outcome,))
    for text in (
        "(assert (&lt; x 1))",
        "<mfrac>",
        "12,345",
        "cvc5 1.4: 1 agrees",
        "z3 5.4.1, cvc5",
    ):
        assert text in page
    assert "the core of no query holds it" in page
    assert "the core of no query holds it" not in render(sound)


def test_stale_proofs_are_a_doubt(sound: Result) -> None:
    page = model.build(sound, (PROVED,), expired=("softmax.x/y",))
    (stale,) = [w for w in page.weaknesses if w.title == "Stale proofs"]
    assert stale.entries == ("softmax.x/y",)
    assert "Stale proofs" not in [w.title for w in model.build(sound, (PROVED,)).weaknesses]


def test_claims_without_evidence_are_a_doubt(sound: Result) -> None:
    (bare,) = [w for w in model.build(sound, (PROVED,)).weaknesses if w.title == "No evidence"]
    assert "attention.prefix" in bare.entries
    assert "attention.refines" not in bare.entries
    assert "softmax.row_sum" not in bare.entries


def test_evidence_is_ordered_and_never_calls_a_test_a_proof(faulty: Result) -> None:
    evidence = {
        e.claim.id: [word for word, _ in e.entries] for e in model.build(faulty, (PROVED,)).evidence
    }
    assert evidence["softmax.row_sum"] == ["proved"]
    assert evidence["attention.refines"] == ["tested", "refuted"]
    assert evidence["attention.prefix"] == []


def test_worst_variant_decides_the_badge(sound: Result) -> None:
    first = sound.cells[0]
    variant = replace(
        first, key=replace(first.key, property=f"{first.claim}@other"), verdict="violated"
    )
    page = model.build(replace(sound, cells=(first, variant)))
    assert [b.verdict for b in page.rows[0].columns[0]] == ["violated"]


def test_findings_of_one_cause_are_told_once(faulty: Result) -> None:
    finding = next(c.finding for c in faulty.cells if c.finding)
    assert finding is not None
    again = replace(
        finding,
        id="7f3a9999",
        cell=replace(finding.cell, dtype="float64"),
        summary="T=50 offset=10",
    )
    cells = tuple(c for c in faulty.cells if c.finding is None or c.finding is finding)
    both = replace(faulty, cells=(*cells, replace(cells[3], key=again.cell, finding=again)))
    (cause,) = model.build(both).causes
    assert cause.first.id == finding.id
    assert [f.id for f in cause.others] == ["7f3a9999"]


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda c: c.id)
def test_every_claim_is_typeset(claim: object) -> None:
    formula = claim.formula  # type: ignore[attr-defined]
    text = mathml(formula)
    assert text.startswith("<math")
    # A command that the converter does not know stays in the text with its backslash.
    assert not re.search(r"\\[a-zA-Z]", text), text


def test_formula_that_cannot_be_converted_is_shown_as_it_is() -> None:
    assert mathml(r"\left( a <") == r"<code>\left( a &lt;</code>"


@pytest.mark.parametrize("values", [None, "x", [], [[]], [[1], [1, 2]], [["a"]], {"a": 1}])
def test_picture_of_no_array_is_empty(values: object) -> None:
    assert picture.picture("error", values) == ""


def test_picture_shows_non_finite_values_and_cuts_large_arrays() -> None:
    assert 'class="nonfinite"' in picture.picture("error", [["inf", 1.0]])
    large = picture.picture("mask", [[1] * 100] * 90)
    assert "90 by 100 (its corner)" in large
    assert large.count("<rect") == picture.LIMIT**2


def test_plot_follows_the_colour_of_the_page(sound: Result) -> None:
    drawn = plots.scores(sound.cells)
    assert "currentColor" in drawn
    assert "#010203" not in drawn
    assert plots.scores([replace(c, worst=0.0) for c in sound.cells]) == ""


def test_markdown_escapes_and_holds_every_finding(faulty: Result) -> None:
    text = markdown.report(model.build(faulty, (PROVED,)))
    assert "<script>" not in text
    for finding in faulty.findings:
        assert finding.id in text
    assert "softmax.row\\_sum" in text
