"""Shows a campaign while it runs: findings on standard output, progress on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from assay.cli import console
from assay.cli.summary import finding_line
from assay.properties.absence import by_reason
from assay.properties.campaign import Done, Event, Loaded, Note, Planned
from assay.properties.known import Known, mark

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_EVERY = 10.0
"""Seconds between progress lines where there is no terminal."""


@contextmanager
def listen(known: Known, *, quiet: bool) -> Iterator[Callable[[Event], None]]:
    """A listener for ``run_campaign``: live on a terminal, else a line now and then; or silent."""
    if quiet:
        yield _Findings(known)
    elif sys.stderr.isatty():
        with bar() as progress:
            yield _Live(known, progress)
    else:
        yield _Lines(known)


class _Findings:
    """Prints findings and notes, and counts."""

    def __init__(self, known: Known) -> None:
        self.known = known
        self.versions: dict[str, str] = {}
        self.failed = 0

    def __call__(self, event: Event) -> None:
        if isinstance(event, Loaded):
            self.loaded(event)
        elif isinstance(event, Planned):
            self.versions = dict(event.result.versions)
            self.planned(event)
        elif isinstance(event, Done):
            cell = mark(self.known, event.cell, self.versions)
            if cell.finding is not None:
                self.failed += 1
                console.line(finding_line(cell.finding))
                sys.stdout.flush()
            self.done(event)
        elif isinstance(event, Note):
            console.note(event.text)

    def loaded(self, event: Loaded) -> None:
        """A backend has been loaded."""

    def planned(self, event: Planned) -> None:
        """The cells are known."""

    def done(self, event: Done) -> None:
        """A cell has ended."""


class _Lines(_Findings):
    """A plain line when the plan is made, and then every few seconds."""

    def __init__(self, known: Known) -> None:
        super().__init__(known)
        self.last = time.monotonic()

    def loaded(self, event: Loaded) -> None:
        if self._due():
            console.note(f"{event.done} of {event.total} backends loaded")

    def planned(self, event: Planned) -> None:
        for group in by_reason(event.result.absent):
            console.note(f"absent: {group.short()}")
        console.note(
            f"{len(event.keys)} cells, seed {event.result.seed}, profile {event.result.profile}"
        )
        self.last = time.monotonic()

    def done(self, event: Done) -> None:
        if self._due() or event.done == event.total:
            console.note(f"{event.done} of {event.total} cells, {self.failed} findings")

    def _due(self) -> bool:
        now = time.monotonic()
        if now - self.last < _EVERY:
            return False
        self.last = now
        return True


class _Live(_Findings):
    """A bar with counts and the cell that ended last."""

    def __init__(self, known: Known, progress: Progress) -> None:
        super().__init__(known)
        self.progress = progress
        self.task: TaskID = progress.add_task("loading backends", total=None)

    def loaded(self, event: Loaded) -> None:
        self.progress.update(self.task, total=event.total, completed=event.done)

    def planned(self, event: Planned) -> None:
        for group in by_reason(event.result.absent):
            self.progress.console.print(f"absent: {console.plain(group.short())}")
        self.progress.update(self.task, total=len(event.keys), completed=0, description="cells")

    def done(self, event: Done) -> None:
        text = f"{self.failed} findings, {console.plain(str(event.cell.key))}"
        self.progress.update(self.task, completed=event.done, description=text)


def bar() -> Progress:
    """A progress display. Findings go through it only when both streams are one terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    return Progress(
        TextColumn("assay"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
        console=console.console(stderr=True),
        transient=True,
        redirect_stderr=False,
        redirect_stdout=sys.stdout.isatty(),
    )
