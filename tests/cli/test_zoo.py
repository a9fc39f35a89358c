"""zoo: exit status, what is printed and written, and what is kept when it is stopped."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from assay.cli.command import Status
from assay.cli.main import main
from assay.zoo.catalogue import CONTROLS, FAULTS
from assay.zoo.hunt import Clearance, Hunt, Record, Sighting, Sweep, Task

FAULT, OTHER = FAULTS[0], FAULTS[1]
CONTROL = CONTROLS[0]
BOTH = ["--faults", f"{FAULT.name},{OTHER.name}", "--controls", CONTROL.name]
SEEN = Sighting(
    FAULT.claims[0], "float32", "violated", "out[0]=1", "L=2|S=3", FAULT.hint, 7, 0.5, 0.25, 3
)
CAUGHT = (Hunt(FAULT, 0, SEEN, SEEN, 2, 9), Hunt(OTHER, 0, SEEN, SEEN, 2, 9))
MISSED = Hunt(OTHER, 0, cells=40, examples=800)
CLEARED = Clearance(CONTROL, 0, 30, 600, worst=0.5)
SWEPT = (
    Sweep(FAULT, ("attention.refines", "attention.scale"), ("attention.refines",)),
    Sweep(OTHER, ("attention.refines",), ()),
)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Record | type[BaseException]]:
    """What the runs give, in place of running them; an exception is raised where it stands."""
    given: list[Record | type[BaseException]] = []

    def spread(tasks: Sequence[Task], jobs: int) -> Iterator[Record]:
        for record in given:
            if isinstance(record, type):
                raise record
            yield record

    monkeypatch.setattr("assay.zoo.spread.spread", spread)
    monkeypatch.chdir(tmp_path)
    return given


def test_all_caught_and_no_alarm_is_0(runs, capsys) -> None:  # type: ignore[no-untyped-def]
    runs += [*CAUGHT, CLEARED]
    assert main(["zoo", *BOTH]) == Status.HELD
    printed = capsys.readouterr().out
    assert FAULT.name in printed
    assert CONTROL.name in printed
    assert "2 of 2 (100%)" in printed
    assert "0 in 600 cases" in printed


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (MISSED, f"missed (seed 0): {OTHER.name}"),
        (Hunt(OTHER, 0, first=SEEN), f"wrong reason (seed 0): {OTHER.name}"),
        (Clearance(CONTROL, 0, alarms=("it is red",)), "false alarm (seed 0): it is red"),
        (Clearance(CONTROL, 0, troubles=("no case",)), "no verdict (seed 0): no case"),
    ],
)
def test_what_is_missed_or_accused_is_1_and_told(bad, said, runs, capsys) -> None:  # type: ignore[no-untyped-def]
    runs += [CAUGHT[0], bad]
    assert main(["zoo", *BOTH]) == Status.FINDINGS
    assert said in capsys.readouterr().out


def test_a_stop_keeps_what_was_done_and_is_3(runs, capsys) -> None:  # type: ignore[no-untyped-def]
    runs += [CAUGHT[0], KeyboardInterrupt]
    line = ["zoo", *BOTH, "--json", "z.json", "--markdown", "z.md"]
    assert main(line) == Status.UNANSWERED
    assert "stopped after 1 of 3 runs" in capsys.readouterr().out
    assert [f["name"] for f in json.loads(Path("z.json").read_text())["faults"]] == [FAULT.name]
    assert "**stopped after 1 of 3 runs.**" in Path("z.md").read_text()


def test_nothing_that_can_run_here_is_3(runs, capsys) -> None:  # type: ignore[no-untyped-def]
    runs += [Clearance(CONTROL, 0, absent="no torch")]
    assert main(["zoo", "--controls", CONTROL.name]) == Status.UNANSWERED
    assert f"absent: {CONTROL.name}: no torch" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["--faults", "nosuch*"], "--faults='nosuch*' matches nothing; valid: assay list faults"),
        (
            ["--controls", "nosuch*"],
            "--controls='nosuch*' matches nothing; valid: assay list controls",
        ),
        (["--faults", "top-lefd"], "did you mean 'top-left'? valid: assay list faults"),
        (["--repeat", "0"], "--repeat=0 must be at least 1"),
        (["--jobs", "0"], "--jobs=0 must be at least 1"),
        (["--profile", "fast"], "profile='fast' matches nothing"),
        (["--controls", "*", "--all-claims"], "--all-claims asks about faults"),
        (["--json", "no/such/z.json"], "must be a file in a directory that exists"),
    ],
)
def test_what_does_not_exist_is_refused(line, said, runs, capsys) -> None:  # type: ignore[no-untyped-def]
    assert main(["zoo", *line]) == Status.USAGE
    assert said in capsys.readouterr().err


def test_to_name_faults_leaves_the_controls_out_and_the_other_way_round() -> None:
    from assay.cli.main import parser
    from assay.cli.zoo import _plan

    def sizes(*line: str) -> tuple[int, int]:
        plan = _plan(parser().parse_args(["zoo", *line]))
        return len(plan.faults), len(plan.controls)

    assert sizes() == (len(FAULTS), len(CONTROLS))
    assert sizes("--faults", FAULT.name) == (1, 0)
    assert sizes("--controls", CONTROL.name) == (0, 1)
    assert sizes("--faults", FAULT.name, "--controls", "*") == (1, len(CONTROLS))


def test_seeds_follow_the_first() -> None:
    from assay.cli.main import parser
    from assay.cli.zoo import _plan

    plan = _plan(parser().parse_args(["zoo", "--seed", "5", "--repeat", "3"]))
    assert plan.seeds == (5, 6, 7)


def test_the_page_has_every_section_and_whole_tables(runs) -> None:  # type: ignore[no-untyped-def]
    runs += [*CAUGHT, CLEARED, *SWEPT]
    main(["zoo", *BOTH, "--all-claims", "--markdown", "z.md"])
    page = Path("z.md").read_text()
    sections = ["Summary", "Not caught", "Faults", "Claims", "Controls"]
    assert re.findall(r"^## (.*)$", page, re.MULTILINE) == sections
    assert f"`assay zoo --profile quick --repeat 1 --seed 0 --faults '{BOTH[1]}'" in page
    assert "Nothing: every fault was caught with every seed." in page
    assert f"- {FAULT.name}: attention.refines" in page
    tables = re.findall(r"(?:^\|.*\|\n)+", page, re.MULTILINE)
    for table in tables:
        bars = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(bars) == 1, table


def test_a_page_without_sweeps_says_how_to_get_them(runs) -> None:  # type: ignore[no-untyped-def]
    runs += [CAUGHT[0], MISSED]
    main(["zoo", "--faults", f"{FAULT.name},{OTHER.name}", "--markdown", "z.md"])
    page = Path("z.md").read_text()
    assert page.startswith("# Detection by the quick profile\n")
    assert "`assay zoo --all-claims`" in page
    assert "## Controls" not in page
    assert f"- missed (seed 0): {OTHER.name}" in page.replace("\\", "")


def test_a_page_about_controls_alone_is_called_so(runs) -> None:  # type: ignore[no-untyped-def]
    runs += [CLEARED]
    main(["zoo", "--controls", CONTROL.name, "--markdown", "z.md"])
    page = Path("z.md").read_text()
    assert page.startswith("# Sound kernels under the quick profile\n")
    assert re.findall(r"^## (.*)$", page, re.MULTILINE) == ["Summary", "Controls"]


def test_json_holds_every_run(runs) -> None:  # type: ignore[no-untyped-def]
    runs += [*CAUGHT, CLEARED, *SWEPT]
    main(["zoo", *BOTH, "--all-claims", "--json", "z.json"])
    document = json.loads(Path("z.json").read_text())
    assert document["schema"] == 1
    first = document["faults"][0]
    assert first["name"] == FAULT.name
    assert first["outcome"] == first["runs"][0]["outcome"] == "caught"
    assert first["runs"][0]["first"]["examples"] == 7
    assert document["controls"][0]["examples"] == 600
    assert document["claims"]["sole"] == {FAULT.name: "attention.refines"}
    assert document["claims"]["unneeded"] == ["attention.scale"]


def test_claims_are_printed_when_they_were_asked(runs, capsys) -> None:  # type: ignore[no-untyped-def]
    runs += [*CAUGHT, *SWEPT]
    main(["zoo", "--faults", f"{FAULT.name},{OTHER.name}", "--all-claims"])
    printed = capsys.readouterr().out
    assert f"caught by one claim only: {FAULT.name}: attention.refines" in printed
    assert "claims that no fault needs (1): attention.scale" in printed


def test_the_front_page_says_what_the_page_of_detection_says() -> None:
    root = Path(__file__).parents[2]
    front = " ".join((root / "README.md").read_text().split())
    page = (root / "docs" / "detection.md").read_text()
    alarms = re.search(
        r"false alarms \| (0 in \d+ cases)", (root / "docs" / "controls.md").read_text()
    )
    assert alarms is not None
    assert alarms[1].replace("0 in", "0 false alarms in") in front
    caught, hard = re.findall(r"\| (?:faults caught .*|hard ones .*) \| (\d+ of \d+) \(", page)
    assert f"{caught} faults are caught for the right reason with every one of three seeds" in front
    assert f"{hard.replace(' of ', ' of the ')} hard ones" in front
