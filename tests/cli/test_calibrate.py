"""calibrate: exit status, what is printed and written, and going on where a run was stopped."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from assay.cli.command import Status
from assay.cli.main import main
from assay.zoo.calibration.alarms import AlarmCount
from assay.zoo.calibration.calibration import Records
from assay.zoo.calibration.comparison import Caught
from assay.zoo.calibration.rules import RULES
from assay.zoo.calibration.sensitivity import EXTENTS, Threshold
from assay.zoo.catalogue import CONTROLS, FAULTS

NAMES = [rule.name for rule in RULES]
ONE = ["--ops", "attention", "--dtypes", "float32"]
FEW = [*ONE, "--faults", FAULTS[0].name, "--controls", CONTROLS[0].name]
CAUGHT = Caught(FAULTS[0].name, "mask", "hidden", dict.fromkeys(NAMES, False), "caught")
QUIET = AlarmCount(
    CONTROLS[0].name, "attention", "float32", "typical", dict.fromkeys(NAMES, 9), {"ONNX": 4}
)
ERRORS = tuple(
    Threshold("attention", "float32", source, extent, name, (1e-3, math.inf, 1e-3), 0)
    for source in ("drawn", "typical")
    for extent in EXTENTS
    for name in NAMES
)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Records | type[BaseException]]:
    """What the tasks give, in place of running them; an exception is raised where it stands."""
    given: list[Records | type[BaseException]] = []

    def spread(tasks: Sequence[Callable[[], Records]], jobs: int) -> Iterator[Records]:
        for _ in tasks:
            record = given.pop(0)
            if isinstance(record, type):
                raise record
            yield record

    monkeypatch.setattr("assay.zoo.spread.spread", spread)
    monkeypatch.chdir(tmp_path)
    return given


def whole() -> list[Records | type[BaseException]]:
    drawn = [t for t in ERRORS if t.source == "drawn"]
    typical = [t for t in ERRORS if t.source == "typical"]
    return [(CAUGHT,), (QUIET,), tuple(drawn), tuple(typical)]


def test_all_that_is_measured_is_shown(runs, capsys) -> None:  # type: ignore[no-untyped-def]
    runs += whole()
    assert main(["calibrate", *FEW]) == Status.HELD
    printed = capsys.readouterr().out
    assert "1 of 1" in printed
    assert "4 of 9" in printed
    assert "1.0e-03" in printed
    assert all(name in printed for name in NAMES[1:])


def test_an_alarm_of_assays_own_is_1(runs) -> None:  # type: ignore[no-untyped-def]
    accused = AlarmCount("x", "attention", "float32", "drawn", {"assay": 9}, {"assay": 1})
    runs += [(accused,)]
    assert main(["calibrate", *FEW, "--only", "alarms"]) == Status.FINDINGS


def test_page_and_plots(runs, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    runs += whole()
    assert main(["calibrate", *FEW, "--markdown", "page.md"]) == Status.HELD
    page = (tmp_path / "page.md").read_text()
    for heading in ("## The rules", "## Planted faults", "## False alarms", "### float32"):
        assert heading in page
    for rule in RULES[1:]:
        assert rule.source.partition(" ")[0] in page
    for plot in ("page-errors.svg", "page-faults.svg"):
        assert f"({plot})" in page
        assert (tmp_path / plot).read_text().startswith("<?xml")
    cells = {line.count("|") for line in page.splitlines() if line.startswith("| assay")}
    assert len(cells) > 1


def test_a_stopped_run_is_kept_and_gone_on_with(runs, tmp_path: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    runs += [*whole()[:2], KeyboardInterrupt]
    assert main(["calibrate", *FEW, "--json", "a.json"]) == Status.UNANSWERED
    assert "stopped after 2 of 4 measurements" in capsys.readouterr().out
    runs += whole()[2:]
    assert main(["calibrate", *FEW, "--resume", "a.json", "--json", "b.json"]) == Status.HELD
    record = json.loads((tmp_path / "b.json").read_text())
    assert record["caught"][0]["campaign"] == "caught"
    assert record["alarms"][0]["alarms"] == {"ONNX": 4}
    assert len(record["errors"]) == len(ERRORS)
    assert record["errors"][0]["errors"] == [1e-3, "inf", 1e-3]
    assert not record["stopped"]
    assert (record["caught"][0]["kind"], record["caught"][0]["hard"]) == ("mask", FAULTS[0].hard)


def test_what_left_the_zoo_is_not_resumed(runs, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    gone = replace(CAUGHT, fault="gone"), replace(QUIET, control="gone")
    runs += [gone[:1], gone[1:], KeyboardInterrupt]
    main(["calibrate", *FEW, "--json", "a.json"])
    runs += whole()
    assert main(["calibrate", *FEW, "--resume", "a.json", "--json", "b.json"]) == Status.HELD
    record = json.loads((tmp_path / "b.json").read_text())
    assert [c["fault"] for c in record["caught"]] == [CAUGHT.fault]
    assert {c["control"] for c in record["alarms"]} == {QUIET.control}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--only", "speed"], "--only='speed' matches nothing; valid: faults, alarms, errors"),
        (["--ops", "nothing"], "--ops='nothing' matches nothing; valid: attention"),
        (["--dtypes", "float8"], "valid: float32, bfloat16, float16"),
        (["--faults", "nothing"], "--faults='nothing'"),
        (["--controls", "nothing"], "--controls='nothing'"),
        (["--cases", "0"], "--cases=0 must be at least 1"),
        (["--jobs", "0"], "--jobs=0 must be at least 1"),
        (["--profile", "slow"], "profile='slow'"),
        (["--markdown", "no/such/page.md"], "--markdown='no/such/page.md'"),
        (["--resume", "none.json"], "none.json"),
    ],
)
def test_wrong_use_is_2(runs, capsys, options: list[str], said: str) -> None:  # type: ignore[no-untyped-def]
    assert main(["calibrate", *options]) == Status.USAGE
    assert said in capsys.readouterr().err


def test_records_of_another_seed_are_refused(runs, capsys, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    runs += whole()
    main(["calibrate", *FEW, "--json", "a.json"])
    assert main(["calibrate", "--seed", "1", "--resume", "a.json"]) == Status.USAGE
    assert "seed=0, not 1" in capsys.readouterr().err
    (tmp_path / "bad.json").write_text("{}")
    assert main(["calibrate", "--resume", "bad.json"]) == Status.USAGE
    assert "is no JSON of assay calibrate" in capsys.readouterr().err


def test_the_front_page_shows_the_rows_of_the_page() -> None:
    root = Path(__file__).parents[2]
    page = (root / "docs/calibration.md").read_text().splitlines()
    front = (root / "README.md").read_text().splitlines()
    head = next(i for i, line in enumerate(front) if line.startswith("| judged by |"))
    shown = [line for line in front[head : head + 3 + len(RULES)] if line.startswith("|")]
    assert len(shown) == 3 + len(RULES)
    assert set(shown) <= set(page)
