"""Hunts and clearances on several processes at a time."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from assay.properties.executor import new_pool, start_process

Record = TypeVar("Record")

MOST_LOSSES = 3
"""Times that a process may die, as when the system runs out of memory: what ran is run again."""


def spread(tasks: Sequence[Callable[[], Record]], jobs: int) -> Generator[Record, None, None]:
    """The records of ``tasks`` as they end. BrokenProcessPool: processes die again and again."""
    waiting = list(reversed(tasks))
    lost: list[Callable[[], Record]] = []
    for _ in range(MOST_LOSSES):
        lost = yield from _run(waiting, jobs)
        if not lost:
            return
        waiting += reversed(lost)
    raise BrokenProcessPool(f"a process died {MOST_LOSSES} times; the last ran {lost!r}")


def _run(
    waiting: list[Callable[[], Record]], jobs: int
) -> Generator[Record, None, list[Callable[[], Record]]]:
    """Takes tasks from the end of ``waiting``; returns those that a dying process took along."""
    pool = new_pool(jobs, _start)
    running: dict[Future[Record], Callable[[], Record]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                task = waiting.pop()
                running[pool.submit(task)] = task
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                try:
                    record = future.result()
                except BrokenProcessPool:
                    return list(running.values())
                del running[future]
                yield record
        return []
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        if running:
            for child in multiprocessing.active_children():
                child.kill()


def _start() -> None:
    """As in a campaign; and workers descend from this process, so that their time counts as its."""
    start_process()
    for name in [n for n in os.environ if n.startswith("ASSAY_NURSERY_")]:
        del os.environ[name]
