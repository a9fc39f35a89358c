"""run, report, replay and repro on a small real campaign; the scaffold; Ctrl-C in the middle."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from assay.cli.command import Status
from assay.cli.main import main
from assay.properties.journal import Journal
from assay.properties.results import Result

SRC = str(Path(__file__).resolve().parents[2] / "src")

FAULTY = """
import numpy as np
from assay.impl import Contract, NumpyBackend, implements

class Faulty(NumpyBackend):
    contract = Contract(name="faulty<b>", dtypes=("float32",), gradients=False)

    @implements("masked_softmax")
    def softmax(self, scores, *, mask=None):
        allowed = True if mask is None else np.broadcast_to(mask, scores.shape)
        e = np.exp(scores - scores.max(-1, keepdims=True, initial=-1e30)) * allowed
        return (e * np.float32(1.5)).astype(scores.dtype)
"""

SELECT = [
    "--claims",
    "softmax.row_sum,softmax.blocked_zero",
    "--no-isolate",
    "--jobs",
    "1",
    "--seed",
    "5",
]


@pytest.fixture(scope="module")
def faulty_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a backend, and the campaign that found its fault."""
    folder = tmp_path_factory.mktemp("faulty")
    (folder / "kernel.py").write_text(FAULTY)
    line = [sys.executable, "-m", "assay", "run", "kernel.py:Faulty", *SELECT]
    line += ["--json", "r.json", "--junit", "r.xml", "--html", "r.html", "--markdown", "r.md"]
    done = subprocess.run(
        line,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": SRC},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == Status.FINDINGS, done.stderr
    (folder / "out.txt").write_text(done.stdout)
    return folder


def finding_id(folder: Path) -> str:
    cells = json.loads((folder / "r.json").read_text())["result"]["cells"]
    return next(c["finding"]["id"] for c in cells if c["finding"])


def test_finding_is_printed_on_one_line_with_its_id(faulty_run: Path) -> None:
    lines = (faulty_run / "out.txt").read_text().splitlines()
    (found,) = [line for line in lines if "replay: assay replay" in line]
    assert re.fullmatch(
        r"faulty<b> softmax\.\S+ of masked_softmax float32: .* replay: assay replay [0-9a-f]{8}",
        found,
    )
    assert found.endswith(finding_id(faulty_run))


def test_all_files_are_written(faulty_run: Path) -> None:
    assert json.loads((faulty_run / "r.json").read_text())["status"] == 1
    assert "<failure" in (faulty_run / "r.xml").read_text()
    assert "faulty&lt;b&gt;" in (faulty_run / "r.html").read_text()
    assert "Script that reproduces it" in (faulty_run / "r.html").read_text()
    assert finding_id(faulty_run) in (faulty_run / "r.md").read_text()


def test_report_of_the_newest_campaign_goes_beside_the_journal(
    faulty_run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(faulty_run)
    assert main(["report"]) == 0
    printed = capsys.readouterr().out.strip()
    assert printed == str(faulty_run / ".assay" / "report.html")
    assert Path(printed).read_text().startswith("<!doctype html>")
    assert main(["report", "--campaign", "zzz"]) == Status.USAGE
    assert "campaign 'zzz' does not exist" in capsys.readouterr().err


def test_report_of_a_campaign_without_cells_is_2(
    tmp_path: Path, sound: Result, capsys: pytest.CaptureFixture[str]
) -> None:
    with Journal(tmp_path, create=True) as journal:
        journal.begin(sound, "fingerprint")
    assert main(["report", "--directory", str(tmp_path)]) == Status.USAGE
    assert "ran no cell" in capsys.readouterr().err


def test_report_can_be_opened_in_a_browser(
    sound_journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    line = ["report", "--open", "--json", str(sound_journal / "r.json")]
    assert main([*line, "--directory", str(sound_journal)]) == 0
    assert opened == [(sound_journal / "report.html").as_uri()]


def test_replay_takes_a_prefix_and_is_1_until_it_is_mended(
    faulty_run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shutil.copytree(faulty_run, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    prefix = finding_id(faulty_run)[:5]
    assert main(["replay", prefix, "--no-isolate"]) == Status.FINDINGS
    assert finding_id(faulty_run) in capsys.readouterr().out
    Path("kernel.py").write_text(
        FAULTY.replace("(e * np.float32(1.5))", "(e / np.maximum(e.sum(-1, keepdims=True), 1e-30))")
    )
    assert main(["replay", prefix, "--no-isolate"]) == Status.HELD
    assert "does not fail any more" in capsys.readouterr().out
    assert main(["replay", "x"]) == Status.USAGE
    assert finding_id(faulty_run) in capsys.readouterr().err


def test_repro_writes_a_script_that_fails_without_assay(
    faulty_run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(faulty_run)
    bug = tmp_path / "bug.py"
    assert main(["repro", finding_id(faulty_run), "-o", str(bug), "--no-isolate"]) == 0
    (tmp_path / "assay.py").write_text("raise ImportError('assay is not here')")
    done = subprocess.run(
        [sys.executable, str(bug)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("FAULT: ")
    assert main(["repro", finding_id(faulty_run), "--no-isolate"]) == 0
    assert capsys.readouterr().out == bug.read_text()
    assert main(["repro", finding_id(faulty_run), "-o", "no/where.py"]) == Status.USAGE


def run_known(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch, *more: str) -> int:
    (folder / "kernel.py").write_text(FAULTY)
    (folder / "known.toml").write_text(text)
    monkeypatch.chdir(folder)
    return main(["run", "kernel.py:Faulty", *SELECT, "--known", "known.toml", *more])


def test_known_findings_are_0_and_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = '[[known]]\nbackend = "faulty*"\nclaim = "softmax.row_sum"\nreason = "half too much"\n'
    assert run_known(text, tmp_path, monkeypatch) == Status.HELD
    printed = capsys.readouterr().out
    assert "known: half too much" in printed
    assert "Known findings" in printed


def test_stale_entry_is_1_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        '[[known]]\nbackend = "faulty*"\nclaim = "softmax.row_sum"\nreason = "half too much"\n'
        '[[known]]\nbackend = "faulty*"\nclaim = "softmax.blocked_zero"\n'
        'reason = "mended long ago"\n'
    )
    assert run_known(text, tmp_path, monkeypatch) == Status.FINDINGS
    assert "mended long ago" in capsys.readouterr().out


def test_quiet_prints_findings_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_known("", tmp_path, monkeypatch, "--quiet") == Status.FINDINGS
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) == 1
    assert printed.err == ""


@pytest.mark.parametrize("host", ["numpy", "torch"])
def test_scaffold_runs_as_it_is_and_is_never_overwritten(
    host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip(host)
    monkeypatch.chdir(tmp_path)
    assert main(["new-backend", "my_kernels.py", "--host", host]) == 0
    assert len(Path("my_kernels.py").read_text().splitlines()) <= 25
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    assert set(before) == {"my_kernels.py", "test_my_kernels.py", "assay-workflow.yml"}
    assert main(["new-backend", "my_kernels.py"]) == Status.USAGE
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before
    select = [
        "--claims",
        "attention.refines,attention.empty_row,hygiene.zero_size",
        "--jobs",
        "2",
        "--seed",
        "3",
    ]
    status = main(["run", "my_kernels.py:MyBackend", *select])
    assert status == Status.HELD, capsys.readouterr().out


def wait_for_a_cell(journal: Path, campaign: subprocess.Popen[str]) -> None:
    """Until the first cell has ended, or the campaign."""
    while campaign.poll() is None:
        with contextlib.closing(sqlite3.connect(f"file:{journal}?mode=ro", uri=True)) as book:
            if book.execute("SELECT COUNT(*) FROM cell").fetchone()[0]:
                return
        time.sleep(0.2)


def test_ctrl_c_keeps_what_is_done_and_is_3(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": SRC}
    line = [sys.executable, "-m", "assay", "run", "numpy.float32", "--jobs", "1", "--profile", "ci"]
    process = subprocess.Popen(
        line,
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Whoever started the tests may ignore it, as shells do in the background.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stderr is not None
    process.stderr.readline()  # the plan is made
    wait_for_a_cell(tmp_path / ".assay" / "journal.sqlite", process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == Status.UNANSWERED, (out, err)
    assert "Traceback" not in err
    assert "no answer:" in out
    done = subprocess.run(
        [sys.executable, "-m", "assay", "report", "--json", "r.json"],
        cwd=tmp_path,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "r.json").read_text())["result"]["cells"]
