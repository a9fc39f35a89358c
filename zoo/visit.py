"""A member of the zoo under examination, just as a campaign would examine it: in a worker, every
cell with its own seed and its own share of the examples.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import TracebackType

from assay.impl.loading import resolve
from assay.impl.session import Session, open_session
from assay.properties.adversarial import adversary
from assay.properties.case import Case
from assay.properties.cell import run_cell
from assay.properties.context import context_of
from assay.properties.plan import Selection, allotted, cells, seed_of
from assay.properties.profiles import Profile
from assay.properties.properties import find
from assay.properties.results import Cell, CellKey
from assay.properties.trial import Bench, Trial
from assay.spec.ops import op
from assay.zoo.cpu import cpu_seconds

PATIENCE = 60.0
"""Seconds that a cell has at least: a busy machine must not end a search."""


@dataclass(frozen=True)
class Look:
    """One cell, and the CPU seconds that it took, the worker's included.

    seconds  up to the first failure, or to the end where nothing failed
    shrink   from there to the small case
    broken   the error of assay's own that cost the cell its verdict, or ""
    """

    cell: Cell
    seconds: float
    shrink: float
    broken: str = ""


@dataclass
class _Watched(Bench):
    """A bench that knows what CPU time was spent when a trial first failed."""

    failed_at: float | None = None

    def attempt(self, case: Case) -> Trial:
        """Make and judge the experiment of one case."""
        trial = super().attempt(case)
        if trial.failed and self.failed_at is None:
            self.failed_at = cpu_seconds()
        return trial


class Visit:
    """Opens ``target`` and runs cells of its plan under ``profile``. A context manager.

    Raises TargetError and Unavailable when the member cannot be loaded here.
    """

    def __init__(
        self, target: str, profile: Profile, seed: int, *, adversarial: bool = False
    ) -> None:
        self._target, self._seed = resolve(target), seed
        self._adversary = adversary(seed) if adversarial else None
        self._profile = replace(profile, cell_seconds=max(PATIENCE, profile.cell_seconds))
        self._session = self._open()
        self.keys = cells(self._session.description, Selection(), profile)

    def _open(self) -> Session:
        return open_session(
            self._target,
            isolate=True,
            timeout=self._profile.timeout,
            adversary=self._adversary,
        )

    def look(self, key: CellKey) -> Look:
        """Run one cell. A fault of assay's own costs this cell its verdict, no more."""
        description = self._session.description
        context = context_of(op(key.op), description, key.dtype, key.mode)
        bench = _Watched(find(key.property), context, self._session, self._open)
        profile = allotted(key, description, self._profile)
        began, broken = cpu_seconds(), ""
        try:
            cell = run_cell(
                bench, profile, key, self._target.text, seed_of(self._seed, key), database=None
            )
        except Exception as error:
            broken = f"internal error: {error!r}"
            cell = Cell(key, bench.prop.claim, "inconclusive", reason=broken)
        ended = cpu_seconds()
        failed = ended if bench.failed_at is None else bench.failed_at
        return Look(cell, failed - began, ended - failed, broken)

    def __enter__(self) -> Visit:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._session.close()
