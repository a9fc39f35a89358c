"""Discharge selects, limits and reports; a worker that dies or overruns leaves an open outcome."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from assay.proofs.discharge import _collect, _renewed, _Worker, discharge
from assay.proofs.obligation import Outcome
from assay.proofs.obligations import OBLIGATIONS, select


def test_patterns_select_by_id_claim_and_glob() -> None:
    assert [o.id for o in select(["softmax.row_sum/reals"])] == ["softmax.row_sum/reals"]
    assert {o.claim for o in select(["softmax.online"])} == {"softmax.online"}
    assert len(select(["*"])) == len(OBLIGATIONS)
    assert select() == OBLIGATIONS


@pytest.mark.parametrize("pattern", ["softmax.nothing", "softmax.row_sum/realz", "no*"])
def test_an_unknown_pattern_is_named_with_what_is_valid(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"matches nothing; valid: .*softmax\.row_sum"):
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
    worker = _Worker()
    yield worker
    worker.process.kill()
    worker.process.join()


def test_a_worker_that_dies_leaves_an_open_outcome(worker: _Worker) -> None:
    worker.give(OBLIGATIONS[0], 20.0, False)
    worker.process.kill()
    worker.process.join()
    outcome = _collect(worker)
    assert (outcome.id, outcome.status) == (OBLIGATIONS[0].id, "open")
    assert "died" in outcome.detail


def test_a_worker_that_overruns_is_killed_and_replaced(worker: _Worker) -> None:
    worker.give(OBLIGATIONS[0], 20.0, False)
    worker.deadline = time.monotonic()
    outcome = _collect(worker)
    assert outcome.status == "open"
    assert not worker.process.is_alive()
    fresh = _renewed(worker)
    assert fresh.process.is_alive()
    fresh.stop()
