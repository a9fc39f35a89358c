"""prove: exit status, what is kept for the report, and when that is no longer evidence."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from assay.cli import store
from assay.cli.command import Status, UsageError
from assay.cli.main import main
from assay.cli.prove import status
from assay.proofs import crossing
from assay.proofs.fingerprint import fingerprint
from assay.proofs.obligation import Outcome
from tests.cli.test_report import PROVED

CHEAP = "attention.alignment/small"


@pytest.mark.parametrize(
    ("words", "ended"),
    [
        (("proved", "derived"), Status.HELD),
        (("proved", "open"), Status.UNANSWERED),
        (("refuted", "open"), Status.FINDINGS),
        ((), Status.UNANSWERED),
    ],
)
def test_refuted_is_1_and_open_is_3(words: tuple[str, ...], ended: Status) -> None:
    outcomes = [replace(PROVED, status=word) for word in words]  # type: ignore[arg-type]
    assert status(outcomes) is ended


def test_outcomes_are_printed_kept_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["prove", CHEAP, "--json", "p.json", "--markdown", "p.md", "--jobs", "1"]) == 0
    printed = capsys.readouterr()
    assert CHEAP in printed.out
    assert "1 exhaustive" in printed.out
    assert [o.id for o in store.load_proofs(Path(".assay"))] == [CHEAP]
    assert json.loads(Path("p.json").read_text())["outcomes"][0]["id"] == CHEAP
    assert "exhaustive" in Path("p.md").read_text()


FRESH = replace(PROVED, key=fingerprint(PROVED.theorem))


def save(directory: Path, *outcomes: Outcome) -> None:
    store.save_proofs(directory, outcomes, [PROVED.id, "b", "c"])


def test_outcomes_of_other_runs_are_kept_beside(tmp_path: Path) -> None:
    save(tmp_path, FRESH)
    save(tmp_path, replace(FRESH, id="b"), replace(FRESH, id="c"), replace(FRESH, id="gone"))
    save(tmp_path, replace(FRESH, id="b", status="open"))
    kept = {o.id: o.status for o in store.load_proofs(tmp_path)}
    assert kept == {PROVED.id: "proved", "b": "open", "c": "proved"}


def test_outcomes_of_other_sources_are_no_evidence_and_named(tmp_path: Path) -> None:
    save(tmp_path, FRESH, replace(FRESH, id="b", key="of other sources"))
    assert store.load_proofs(tmp_path) == (FRESH,)
    assert store.stale_proofs(tmp_path) == ("b",)


def test_a_second_run_proves_nothing_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["prove", CHEAP]) == 0
    assert "as kept" not in capsys.readouterr().out
    assert main(["prove", CHEAP]) == 0
    assert "1 of 1 as kept" in capsys.readouterr().out
    assert main(["prove", CHEAP, "--no-cache"]) == 0
    assert "as kept" not in capsys.readouterr().out


def test_queries_are_written_as_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    solved = "attention.alignment/integers"
    for _ in range(2):  # proved, and kept
        assert main(["prove", solved, "--smt", "smt"]) == 0
        files = sorted(Path("smt", solved).glob("*.smt2"))
        assert [f.name for f in files] == ["01.smt2", "02.smt2"]
        assert files[0].read_text().startswith(f"; {solved}\n")
        assert files[0].read_text().endswith("(check-sat)\n")
        shutil.rmtree("smt")


def test_smt_must_be_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("smt").write_text("")
    assert main(["prove", CHEAP, "--smt", "smt"]) == 2


def test_a_cross_check_without_solvers_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def absent() -> None:
        raise crossing.Missing("neither is installed")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("assay.proofs.discharge.require", absent)
    assert main(["prove", CHEAP, "--cross-check"]) == 2
    assert "neither is installed" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 2}'])
def test_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "proofs.json").write_text(text)
    with pytest.raises(UsageError, match=r"proofs\.json is damaged"):
        store.load_proofs(tmp_path)
