"""prove: exit status, what is kept for the report, and when that is no longer evidence."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from assay.cli import store
from assay.cli.command import Status, UsageError
from assay.cli.main import main
from assay.cli.prove import status
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


def test_outcomes_of_other_runs_are_kept_beside(tmp_path: Path) -> None:
    store.save_proofs(tmp_path, [PROVED])
    store.save_proofs(tmp_path, [replace(PROVED, id="b"), replace(PROVED, id="c")])
    store.save_proofs(tmp_path, [replace(PROVED, id="b", status="open")])
    kept = {o.id: o.status for o in store.load_proofs(tmp_path)}
    assert kept == {PROVED.id: "proved", "b": "open", "c": "proved"}


def test_outcomes_of_other_sources_are_no_evidence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.save_proofs(tmp_path, [PROVED])
    assert store.load_proofs(tmp_path) == (PROVED,)
    monkeypatch.setattr(store, "source_fingerprint", lambda: "another")
    assert store.load_proofs(tmp_path) == ()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 1}'])
def test_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "proofs.json").write_text(text)
    with pytest.raises(UsageError, match=r"proofs\.json is damaged"):
        store.load_proofs(tmp_path)
