"""Campaigns: plan, journal, resumption, and every wrong option."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.impl.loading import TargetError, resolve
from assay.impl.protocol import Unavailable
from assay.impl.registry import Builtin
from assay.properties.campaign import (
    Done,
    Event,
    Loaded,
    Note,
    OptionError,
    Options,
    Planned,
    run_backend,
    run_campaign,
)
from assay.properties.executor import Job, run_job
from assay.properties.journal import Journal, JournalError
from assay.properties.profiles import PROFILES
from assay.properties.replay import replay
from assay.properties.results import Absent, CellKey
from tests.properties import kernels

FILE = str(Path(__file__).with_name("kernels.py"))
CLAIMS = ("softmax.refines", "softmax.shift_invariant", "hygiene.shape")


def _options(tmp_path: Path, attr: str = "Sound", **changed: object) -> Options:
    given = {"claims": CLAIMS, "jobs": 1, "seed": 1, "directory": tmp_path, **changed}
    return Options((f"{FILE}:{attr}",), **given)  # type: ignore[arg-type]


def test_a_sound_backend_holds_and_events_tell_the_whole_story(tmp_path: Path) -> None:
    events: list[Event] = []

    result = run_campaign(_options(tmp_path), events.append)

    assert result.finished
    assert {c.verdict for c in result.cells} == {"held"}
    assert events[0] == Loaded(1, 1)
    assert isinstance(events[1], Planned)
    assert len(events[1].keys) == len(result.cells) == 3
    assert [e.done for e in events if isinstance(e, Done)] == [1, 2, 3]
    with Journal(tmp_path) as journal:
        assert journal.latest() == result


def test_a_campaign_goes_on_without_a_backend_that_cannot_run_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builtin = Builtin("chip.fast", f"{__name__}:X", "", ("no_such_chip",), "chip")
    monkeypatch.setattr("assay.impl.loading.BACKENDS", (builtin,))
    sound = _options(tmp_path)
    both = replace(sound, targets=(*sound.targets, "chip.fast"))
    events: list[Event] = []

    result = run_campaign(both, events.append)

    absent = Absent(
        "chip.fast", "module no_such_chip is not installed", "pip install 'assay[chip]'"
    )
    assert result.absent == (absent,)
    assert result.finished
    assert {c.key.backend for c in result.cells} == {"sound"}
    assert events[:2] == [Loaded(1, 2), Loaded(2, 2)]
    assert isinstance(events[2], Planned)
    assert events[2].result.absent == (absent,)
    with Journal(tmp_path) as journal:
        assert journal.latest() == result
    with pytest.raises(Unavailable, match=r"chip.fast: .* \(pip install 'assay\[chip\]'\)"):
        run_campaign(replace(sound, targets=("chip.fast",)))


def test_a_fault_is_found_shrunk_stored_and_replayed(tmp_path: Path) -> None:
    result = run_campaign(_options(tmp_path, "Wrong", claims=("softmax.refines",)))

    finding = result.findings[0]
    assert finding.verdict == "violated"
    assert finding.summary.startswith("B=1 N=1 S=1")
    assert finding.hint == "" or "scaled by 1.01" in finding.hint
    with Journal(tmp_path) as journal:
        stored = journal.find(finding.id[:4])
    assert stored == finding
    again = replay(stored)
    assert again is not None
    assert again.message == finding.message


def test_a_process_that_dies_is_a_crash_with_its_case(tmp_path: Path) -> None:
    result = run_campaign(_options(tmp_path, "Dies", claims=("softmax.refines",)))

    finding = result.findings[0]
    assert finding.verdict == "crashed"
    assert "SIGABRT" in finding.message
    assert "S=4" in finding.summary


def test_a_fault_that_does_not_show_again_is_flaky(tmp_path: Path) -> None:
    copy = shutil.copy(FILE, tmp_path)

    result = run_campaign(
        Options((f"{copy}:Flaky",), claims=("softmax.refines",), jobs=1, directory=tmp_path)
    )

    assert [f.verdict for f in result.findings] == ["flaky"]


def test_the_same_seed_finds_the_same_case(tmp_path: Path) -> None:
    first, second = (
        run_campaign(_options(tmp_path / name, "Wrong", claims=("softmax.refines",)))
        for name in ("a", "b")
    )

    assert [f.case for f in first.findings] == [f.case for f in second.findings]


def test_a_spent_budget_leaves_cells_unrun_and_resume_runs_just_those(tmp_path: Path) -> None:
    claims = (*CLAIMS, "hygiene.deterministic", "hygiene.fresh_output")
    first = run_campaign(_options(tmp_path, "Slow", claims=claims, time=0.001))
    assert not first.finished
    assert "budget" in first.notes[0]

    events: list[Event] = []
    second = run_campaign(_options(tmp_path, "Slow", claims=claims, resume=True), events.append)

    assert second.finished
    assert second.campaign == first.campaign
    assert len(second.cells) == len(claims)
    assert sum(isinstance(e, Done) for e in events) == len(claims) - len(first.cells)
    assert not any(isinstance(e, Note) for e in events)


_KILLED = """
import sys
from pathlib import Path
from assay.properties.campaign import Options, run_campaign
if __name__ == "__main__":
    run_campaign(Options((sys.argv[1],), jobs=1, seed=1, directory=Path(sys.argv[2])))
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_nothing_that_ended_is_lost_when_the_run_is_killed(
    tmp_path: Path, how: signal.Signals
) -> None:
    script = tmp_path / "run.py"
    script.write_text(_KILLED)
    mark = str(tmp_path)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "ASSAY_TEST_MARK": mark}
    arguments = [sys.executable, str(script), f"{FILE}:Slow", str(tmp_path)]
    child = subprocess.Popen(arguments, env=environment, stderr=subprocess.DEVNULL)
    while _ended(tmp_path) < 3:
        assert child.poll() is None
        time.sleep(0.05)
    assert len(_marked(mark)) > 1
    child.send_signal(how)
    child.wait()
    kept = _ended(tmp_path)
    assert kept >= 3
    patience = time.monotonic() + 20.0
    while left := _marked(mark):
        assert time.monotonic() < patience, left
        time.sleep(0.1)

    result = run_campaign(Options((f"{FILE}:Slow",), jobs=2, directory=tmp_path, resume=True))

    assert result.finished
    assert result.planned == len(result.cells) > kept


def _marked(mark: str) -> list[str]:
    """Processes that live and have this in their environment."""
    found = []
    for place in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if f"ASSAY_TEST_MARK={mark}".encode() in place.read_bytes():
                found.append((place.parent / "cmdline").read_text().replace("\0", " "))
    return found


def _ended(directory: Path) -> int:
    try:
        with Journal(directory) as journal:
            return len(journal.latest().cells)
    except JournalError:
        return 0


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"profile": "fast"}, ("profile='fast'", "quick", "nightly")),
        ({"ops": ("atention",)}, ("ops='atention'", "did you mean 'attention'")),
        ({"claims": ("softmax.rowsum",)}, ("claims='softmax.rowsum'", "softmax.row_sum")),
        ({"dtypes": ("float8",)}, ("dtypes='float8'", "bfloat16")),
        ({"dtypes": ("float16",)}, ("leaves no cell", "float32")),
        ({"resume": True}, ("no unfinished campaign",)),
    ],
)
def test_a_wrong_option_names_value_and_what_is_valid(
    tmp_path: Path, changed: dict[str, Any], words: tuple[str, ...]
) -> None:
    with pytest.raises(OptionError) as error:
        run_campaign(_options(tmp_path, **changed))

    assert all(word in str(error.value) for word in words)


@pytest.mark.parametrize("changed", [{"time": 0.0}, {"jobs": 0}, {"seed": -1}, {"targets": ()}])
def test_options_out_of_range_are_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        Options(**{"targets": ("x",), **changed})


def test_a_backend_of_several_without_a_selected_op_is_named_in_a_note(tmp_path: Path) -> None:
    sound = _options(tmp_path, claims=("softmax.refines",), ops=("masked_softmax",))
    both = replace(sound, targets=(*sound.targets, f"{FILE}:Other"))
    result = run_campaign(both)
    assert result.finished
    assert result.notes == ("the selection leaves no cell for other",)


def test_an_unknown_target_says_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="Sound"):
        run_campaign(_options(tmp_path, "Sond"))


def test_two_targets_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="same name"):
        run_campaign(Options((f"{FILE}:Sound", f"{FILE}:Sound"), directory=tmp_path))


def test_a_damaged_journal_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    path.write_bytes(b"this is no database" * 100)

    with pytest.raises(JournalError, match="damaged"):
        run_campaign(_options(tmp_path))

    assert path.read_bytes() == b"this is no database" * 100


def test_a_journal_of_another_version_or_none_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="assay run"):
        Journal(tmp_path)
    import sqlite3

    with sqlite3.connect(tmp_path / "journal.sqlite") as db:
        db.execute("PRAGMA user_version=99")
    db.close()
    with pytest.raises(JournalError, match="schema version 99"):
        Journal(tmp_path)


def test_an_unknown_or_empty_finding_id_lists_candidates(tmp_path: Path) -> None:
    result = run_campaign(_options(tmp_path, "Wrong", claims=("softmax.refines",)))

    with Journal(tmp_path) as journal:
        for wrong in ("zzzz", ""):
            with pytest.raises(JournalError, match=result.findings[0].id):
                journal.find(wrong)


def test_a_backend_object_runs_in_this_process() -> None:
    result = run_backend(kernels.Wrong(), claims=("softmax.refines",))

    assert [f.verdict for f in result.findings] == ["violated"]


def test_assert_conforms_is_quiet_on_a_sound_kernel_and_tells_the_fault_of_a_wrong_one() -> None:
    assay.assert_conforms(kernels.plain_softmax, op="masked_softmax", claims=CLAIMS)
    assay.assert_conforms(kernels.Sound, claims=CLAIMS)

    with pytest.raises(AssertionError, match=r"softmax\.refines.*should be"):
        assay.assert_conforms(kernels.Wrong, claims=CLAIMS)


def test_assert_conforms_fails_when_nothing_was_tested() -> None:
    with pytest.raises(AssertionError, match="no claim was tested"):
        assay.assert_conforms(kernels.Sound, claims=("softmax.row_sum",))


def test_a_plain_function_needs_its_op() -> None:
    with pytest.raises(OptionError, match="masked_softmax"):
        assay.run(kernels.plain_softmax)


def test_run_takes_text_as_the_command_line_does(tmp_path: Path) -> None:
    result = assay.run(
        f"{FILE}:plain_softmax", op="masked_softmax", claims=CLAIMS, directory=tmp_path, jobs=1
    )

    assert result.finished
    assert result.findings == ()


def test_a_kernel_that_keeps_state_is_found_by_a_case_that_shows_it_alone(tmp_path: Path) -> None:
    claims = ("hygiene.call_order_independent", "softmax.refines")
    result = run_campaign(_options(tmp_path, "Memo", claims=claims))

    shown = {f.cell.property: f for f in result.findings}
    assert shown["hygiene.call_order_independent"].verdict == "violated"
    assert replay(shown["hygiene.call_order_independent"]) is not None
    if "softmax.refines" in shown:
        assert shown["softmax.refines"].verdict == "flaky"
        assert "after other calls" in shown["softmax.refines"].hint


def test_a_fault_of_the_judge_costs_one_cell_its_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise ZeroDivisionError("a fault of assay's own")

    monkeypatch.setattr("assay.properties.executor.run_cell", broken)
    target = resolve(f"{FILE}:Sound")
    key = CellKey("sound", "softmax.refines", "float32", "default", "masked_softmax")
    cell = run_job(Job(key, target, PROFILES["quick"], 0, False, None))

    assert cell.verdict == "inconclusive"
    assert "ZeroDivisionError" in cell.reason
