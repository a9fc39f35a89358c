"""A campaign's time is shared out: every cell gets a verdict, and haste costs examples alone."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from itertools import pairwise

import pytest

from assay.impl.loading import Target
from assay.impl.session import open_session
from assay.properties.budget import AIM, LEAST_SHRINK, Budget, unlimited
from assay.properties.campaign import _breadth
from assay.properties.cell import run_cell
from assay.properties.context import context_of
from assay.properties.executor import Job, _Queue
from assay.properties.plan import FIRST_BLOCK, Selection, cells, interleave
from assay.properties.profiles import PROFILES, Breadth, Profile
from assay.properties.properties import find
from assay.properties.results import Cell, CellKey
from assay.properties.search import LEAST
from assay.properties.trial import Bench
from assay.spec.ops import op
from tests.properties.kernels import Sound, Wrong

QUICK = PROFILES["quick"]
KEY = CellKey("sound", "softmax.refines", "float32", op="masked_softmax")


def test_a_cell_gets_its_part_of_what_is_left() -> None:
    budget = Budget(1000.0, 2, time.monotonic())
    share = budget.share(QUICK, {"a": 60, "b": 40})
    assert share.share == pytest.approx(AIM * 1000 * 2 / 100, rel=0.01)
    assert budget.share(QUICK, {"a": 1}).share == pytest.approx(AIM * 1000, rel=0.01)
    assert share == replace(QUICK, share=share.share)


def test_what_a_backend_takes_beyond_its_share_is_set_aside_for_its_other_cells() -> None:
    budget = Budget(1000.0, 2, time.monotonic())
    waiting = {"slow": 500, "fast": 500}
    before = budget.share(QUICK, waiting).share
    for seconds in (before + 0.5, before + 0.7):
        budget.took("slow", seconds, before)
    budget.took("fast", before / 2, before)
    after = budget.share(QUICK, waiting).share
    assert after == pytest.approx((AIM * 1000 * 2 - 500 * 0.6) / 1000, rel=0.01)
    assert budget.share(QUICK, {"fast": 500}).share == pytest.approx(2 * before, rel=0.01)
    budget.took("slow", 1e9, before)
    assert budget.share(QUICK, waiting).share >= 0.5 * before


def test_in_a_hurry_a_fault_is_still_made_small() -> None:
    late = Budget(1.0, 2, time.monotonic() - 10).share(QUICK, {"a": 100})
    assert late.share == 0.0
    assert late.shrink_seconds == LEAST_SHRINK


def test_without_a_limit_the_profile_stands() -> None:
    assert unlimited().share(QUICK, {"a": 3}) is QUICK
    assert not unlimited().spent
    assert Budget(1.0, 1, time.monotonic() - 2).spent


def _cell(profile: Profile, backend: Sound, key: CellKey = KEY) -> Cell:
    with open_session(backend, isolate=False) as session:
        ctx = context_of(op(key.op), session.description, key.dtype, key.mode)
        bench = Bench(find(key.property), ctx, session)
        return run_cell(bench, profile, key, "x", 7, None)


def test_a_cell_without_time_sees_the_first_of_the_same_examples() -> None:
    full = _cell(QUICK, Sound())
    cut = _cell(replace(QUICK, share=0.0), Sound())
    assert (full.cut, cut.cut) == (False, True)
    assert (full.verdict, cut.verdict) == ("held", "held")
    assert LEAST <= cut.examples < full.examples
    assert full.scores[: len(cut.scores)] == cut.scores


def test_a_cell_without_time_finds_what_shows_at_once() -> None:
    found = _cell(replace(QUICK, share=0.0), Wrong(), replace(KEY, backend="wrong"))
    assert found.verdict == "violated"
    assert not found.cut


def test_backends_take_turns_once() -> None:
    a, b = ([CellKey(name, "p", str(i)) for i in range(10 * FIRST_BLOCK)] for name in "ab")
    order = interleave([a, b])
    assert sorted(order) == sorted([*a, *b])
    assert order[: 2 * FIRST_BLOCK] == [*a[:FIRST_BLOCK], *b[:FIRST_BLOCK]]
    changes = sum(x.backend != y.backend for x, y in pairwise(order))
    assert changes == 3


def test_values_of_all_ops_come_before_the_rest_of_any() -> None:
    from assay.impl.backends.numpy_float32 import NumpyFloat32

    with open_session(NumpyFloat32(), isolate=False) as session:
        plan = cells(session.description, Selection(), PROFILES["ci"])
    first = [key for key in plan if key.dtype == plan[0].dtype]
    assert plan[: len(first)] == first
    telling = [find(key.property).rejudged or find(key.property).every_dtype for key in first]
    assert telling == sorted(telling, reverse=True)
    assert {key.op for key in first[: sum(telling)]} == {key.op for key in plan}


def _jobs(targets: str) -> list[Job]:
    """One for each letter, of the backend with that name."""
    target = {name: Target(name, "module", name, "x") for name in targets}
    return [
        Job(CellKey(name, str(i), "float32"), target[name], QUICK, 0, False, None)
        for i, name in enumerate(targets)
    ]


def _taken(targets: str, *processes: int) -> str:
    queue = _Queue(_jobs(targets))
    return "".join(queue.take(process).key.backend for process in processes)


def test_a_process_stays_with_its_backend() -> None:
    assert _taken("aaabbbcc", 0, 1, 0, 1, 1, 1, 0, 0) == "ababbcac"


def test_an_idle_process_helps_with_the_longest_rest() -> None:
    assert _taken("aabbbb", 0, 1, 0, 0, 0, 1) == "abab" + "bb"


def test_no_job_is_lost_or_run_twice() -> None:
    jobs = _jobs("aaabbbbccda")
    queue = _Queue(jobs)
    order = [queue.take(i % 3) for i in range(len(jobs))]
    assert sorted(order, key=lambda job: int(job.key.property)) == jobs
    assert len(queue) == 0


def _plan(breadth: Breadth, **contract: object) -> list[CellKey]:
    with open_session(Sound(), isolate=False) as session:
        known = session.description
    changed = replace(known.contract, dtypes=("float32", "float64"), modes=("grad", "no_grad"))
    changed = replace(changed, **contract)  # type: ignore[arg-type]
    return cells(
        replace(known, contract=changed), Selection(), replace(PROFILES["ci"], breadth=breadth)
    )


def test_breadths_are_nested_and_values_are_crossed_in_all_but_the_least() -> None:
    few, some, whole = (set(_plan(breadth)) for breadth in ("few", "some", "all"))
    assert few < some < whole
    values = {
        key
        for key in whole
        if find(key.property).every_dtype and not key.property.startswith("hygiene.")
    }
    assert values <= some
    assert not values <= few
    assert {key.property for key in few} == {key.property for key in whole}


def test_a_backend_that_compiles_is_asked_less_where_time_is_short() -> None:
    assert _plan("some", compile_seconds=1.0) == _plan("few", compile_seconds=1.0)
    assert set(_plan("all", compile_seconds=1.0)) == set(_plan("all"))


def test_one_backend_is_asked_everything_and_many_what_time_allows() -> None:
    with open_session(Sound(), isolate=False) as session:
        one = session.description
    assert _breadth([one], PROFILES["ci"], 2) == (replace(PROFILES["ci"], breadth="all"), ())
    profile, (note,) = _breadth([one] * 2000, PROFILES["ci"], 2)
    assert profile is PROFILES["ci"]
    assert "2000 backends" in note
    assert _breadth([one] * 2000, QUICK, 2) == (QUICK, ())


def test_profiles_that_end_say_so() -> None:
    assert PROFILES["ci"].total_seconds == 570.0
    assert all(profile.share == math.inf for profile in PROFILES.values())
