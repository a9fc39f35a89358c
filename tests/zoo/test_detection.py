"""Runs over the zoo: what is caught, what is missed, what is found for another reason, and what
that comes to.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from functools import partial

import pytest

from assay.properties.profiles import PROFILES
from assay.zoo import spread as spreading
from assay.zoo.catalogue import CONTROLS, FAULTS
from assay.zoo.cpu import cpu_seconds, descendants
from assay.zoo.detection import Detection, Plan
from assay.zoo.fault import Control
from assay.zoo.figures import figures
from assay.zoo.hunt import Clearance, Hunt, Sighting, Sweep, clear, hunt, sweep
from assay.zoo.needs import needs
from assay.zoo.spread import spread

FEW = replace(PROFILES["quick"], examples=8, shrink_seconds=0.5)
FAULT = next(f for f in FAULTS if f.name == "softmax-epsilon")
OTHER = next(f for f in FAULTS if f.name == "softmax-no-shift")
SOUND = next(c for c in CONTROLS if c.name == "online-softmax")


# -- One run


def test_a_fault_is_caught_by_a_claim_that_is_about_it() -> None:
    run = hunt(FAULT, FEW, 0)
    assert run.outcome == "caught"
    assert run.right is not None
    assert run.right.claim in FAULT.claims
    assert 0 < run.right.examples <= run.examples
    assert 0 < run.right.seconds < run.seconds
    assert run.troubles == ()


def test_another_verdict_than_the_fault_deserves_is_a_wrong_reason() -> None:
    run = hunt(replace(FAULT, verdict="crashed"), FEW, 0)
    assert run.outcome == "wrong reason"
    assert run.first is not None
    assert run.first.verdict == "violated"


def test_a_fault_that_comes_and_goes_may_be_found_as_if_it_stayed() -> None:
    assert hunt(replace(FAULT, verdict="flaky"), FEW, 0).outcome == "caught"


def test_another_claim_than_those_about_the_fault_is_a_wrong_reason() -> None:
    run = hunt(replace(FAULT, claims=("hygiene.dtype",)), FEW, 0)
    assert run.outcome == "wrong reason"


def test_what_has_no_fault_is_missed_though_the_whole_plan_is_run() -> None:
    run = hunt(replace(FAULT, target=SOUND.target), FEW, 0)
    assert run.outcome == "missed"
    assert run.first is None
    assert run.cells > 10


def test_a_hint_is_judged_only_where_there_is_something_to_name() -> None:
    seen = Sighting("c", "float32", "violated", "m", "case", "the sign is lost", 1, 0.1, 0.1, 2)
    run = Hunt(replace(FAULT, hint="sign"), 0, seen, seen)
    assert run.hinted is True
    assert replace(run, fault=replace(FAULT, hint="scale")).hinted is False
    assert replace(run, fault=replace(FAULT, hint="")).hinted is None
    assert replace(run, right=None).hinted is None


def test_a_sound_kernel_is_cleared_and_a_faulty_one_is_not() -> None:
    cleared = clear(SOUND, FEW, 0)
    assert cleared.alarms == cleared.troubles == ()
    assert cleared.examples > cleared.cells > 10
    accused = clear(Control("faulty", FAULT.target, "a fault for a control"), FEW, 0)
    assert any("softmax.refines" in alarm for alarm in accused.alarms)


def test_a_member_that_cannot_be_loaded_is_absent() -> None:
    lost = replace(FAULT, target="assay.zoo.faults.softmax:Nowhere")
    assert hunt(lost, FEW, 0).outcome == "absent"
    assert "Nowhere" in clear(Control("lost", lost.target, ""), FEW, 0).absent
    assert "Nowhere" in sweep(lost, FEW, 0).absent


def test_an_error_of_assays_own_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("assay is wrong")

    monkeypatch.setattr("assay.zoo.visit.run_cell", broken)
    run = hunt(FAULT, FEW, 0)
    assert run.outcome == "missed"
    assert len(run.troubles) == run.cells
    assert "assay is wrong" in run.troubles[0]
    assert not Detection(Plan((FAULT,), (), FEW, (0,)), (run,)).clean


def test_a_sweep_asks_every_claim() -> None:
    swept = sweep(FAULT, FEW, 0)
    assert "softmax.refines" in swept.caught_by
    assert "softmax.shift_invariant" in swept.asked
    assert len(swept.asked) > len(swept.caught_by)


# -- All runs

SEEN = Sighting("softmax.refines", "float32", "violated", "m", "n=2", "", 4, 0.5, 0.25, 2)


def records(*outcomes: bool) -> tuple[Hunt, ...]:
    """A run for each, with and without a finding."""
    return tuple(
        Hunt(FAULT, seed, SEEN if found else None, SEEN if found else None)
        for seed, found in enumerate(outcomes)
    )


def values(detection: Detection) -> dict[str, str]:
    return {figure.what: figure.value for figure in figures(detection)}


def test_a_fault_counts_as_caught_when_every_seed_caught_it() -> None:
    plan = Plan((FAULT,), (), FEW, (0, 1))
    caught, missed = Detection(plan, records(True, True)), Detection(plan, records(True, False))
    name = "faults caught for the right reason, with every seed"
    assert values(caught)[name] == "1 of 1 (100%)"
    assert values(missed)[name] == "0 of 1 (0%)"
    assert values(missed)["runs in which the fault was caught"] == "1 of 2 (50%)"
    assert caught.clean
    assert not missed.clean


def test_hard_faults_are_counted_apart() -> None:
    hard = replace(FAULT, name="hard", hard="hidden")
    runs = (*records(True), Hunt(hard, 0))
    found = values(Detection(Plan((FAULT, hard), (), FEW, (0,)), runs))
    assert found["hard ones among them"] == "0 of 1 (0%)"


def test_false_alarms_are_counted_over_all_cases() -> None:
    runs = (Clearance(SOUND, 0, 3, 60), Clearance(SOUND, 1, 3, 40, alarms=("x",)))
    detection = Detection(Plan((), (SOUND,), FEW, (0, 1)), runs)
    assert values(detection)["false alarms"] == "1 in 100 cases"
    assert values(detection)["controls accused"] == "1 of 1"
    assert not detection.clean


def test_figures_of_nothing_are_no_error() -> None:
    assert Detection(Plan((), (), FEW, (0,)), ()).clean
    assert list(values(Detection(Plan((), (), FEW, (0,)), ()))) == ["CPU seconds of all runs"]


def test_a_claim_is_needed_when_a_fault_hangs_on_it() -> None:
    found = needs([Sweep(FAULT, ("a", "b", "c"), ("a", "b")), Sweep(OTHER, ("a", "c"), ("a",))])
    assert found.sole == {OTHER.name: "a"}
    assert found.unneeded == ["b", "c"]
    assert found.idle == ["c"]
    assert found.caught["a"] == (FAULT.name, OTHER.name)


def test_every_seed_is_finished_before_the_next() -> None:
    plan = Plan((FAULT, OTHER), (SOUND,), FEW, (0, 1), sweeps=True)
    tasks = [task for task in plan.tasks() if isinstance(task, partial)]
    assert [task.args[-1] for task in tasks] == [0, 0, 0, 1, 1, 1, 0, 0]


# -- On several processes


def die_once(path: str) -> Hunt:
    """Takes the process along the first time."""
    if not os.path.exists(path):
        open(path, "w").close()
        os._exit(1)
    return Hunt(FAULT, 0)


def die() -> Hunt:
    """Takes the process along every time."""
    os._exit(1)


def test_runs_that_a_dying_process_took_along_are_run_again(tmp_path) -> None:  # type: ignore[no-untyped-def]
    tasks = [partial(die_once, str(tmp_path / "died")), partial(Hunt, OTHER, 1)]
    assert {run.fault.name for run in spread(tasks, 2) if isinstance(run, Hunt)} == {
        FAULT.name,
        OTHER.name,
    }


def test_what_kills_its_process_again_and_again_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spreading, "MOST_LOSSES", 2)
    with pytest.raises(BrokenProcessPool, match="died 2 times"):
        list(spread([die], 1))


# -- CPU time


def test_cpu_time_counts_what_descends_from_this_process() -> None:
    code = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True); input()"
    before = cpu_seconds()
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    child.stdout.readline()
    assert child.pid in descendants()
    assert cpu_seconds() - before >= 0.25
    child.communicate(b"\n")
    assert cpu_seconds() - before >= 0.25


def test_cpu_time_is_not_wall_time() -> None:
    before = cpu_seconds()
    time.sleep(0.5)
    assert cpu_seconds() - before < 0.4
