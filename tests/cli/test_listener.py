"""What is shown while a campaign runs: on a terminal, in a log, and when asked to be quiet."""

from __future__ import annotations

import io
import sys
from dataclasses import replace

import pytest

from assay.cli import listener, prove
from assay.properties.campaign import Done, Note, Planned
from assay.properties.known import Entry, Known
from assay.properties.results import Absent, Result
from tests.cli.samples import HOSTILE
from tests.cli.test_report import PROVED


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """It is one."""
        return True


def play(result: Result, *, quiet: bool = False, known: Known | None = None) -> None:
    """Tell a listener the whole campaign."""
    keys = tuple(cell.key for cell in result.cells)
    with listener.listen(known or Known(), quiet=quiet) as listen:
        listen(Planned(result, keys))
        for number, cell in enumerate(result.cells, 1):
            listen(Done(cell, number, len(keys)))
        listen(Note(f"careful: {HOSTILE}"))


def test_log_gets_findings_on_stdout_and_progress_on_stderr(
    faulty: Result, capsys: pytest.CaptureFixture[str]
) -> None:
    play(faulty)
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) == 2
    assert all("replay: assay replay" in line for line in printed.out.splitlines())
    assert "8 cells, seed 7, profile quick" in printed.err
    assert "8 of 8 cells, 2 findings" in printed.err
    assert "\x1b" not in printed.err


@pytest.mark.parametrize("terminal", [False, True])
def test_backends_that_one_reason_keeps_away_are_one_line_with_the_remedy(
    terminal: bool,
    sound: Result,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    absent = [Absent(f"chip.{n:02}", "no chip", "buy one") for n in range(34)]
    absent += [Absent("other.chip", HOSTILE)]
    stream = Terminal()
    if terminal:
        monkeypatch.setattr(sys, "stderr", stream)
    play(replace(sound, absent=tuple(absent)))
    said = stream.getvalue() if terminal else capsys.readouterr().err
    lines = " ".join(said.split()).split("absent: ")[1:]
    assert len(lines) == 2
    assert "34 backends: no chip (buy one): chip.00, chip.01, chip.02, ..." in lines[0]
    assert lines[1].startswith("other.chip: ")


def test_quiet_prints_findings_and_notes_only(
    faulty: Result, capsys: pytest.CaptureFixture[str]
) -> None:
    play(faulty, quiet=True)
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) == 2
    assert len(printed.err.splitlines()) == 1


def test_terminal_gets_a_bar_that_no_backend_can_steer(
    faulty: Result, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    play(faulty)
    shown = terminal.getvalue()
    assert "8/8" in shown
    assert "\x1b[31m" not in shown
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_known_finding_says_so_while_it_runs(
    faulty: Result, capsys: pytest.CaptureFixture[str]
) -> None:
    play(faulty, known=Known((Entry("my-flash", "attention.future_zero", "expected"),)))
    lines = capsys.readouterr().out.splitlines()
    assert [line.endswith("known: expected") for line in lines] == [True, False]


@pytest.mark.parametrize("terminal", [False, True])
def test_prove_names_each_outcome(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    with prove._listen() as listen:
        listen(PROVED)
        listen(PROVED)
    if not terminal:
        assert stream.getvalue().count("proved softmax.row_sum/any_length") == 2
