"""Executors: where cells run. A pool of processes for campaigns, this process for test suites."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
import traceback
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import forkserver
from pathlib import Path
from types import TracebackType

from assay.impl.loading import Target
from assay.impl.session import Session, open_session
from assay.properties.cell import run_cell
from assay.properties.context import context_of
from assay.properties.profiles import Profile
from assay.properties.properties import find
from assay.properties.results import Cell, CellKey
from assay.properties.trial import Bench
from assay.spec.ops import op

OPEN_SESSIONS = 8
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

    def open(self) -> Session:
        """A session of the backend in which nothing has been called yet."""
        return open_session(self.target, isolate=self.isolate, timeout=self.profile.timeout)


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


_SESSIONS = _Sessions()


def _start() -> None:
    """A pool process leaves Ctrl-C to its parent, and hosts' warnings to nobody: verdicts say what
    matters.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.simplefilter("ignore")


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
        return run_cell(bench, job.profile, job.key, job.target.text, job.seed, path)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        reason = f"internal error: {error!r} at {Path(where.filename).name}:{where.lineno}"
        return Cell(job.key, find(job.key.property).claim, "inconclusive", reason=reason)


def _bench(key: CellKey, session: Session, fresh: Callable[[], Session] | None) -> Bench:
    ctx = context_of(op(key.op), session.description, key.dtype, key.mode)
    return Bench(find(key.property), ctx, session, fresh)


class PoolExecutor:
    """Cells on ``jobs`` processes at a time. A process that dies takes its cell with it as crashed,
    and nothing else.
    """

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._pool = self._new_pool()

    def _new_pool(self) -> ProcessPoolExecutor:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["assay.properties.executor"])
        with _one_blas_thread():
            forkserver.ensure_running()
        return ProcessPoolExecutor(self._jobs, mp_context=context, initializer=_start)

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
        self._pool.shutdown(wait=True, cancel_futures=True)

    def kill(self) -> None:
        """End the pool at once."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            child.kill()

    def run(self, jobs: Sequence[Job], stop: float | None) -> Iterator[Cell]:
        """Cells as they end. None is started after ``stop`` (a monotonic time)."""
        waiting = list(reversed(jobs))
        running: dict[Future[Cell], Job] = {}
        while waiting or running:
            late = stop is not None and time.monotonic() >= stop
            while waiting and len(running) < self._jobs and not late:
                job = waiting.pop()
                running[self._pool.submit(run_job, job)] = job
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                job = running.pop(future)
                try:
                    yield future.result()
                except BrokenProcessPool:
                    yield from self._after_crash([job, *running.values()])
                    running.clear()
                    break

    def _after_crash(self, jobs: Sequence[Job]) -> Iterator[Cell]:
        """A process died, and the pool with it: run what was under way alone, to see which cell it
        was.
        """
        for job in jobs:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = self._new_pool()
            try:
                yield self._pool.submit(run_job, job).result()
            except BrokenProcessPool:
                reason = "the process died while this cell ran in it without isolation"
                yield Cell(job.key, find(job.key.property).claim, "crashed", reason=reason)
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._pool = self._new_pool()


class LocalExecutor:
    """Cells in this process, on one session. ``fresh`` opens another one of the same backend."""

    def __init__(self, session: Session, fresh: Callable[[], Session] | None = None) -> None:
        self._session, self._fresh = session, fresh

    def run(
        self, keys: Sequence[CellKey], profile: Profile, seed: int, stop: float | None
    ) -> Iterator[Cell]:
        """Cells in turn. None is started after ``stop``."""
        for key in keys:
            if stop is not None and time.monotonic() >= stop:
                return
            bench = _bench(key, self._session, self._fresh)
            yield run_cell(bench, profile, key, key.backend, seed, None)
