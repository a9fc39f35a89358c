"""Discharge many obligations: in worker processes, each under a limit that is enforced from
outside too.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait

from assay.proofs.crossing import require
from assay.proofs.obligation import Obligation, Outcome
from assay.proofs.obligations import select

# A solver may overrun its own limit, and Python code has none: this much later the worker is
# killed.
GRACE = 5.0
Listen = Callable[[Outcome], None]


def discharge(
    patterns: Sequence[str] = (),
    *,
    timeout: float = 20.0,
    jobs: int = 1,
    cross_check: bool = False,
    listen: Listen | None = None,
) -> tuple[Outcome, ...]:
    """Outcomes of the obligations that match the patterns (ids, claims or globs), in the
    catalogue's order.

    timeout      seconds for each statement, and as many for its twin
    jobs         worker processes
    cross_check  ask cvc5 the same questions, where it is installed
    listen       called with every outcome as it comes

    Raises ValueError for a pattern that matches nothing and for limits that are not positive, and
    ``crossing.Missing`` for a cross-check without cvc5.
    """
    if timeout <= 0 or jobs < 1:
        raise ValueError(f"timeout={timeout!r} must be positive and jobs={jobs!r} at least 1")
    if cross_check:
        require()
    chosen = select(tuple(patterns))
    found: dict[str, Outcome] = {}
    for outcome in _run(chosen, timeout, jobs, cross_check):
        found[outcome.id] = outcome
        if listen is not None:
            listen(outcome)
    return tuple(found[o.id] for o in chosen)


class _Worker:
    """One process and what it is working on."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["assay.proofs.obligations", "assay.proofs.settling"])
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()
        self.task: Obligation | None = None
        self.deadline = self.started = 0.0

    def give(self, task: Obligation, timeout: float, cross_check: bool) -> None:
        self.task, self.started = task, time.monotonic()
        parts = 3 if cross_check else 2  # the statement, its twin, the second solver
        self.deadline = self.started + parts * min(timeout, task.budget) + GRACE
        self.pipe.send((task.id, timeout, cross_check))

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _serve(pipe: Connection) -> None:
    from assay.proofs.settling import settle

    while True:
        try:
            name, timeout, cross_check = pipe.recv()
        except EOFError:
            return
        (obligation,) = select((name,))
        pipe.send(settle(obligation, timeout, cross_check))


def _run(
    tasks: Sequence[Obligation], timeout: float, jobs: int, cross_check: bool
) -> Iterator[Outcome]:
    waiting = list(reversed(tasks))
    workers = [_Worker() for _ in range(min(jobs, len(waiting)))]
    try:
        for worker in workers:
            worker.give(waiting.pop(), timeout, cross_check)
        while busy := [w for w in workers if w.task is not None]:
            left = min(w.deadline for w in busy) - time.monotonic()
            ready = wait([w.pipe for w in busy], max(0.0, left))
            for worker in [w for w in busy if w.pipe in ready or time.monotonic() > w.deadline]:
                yield _collect(worker)
                workers[workers.index(worker)] = fresh = _renewed(worker)
                if waiting:
                    fresh.give(waiting.pop(), timeout, cross_check)
    finally:
        for worker in workers:
            worker.stop()


def _collect(worker: _Worker) -> Outcome:
    """The worker's answer, or an open outcome when it died or overran."""
    from assay.proofs.settling import unsettled

    task, worker.task = worker.task, None
    assert task is not None
    seconds = time.monotonic() - worker.started
    try:
        if worker.pipe.poll():
            answer: Outcome = worker.pipe.recv()
            return answer
        reason = f"timeout: stopped after {seconds:.0f} s"
    except (EOFError, ConnectionResetError):
        reason = f"the worker died after {seconds:.0f} s"
    worker.process.kill()
    worker.process.join()
    return unsettled(task, seconds, reason)


def _renewed(worker: _Worker) -> _Worker:
    if worker.process.is_alive():
        return worker
    worker.stop()
    return _Worker()
