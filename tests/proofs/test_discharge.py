"""Discharge selects, limits and reports; a worker that dies or overruns leaves an open outcome."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from assay.proofs.discharge import _Worker, discharge
from assay.proofs.fingerprint import fingerprint
from assay.proofs.obligation import Outcome
from assay.proofs.obligations import OBLIGATIONS, home, select


def test_patterns_select_by_id_claim_and_glob() -> None:
    assert [o.id for o in select(["softmax.row_sum/reals"])] == ["softmax.row_sum/reals"]
    assert {o.claim for o in select(["softmax.online"])} == {"softmax.online"}
    assert len(select(["*"])) == len(OBLIGATIONS)
    assert select() == OBLIGATIONS


VALID = r"matches nothing;( did you mean '[^']+'\?)? valid: .*softmax\.row_sum"


@pytest.mark.parametrize("pattern", ["softmax.nothing", "softmax.row_sum/realz", "nope*"])
def test_an_unknown_pattern_is_named_with_what_is_valid(pattern: str) -> None:
    with pytest.raises(ValueError, match=VALID):
        discharge([pattern])


@pytest.mark.parametrize(("timeout", "jobs"), [(0.0, 1), (-1.0, 1), (1.0, 0)])
def test_limits_must_be_positive(timeout: float, jobs: int) -> None:
    with pytest.raises(ValueError, match="must be positive"):
        discharge(["softmax.row_sum/reals"], timeout=timeout, jobs=jobs)


def test_outcomes_come_in_order_and_are_heard_one_by_one() -> None:
    heard: list[Outcome] = []
    names = ["attention.alignment/small", "softmax.one_visible/reals", "softmax.blocked_zero/reals"]
    outcomes = discharge(names, jobs=2, listen=heard.append)
    assert [o.id for o in outcomes] == [o.id for o in select(names)]
    assert sorted(o.id for o in heard) == sorted(names)
    assert all(o.held for o in outcomes)


@pytest.fixture
def worker() -> Iterator[_Worker]:
    worker = _Worker(OBLIGATIONS[0], 20.0, False)
    yield worker
    worker.process.kill()


def test_a_worker_that_dies_leaves_an_open_outcome(worker: _Worker) -> None:
    worker.process.kill()
    worker.process.join()
    outcome = worker.collect()
    assert (outcome.id, outcome.status) == (OBLIGATIONS[0].id, "open")
    assert "died" in outcome.detail


def test_a_worker_that_overruns_is_killed(worker: _Worker) -> None:
    outcome = worker.collect()
    assert outcome.status == "open"
    assert "timeout: stopped" in outcome.detail


@pytest.mark.parametrize(("load", "factor"), [(0.0, 1.0), (3.0, 1.0), (12.0, 3.0)])
def test_a_busy_machine_is_given_more_time(
    load: float, factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.getloadavg", lambda: (load, load, load))
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    worker = _Worker(OBLIGATIONS[0], 5.0, False)
    worker.stop()
    assert worker.deadline - worker.started == pytest.approx(factor * 15.0)


CHEAP = "attention.alignment/integers"


def test_an_outcome_that_stands_is_not_sought_again() -> None:
    (first,) = discharge([CHEAP])
    marked = replace(first, detail="known")
    assert discharge([CHEAP], known=[marked]) == (marked,)


@pytest.mark.parametrize("change", [{"key": "another"}, {"status": "open"}, {"id": "x"}])
def test_an_outcome_of_other_sources_or_none_is_sought_again(change: dict[str, Any]) -> None:
    (first,) = discharge([CHEAP])
    (again,) = discharge([CHEAP], known=[replace(first, detail="known", **change)])
    assert again.detail != "known"
    assert again.key == first.key == fingerprint(home(CHEAP))


def test_a_cross_check_is_sought_where_it_is_missing() -> None:
    pytest.importorskip("cvc5")
    (first,) = discharge([CHEAP])
    (crossed,) = discharge([CHEAP], known=[first], cross_check=True)
    assert crossed.cross
    assert discharge([CHEAP], known=[crossed], cross_check=True) == (crossed,)
    assert discharge([CHEAP], known=[crossed]) == (crossed,)


def test_outcomes_do_not_depend_on_what_ran_before() -> None:
    names = ["softmax.vjp_refines/tangent", "softmax.grad_blocked_zero/float16-from-weights"]
    alone = [discharge([name])[0] for name in names]
    together = discharge(["softmax.online/merge", *names], jobs=2)
    for outcome in alone:
        (other,) = [o for o in together if o.id == outcome.id]
        assert replace(other, seconds=0.0) == replace(outcome, seconds=0.0)


def test_a_misspelt_claim_is_corrected() -> None:
    with pytest.raises(ValueError, match=r"did you mean 'softmax\.row_sum'\?"):
        discharge(["softmax.rowsum"])
