"""Exit status, JSON, JUnit, the weaknesses of a green result, and one finding a line."""

from __future__ import annotations

import json
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from assay.cli import outputs, summary
from assay.cli.command import Status
from assay.cli.weaknesses import FEW, weaknesses
from assay.properties.known import Entry, Known, apply
from assay.properties.results import Absent, Cell, CellKey, Result, result_from_json, to_json
from tests.cli.samples import FUTURE, HOSTILE, held

KEY = CellKey("b", "attention.scale", "float32")


def test_status_is_0_when_every_planned_cell_held(sound: Result) -> None:
    assert summary.status(sound) is Status.HELD


def test_unsupported_beside_held_cells_is_0_and_alone_is_3(sound: Result) -> None:
    other = Cell(KEY, "attention.scale", "unsupported")
    assert summary.status(replace(sound, cells=(*sound.cells, other), planned=4)) is Status.HELD
    assert summary.status(replace(sound, cells=(other,), planned=1)) is Status.UNANSWERED


def test_status_is_1_for_findings_even_when_unfinished(faulty: Result) -> None:
    assert summary.status(faulty) is Status.FINDINGS


def test_failing_cell_without_finding_is_1(sound: Result) -> None:
    flaky = Cell(KEY, "attention.scale", "flaky")
    assert summary.status(replace(sound, cells=(*sound.cells, flaky), planned=4)) is Status.FINDINGS


@pytest.mark.parametrize("change", [{"finished": False}, {"planned": 4}])
def test_status_is_3_when_cells_are_missing(sound: Result, change: dict[str, object]) -> None:
    assert summary.status(replace(sound, **change)) is Status.UNANSWERED  # type: ignore[arg-type]


def test_status_is_3_for_an_inconclusive_cell(sound: Result) -> None:
    cell = Cell(KEY, "attention.scale", "inconclusive")
    assert (
        summary.status(replace(sound, cells=(*sound.cells, cell), planned=4)) is Status.UNANSWERED
    )


def test_known_findings_do_not_count_and_stale_entries_do(faulty: Result, sound: Result) -> None:
    everything = Known((Entry("my-flash", "*", "expected"),))
    marked, stale = apply(everything, faulty)
    complete = tuple(c for c in marked.cells if c.verdict != "inconclusive")
    marked = replace(marked, cells=complete, planned=len(complete), finished=True)
    assert summary.status(marked, [str(s) for s in stale]) is Status.HELD
    _, stale = apply(Known((Entry("numpy.*", "*", "was wrong once"),)), sound)
    assert summary.status(sound, [str(s) for s in stale]) is Status.FINDINGS


def test_finding_is_one_line_with_its_replay_command() -> None:
    assert summary.finding_line(FUTURE) == (
        "my-flash (eval) attention.future_zero@keys float32: out[0,0,1,0]=0.412, should be 0.398 "
        "(error 31 x bound) [T=5 offset=1] replay: assay replay 7f3a0b1c"
    )


def test_printed_text_is_one_line_and_steers_no_terminal(
    faulty: Result, capsys: pytest.CaptureFixture[str]
) -> None:
    summary.show(faulty, Status.FINDINGS, (), contracts=True)
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert "\x00" not in printed
    assert "alert('x')" in printed


def test_json_holds_everything_and_no_number_that_json_lacks(faulty: Result) -> None:
    document = json.loads(
        outputs.as_json(faulty, Status.FINDINGS, ("old entry",)), parse_constant=pytest.fail
    )
    assert document["schema"] == outputs.SCHEMA
    assert document["status"] == 1
    assert document["stale_known"] == ["old entry"]
    assert len(document["result"]["cells"]) == len(faulty.cells)
    scores = [c["finding"]["score"] for c in document["result"]["cells"] if c["finding"]]
    assert scores == [31.0, "inf"]


def test_junit_has_a_case_for_each_cell_and_tells_the_verdicts_apart(faulty: Result) -> None:
    root = ET.fromstring(outputs.as_junit(faulty, ("old entry",)))
    cases = [case for suite in root for case in suite if suite.get("name") != "campaign"]
    assert len(cases) == len(faulty.cells) + len(faulty.absent)
    kinds = sorted(case[0].tag if len(case) else "passed" for case in cases)
    assert kinds == [
        "error",
        "failure",
        "failure",
        "passed",
        "passed",
        "passed",
        "passed",
        "skipped",
        "skipped",
    ]
    whole = next(suite for suite in root if suite.get("name") == "campaign")
    assert whole.get("errors") == "1"
    assert whole.get("failures") == "1"
    assert "assay replay 7f3a0b1c" in outputs.as_junit(faulty)


def test_an_absent_backend_is_told_apart_and_is_no_pass(
    sound: Result, capsys: pytest.CaptureFixture[str]
) -> None:
    result = replace(sound, absent=(Absent("chip.fast", "no chip", "pip install 'assay[chip]'"),))
    stored = json.loads(json.dumps(to_json(result)))
    assert result_from_json(stored).absent == result.absent
    summary.show(result, Status.HELD, ())
    printed = capsys.readouterr().out
    assert "chip.fast (absent)" in printed
    assert "chip.fast: no chip (pip install 'assay[chip]')" in printed
    assert "3 held, 1 backend absent" in printed
    suite = next(s for s in ET.fromstring(outputs.as_junit(result)) if s.get("name") == "chip.fast")
    assert (suite.get("tests"), suite.get("skipped")) == ("1", "1")


def test_backends_absent_for_one_reason_share_a_line(sound: Result) -> None:
    absent = tuple(Absent(name, "no chip") for name in ("chip.b", "chip.a"))
    (doubt,) = weaknesses(replace(sound, absent=absent))
    assert doubt.entries == ("2 backends: no chip: chip.a, chip.b",)


def test_many_absent_backends_are_one_row_and_each_is_counted_and_stored(
    sound: Result, capsys: pytest.CaptureFixture[str]
) -> None:
    many = tuple(Absent(f"chip.{n}", "no chip", "buy one") for n in range(34))
    result = replace(sound, absent=(*many, Absent("other.chip", "no other chip")))
    summary.show(result, Status.HELD, ())
    printed = capsys.readouterr().out
    assert printed.count("(absent)") == 2
    assert "34 backends (absent)" in printed
    assert printed.count("no chip (buy one)") == 1
    assert "other.chip: no other chip" in printed
    assert "35 backends absent" in printed
    assert all(entry.backend in printed for entry in many)
    assert len(json.loads(outputs.as_json(result, Status.HELD, ()))["result"]["absent"]) == 35
    suites = ET.fromstring(outputs.as_junit(result))
    assert sum(int(suite.get("skipped", "0")) for suite in suites) == 35


def test_junit_of_a_known_finding_is_skipped(faulty: Result) -> None:
    marked, _ = apply(Known((Entry("my-flash", "attention.future_zero", "expected"),)), faulty)
    assert "known: expected" in outputs.as_junit(marked)


def test_sound_campaign_of_many_examples_has_no_weakness(sound: Result) -> None:
    assert weaknesses(sound) == ()


@pytest.mark.parametrize(
    ("title", "change"),
    [
        ("Not run", {"planned": 9}),
        ("Not run", {"finished": False}),
        ("Not run", {"cells": ()}),
        ("Notes of the campaign", {"notes": ("the budget was cut",)}),
        ("Unsupported", {"cells": (Cell(KEY, "x", "unsupported", reason="no GPU"),)}),
        ("Inconclusive", {"cells": (Cell(KEY, "x", "inconclusive"),)}),
        ("Few examples", {"cells": (replace(held("b", "x"), examples=FEW - 1),)}),
        ("Weaker promises", {"cells": (replace(held("b", "x"), grade="weaker promise"),)}),
        ("Weak declarations", {"contracts": {"b": {"empty_row": "nan"}}}),
        ("Weak declarations", {"contracts": {"b": {"deterministic": False}}}),
        ("Weak declarations", {"contracts": {"b": {"accumulate": "bfloat16"}}}),
    ],
)
def test_each_weakness_is_said(sound: Result, title: str, change: dict[str, object]) -> None:
    found = weaknesses(replace(sound, **change))  # type: ignore[arg-type]
    assert title in [w.title for w in found]


def test_known_findings_and_stale_entries_are_weaknesses(faulty: Result) -> None:
    marked, _ = apply(Known((Entry("my-flash", "*", "expected"),)), faulty)
    titles = [w.title for w in weaknesses(marked, ("gone",))]
    assert {"Known findings", "Stale known findings"} <= set(titles)


def test_hostile_text_survives_xml() -> None:
    assert outputs._xml(HOSTILE).count("?") == 2
