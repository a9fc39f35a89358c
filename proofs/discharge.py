"""Discharge many obligations: each in a process of its own, under a limit that is enforced from
outside too.

A process of its own means that no obligation depends on those before it: solvers number what they
build, and another number may lead to another model.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection, wait

from assay.proofs import preloading
from assay.proofs.crossing import require
from assay.proofs.fingerprint import fingerprint
from assay.proofs.obligation import Obligation, Outcome
from assay.proofs.obligations import home, select

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
    known: Iterable[Outcome] = (),
    listen: Listen | None = None,
) -> tuple[Outcome, ...]:
    """Outcomes of the obligations that match the patterns (ids, claims or globs), in the
    catalogue's order.

    timeout      seconds for each statement, and as many for its twin; a machine that does other
                 work as well is given proportionally more
    jobs         processes at a time
    cross_check  ask other solvers the same questions
    known        earlier outcomes: one that held and rests on the same sources and versions is not
                 sought again
    listen       called with every outcome as it comes

    Raises ValueError for a pattern that matches nothing and for limits that are not positive, and
    ``crossing.Missing`` for a cross-check without other solvers.
    """
    if timeout <= 0 or jobs < 1:
        raise ValueError(f"timeout={timeout!r} must be positive and jobs={jobs!r} at least 1")
    if cross_check:
        require()
    chosen = select(tuple(patterns))
    found: dict[str, Outcome] = {}
    for outcome in _all(chosen, timeout, jobs, cross_check, known):
        found[outcome.id] = outcome
        if listen is not None:
            listen(outcome)
    return tuple(found[o.id] for o in chosen)


def _all(
    chosen: Sequence[Obligation],
    timeout: float,
    jobs: int,
    cross_check: bool,
    known: Iterable[Outcome],
) -> Iterator[Outcome]:
    keys = {o.id: fingerprint(home(o.id)) for o in chosen}
    kept = {k.id: k for k in known if _stands(k, keys.get(k.id), cross_check)}
    yield from kept.values()
    for outcome in _run([o for o in chosen if o.id not in kept], timeout, jobs, cross_check):
        yield replace(outcome, theorem=home(outcome.id), key=keys[outcome.id])


def _stands(outcome: Outcome, key: str | None, cross_check: bool) -> bool:
    """True when there is nothing to gain by seeking it again."""
    asked = bool(outcome.cross) or not (cross_check and outcome.scripts)
    return outcome.held and outcome.key == key and asked


class _Worker:
    """One process and the obligation that it settles."""

    def __init__(self, task: Obligation, timeout: float, cross_check: bool) -> None:
        context = multiprocessing.get_context("forkserver")
        self.pipe, theirs = context.Pipe()
        limit, patience = min(timeout, task.budget), _patience()
        given = (theirs, task.id, timeout, cross_check, patience)
        self.process = context.Process(target=_serve, args=given, daemon=True)
        self.task, self.started = task, time.monotonic()
        parts = 3 if cross_check else 2  # the statement, its twin, the other solvers
        self.deadline = self.started + (parts * limit + GRACE) * patience
        self.process.start()
        theirs.close()

    def collect(self) -> Outcome:
        """The worker's answer, or an open outcome when it died or overran; it is gone then."""
        from assay.proofs.settling import unsettled

        seconds = time.monotonic() - self.started
        try:
            if self.pipe.poll():
                answer: Outcome = self.pipe.recv()
                return answer
            reason = f"timeout: stopped after {seconds:.0f} s"
        except (EOFError, ConnectionResetError):
            reason = f"the worker died after {seconds:.0f} s"
        finally:
            self.stop()
        return unsettled(self.task, seconds, reason)

    def stop(self) -> None:
        """End the process and forget it."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _patience() -> float:
    """How much longer things take than on an idle machine: runnable processes for each core."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def _serve(pipe: Connection, name: str, timeout: float, cross_check: bool, patience: float) -> None:
    from assay.proofs.settling import settle

    (obligation,) = select((name,))
    pipe.send(settle(obligation, timeout, cross_check, patience))


def _run(
    tasks: Sequence[Obligation], timeout: float, jobs: int, cross_check: bool
) -> Iterator[Outcome]:
    preloading.start()
    waiting = list(reversed(tasks))
    workers: list[_Worker] = []
    try:
        while waiting or workers:
            while waiting and len(workers) < jobs:
                workers.append(_Worker(waiting.pop(), timeout, cross_check))
            left = min(w.deadline for w in workers) - time.monotonic()
            ready = wait([w.pipe for w in workers], max(0.0, left))
            for worker in [w for w in workers if w.pipe in ready or time.monotonic() > w.deadline]:
                workers.remove(worker)
                yield worker.collect()
    finally:
        for worker in workers:
            worker.stop()
