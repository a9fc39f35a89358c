"""Executors: where cells run. A pool of processes for campaigns, this process for test suites."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import traceback
import warnings
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from multiprocessing import forkserver
from pathlib import Path
from types import TracebackType

from assay.impl.adversarial_session import Adversary
from assay.impl.loading import Target
from assay.impl.session import Session, open_session
from assay.properties.budget import Budget
from assay.properties.cell import run_cell
from assay.properties.context import context_of
from assay.properties.profiles import Profile
from assay.properties.properties import find
from assay.properties.results import Cell, CellKey
from assay.properties.trial import Bench
from assay.spec.ops import op

OPEN_SESSIONS = 2
"""Sessions that one pool process keeps open: enough to alternate between backends without starting
workers anew.
"""


@dataclass(frozen=True)
class Job:
    """One cell to run, as plain data for another process."""

    key: CellKey
    target: Target
    profile: Profile
    seed: int
    isolate: bool
    database: str | None
    adversary: Adversary | None = None

    def open(self) -> Session:
        """A session of the backend in which nothing has been called yet."""
        return open_session(
            self.target,
            isolate=self.isolate,
            timeout=self.profile.timeout,
            adversary=self.adversary,
        )


class _Sessions:
    """The open sessions of this process, the least recently used closed first."""

    def __init__(self) -> None:
        self._open: OrderedDict[Target, Session] = OrderedDict()

    def get(self, job: Job) -> Session:
        session = self._open.pop(job.target, None)
        if session is None:
            session = job.open()
        self._open[job.target] = session
        while len(self._open) > OPEN_SESSIONS:
            self._open.popitem(last=False)[1].close()
        return session

    def close(self) -> None:
        while self._open:
            self._open.popitem()[1].close()


_SESSIONS = _Sessions()


def close_sessions() -> None:
    """End what ``run_job`` keeps open in this process for the next cell."""
    _SESSIONS.close()


def start_process() -> None:
    """A pool process leaves Ctrl-C to its parent, with which it ends in any case, and hosts'
    warnings to nobody: verdicts say what matters.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.simplefilter("ignore")
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Where the parent was killed, nobody else ends this process, nor those that it started."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    """BLAS libraries read these once, when they are loaded: several threads on small arrays cost
    more than they give.
    """
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def run_job(job: Job) -> Cell:
    """Run one cell in this process. A fault of assay's own costs this cell its verdict, no more."""
    try:
        session = _SESSIONS.get(job)
        bench = _bench(job.key, session, job.open)
        path = None if job.database is None else Path(job.database)
        cell = run_cell(bench, job.profile, job.key, job.target.text, job.seed, path)
        return cell if job.adversary is None else _adversarial(cell)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        reason = f"internal error: {error!r} at {Path(where.filename).name}:{where.lineno}"
        return Cell(job.key, find(job.key.property).claim, "inconclusive", reason=reason)


def _adversarial(cell: Cell) -> Cell:
    """The cell, whose finding is to be replayed in the same mode."""
    if cell.finding is None:
        return cell
    return replace(cell, finding=replace(cell.finding, adversarial=True))


def _bench(key: CellKey, session: Session, fresh: Callable[[], Session] | None) -> Bench:
    ctx = context_of(op(key.op), session.description, key.dtype, key.mode)
    return Bench(find(key.property), ctx, session, fresh)


def new_pool(jobs: int, start: Callable[[], None] = start_process) -> ProcessPoolExecutor:
    """``jobs`` processes in which cells can run; ``start`` is called first in each."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["assay.properties.executor"])
    with _one_blas_thread():
        forkserver.ensure_running()
    return ProcessPoolExecutor(jobs, mp_context=context, initializer=start)


class _Queue:
    """Jobs in blocks, each of one backend. A process takes a block for its own, so that a backend
    is loaded once for all of it, and helps with the longest when none is left.
    """

    def __init__(self, jobs: Sequence[Job]) -> None:
        self._blocks = [deque(block) for _, block in groupby(jobs, key=lambda job: job.target)]
        self._own: dict[int, deque[Job]] = {}
        self.waiting = Counter(job.key.backend for job in jobs)
        """How many jobs of each backend are left."""

    def __len__(self) -> int:
        return self.waiting.total()

    def take(self, process: int) -> Job:
        """The next job for process number ``process``. IndexError: none is left."""
        if not self._own.get(process):
            self._blocks = [block for block in self._blocks if block]
            free = [b for b in self._blocks if not any(b is own for own in self._own.values())]
            self._own[process] = free[0] if free else max(self._blocks, key=len, default=deque())
        job = self._own[process].popleft()
        self.waiting[job.key.backend] -= 1
        return job


class PoolExecutor:
    """Cells on ``jobs`` processes. One that dies takes its cell with it as crashed, and nothing
    else.
    """

    def __init__(self, jobs: int) -> None:
        # Pools of one: a pool of many would not let choose which of them runs a job.
        self._pools = [new_pool(1) for _ in range(jobs)]

    def __enter__(self) -> PoolExecutor:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            self.kill()
        for pool in self._pools:
            pool.shutdown(wait=True, cancel_futures=True)

    def kill(self) -> None:
        """End all processes at once."""
        for pool in self._pools:
            pool.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            child.kill()

    def run(self, jobs: Sequence[Job], budget: Budget) -> Iterator[Cell]:
        """Cells as they end, each within its share. None is started once the budget is spent."""
        queue = _Queue(jobs)
        running: dict[Future[Cell], tuple[int, Job]] = {}
        idle = list(range(len(self._pools)))
        while queue or running:
            while idle and queue and not budget.spent:
                process, waiting = idle.pop(0), queue.waiting.copy()
                job = queue.take(process)
                job = replace(job, profile=budget.share(job.profile, waiting))
                running[self._pools[process].submit(run_job, job)] = process, job
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                process, job = running.pop(future)
                idle.append(process)
                cell = self._result(future, process, job)
                budget.took(job.key.backend, cell.seconds, job.profile.share)
                yield cell

    def _result(self, future: Future[Cell], process: int, job: Job) -> Cell:
        try:
            return future.result()
        except BrokenProcessPool:
            self._pools[process].shutdown(wait=False, cancel_futures=True)
            self._pools[process] = new_pool(1)
            reason = "the process died while this cell ran in it without isolation"
            return Cell(job.key, find(job.key.property).claim, "crashed", reason=reason)


class LocalExecutor:
    """Cells in this process, on one session. ``fresh`` opens another one of the same backend."""

    def __init__(self, session: Session, fresh: Callable[[], Session] | None = None) -> None:
        self._session, self._fresh = session, fresh

    def run(
        self, keys: Sequence[CellKey], profile: Profile, seed: int, budget: Budget
    ) -> Iterator[Cell]:
        """Cells in turn, each within its share. None is started once the budget is spent."""
        for index, key in enumerate(keys):
            if budget.spent:
                return
            bench = _bench(key, self._session, self._fresh)
            mine = budget.share(profile, {key.backend: len(keys) - index})
            cell = run_cell(bench, mine, key, key.backend, seed, None)
            budget.took(key.backend, cell.seconds, mine.share)
            yield cell
