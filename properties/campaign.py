"""A campaign: plan the cells, run them on worker processes under a budget, journal each, report
progress.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import math
import os
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from assay.impl.adversarial_notes import static_notes
from assay.impl.adversarial_session import Adversary
from assay.impl.loading import Target, resolve
from assay.impl.protocol import Backend, Unavailable
from assay.impl.session import Description, open_session
from assay.properties.absence import by_reason
from assay.properties.adversarial import adversary
from assay.properties.budget import Budget
from assay.properties.executor import Job, LocalExecutor, PoolExecutor
from assay.properties.journal import Journal
from assay.properties.plan import (
    OptionError,
    Selection,
    allotted,
    cells,
    in_whole_breadth,
    interleave,
    profile_named,
    seed_of,
)
from assay.properties.profiles import Profile
from assay.properties.results import Absent, Cell, CellKey, Result

__all__ = [
    "Done",
    "Event",
    "Loaded",
    "Note",
    "OptionError",
    "Options",
    "Planned",
    "run_backend",
    "run_campaign",
]


@dataclass(frozen=True)
class Options:
    """What to run and how.

    targets    texts that name backends;  op: for targets that are plain functions
    ops, claims, dtypes  selections (globs); None is all
    profile    name of a profile;  time: seconds that replace its total
    seed       None: chosen and reported;  jobs: cells at a time, None is the number of cores
    isolate    backends run in workers of their own
    adversarial  they are kept in the dark there, since they may try to look right; their sources
               are read for what suggests it
    resume     continue the newest unfinished campaign of the same configuration
    directory  where the journal and the example database lie
    """

    targets: tuple[str, ...]
    op: str | None = None
    ops: tuple[str, ...] | None = None
    claims: tuple[str, ...] | None = None
    dtypes: tuple[str, ...] | None = None
    device: str | None = None
    profile: str = "quick"
    time: float | None = None
    seed: int | None = None
    jobs: int | None = None
    isolate: bool = True
    adversarial: bool = False
    resume: bool = False
    directory: Path = Path(".assay")

    def __post_init__(self) -> None:
        if not self.targets:
            raise OptionError("targets=() is empty; name at least one backend")
        if self.time is not None and not self.time > 0:
            raise OptionError(f"time={self.time!r} must be a positive number of seconds")
        if self.jobs is not None and self.jobs < 1:
            raise OptionError(f"jobs={self.jobs!r} must be at least 1")
        if self.adversarial and not self.isolate:
            raise OptionError(
                "adversarial=True and isolate=False exclude each other: a backend in this process "
                "sees everything; leave one of them out"
            )
        if self.seed is not None and not 0 <= self.seed < 2**32:
            raise OptionError(f"seed={self.seed!r} must lie in 0 .. 2**32 - 1")

    def fingerprint(self) -> str:
        """Identifies the configuration that a resumed campaign must share."""
        record = {
            k: v
            for k, v in asdict(self).items()
            if k not in ("resume", "jobs", "time", "seed", "directory")
        }
        return hashlib.sha256(json.dumps(record, sort_keys=True, default=str).encode()).hexdigest()


@dataclass(frozen=True)
class Loaded:
    """One more backend has said what it is, or that it cannot run here."""

    done: int
    total: int


@dataclass(frozen=True)
class Planned:
    """The campaign begins: its record without cells, and all cells to be run (those of a resumed
    part too).
    """

    result: Result
    keys: tuple[CellKey, ...]


@dataclass(frozen=True)
class Done:
    """One cell has a verdict."""

    cell: Cell
    done: int
    total: int


@dataclass(frozen=True)
class Note:
    """Something worth a line."""

    text: str


Event = Loaded | Planned | Done | Note
Listener = Callable[[Event], None]
Described = dict[str, tuple[Target, Description]]


def _silent(event: Event) -> None:
    """The listener that does nothing."""


def run_campaign(options: Options, listen: Listener = _silent) -> Result:
    """Run a campaign to its end, or to its budget, or to Ctrl-C; what ended is journalled in any
    case.

    A backend that cannot run on this machine is left out and recorded as absent.

    Raises OptionError and TargetError before anything runs, Unavailable when all are absent, and
    JournalError when the journal cannot be used.
    """
    began = time.monotonic()
    selection = Selection(options.ops, options.claims, options.dtypes)
    profile = profile_named(options.profile)
    if options.time is not None:
        profile = replace(profile, total_seconds=options.time)
    targets = [resolve(text, op=options.op, device=options.device) for text in options.targets]
    with Journal(options.directory, create=True) as journal:
        resumed = journal.load(_to_resume(journal, options)) if options.resume else None
        seed = _seed(options) if resumed is None else resumed.seed
        guard = adversary(seed, options.directory) if options.adversarial else None
        jobs = options.jobs or os.cpu_count() or 1
        described, absent = _describe(targets, options, profile, guard, jobs, listen)
        profile, partial = _breadth([d for _, d in described.values()], profile, jobs)
        plans = _plan(described, selection, profile)
        result = resumed or _new_result(options, seed, described, sum(map(len, plans.values())))
        idle = () if resumed else (*partial, *_idle(plans))
        result = replace(result, absent=absent, notes=(*result.notes, *idle))
        if resumed is None:
            journal.begin(result, options.fingerprint())
        finished = {cell.key for cell in result.cells}
        order = interleave(list(plans.values()))
        listen(Planned(replace(result, planned=len(order)), tuple(order)))
        todo = [
            _job(key, described, options, profile, seed, guard)
            for key in order
            if key not in finished
        ]
        budget = Budget(profile.total_seconds, jobs, began)
        return _run(result, todo, budget, journal, listen, len(order))


def _to_resume(journal: Journal, options: Options) -> str:
    found = journal.unfinished(options.fingerprint())
    if found is None:
        raise OptionError(
            "resume=True, but the journal has no unfinished campaign with these targets, "
            "selections and profile; run without --resume to start one"
        )
    return found


def _seed(options: Options) -> int:
    """The seed that was given, or one that nobody can foresee."""
    return options.seed if options.seed is not None else secrets.randbelow(2**32)


def _describe(
    targets: list[Target],
    options: Options,
    profile: Profile,
    guard: Adversary | None,
    jobs: int,
    listen: Listener,
) -> tuple[Described, tuple[Absent, ...]]:
    """What each backend says of itself, by its name, and those that cannot run here.

    TargetError when one cannot be loaded; OptionError when two share a name; Unavailable when none
    can run.
    """
    described: Described = {}
    absent: list[Absent] = []
    for index, (target, answer) in enumerate(_answers(targets, options, profile, guard, jobs)):
        listen(Loaded(index + 1, len(targets)))
        if isinstance(answer, Unavailable):
            absent.append(Absent(target.text, answer.reason, answer.remedy))
            continue
        name = answer.contract.name
        if name in described:
            raise OptionError(
                f"targets {described[name][0].text!r} and {target.text!r} have the same name "
                f"{name!r}; rename one"
            )
        described[name] = (target, answer)
    if not described:
        raise Unavailable("; ".join(map(str, by_reason(absent))))
    return described, tuple(absent)


def _answers(
    targets: list[Target],
    options: Options,
    profile: Profile,
    guard: Adversary | None,
    jobs: int,
) -> Iterator[tuple[Target, Description | Unavailable]]:
    """The backends load in workers at the same time; without isolation in this process in turn."""

    def answer(target: Target) -> Description | Unavailable:
        try:
            return _description(target, options.isolate, profile.timeout, guard)
        except Unavailable as error:
            return error

    with ThreadPoolExecutor(jobs if options.isolate else 1) as pool:
        try:
            yield from zip(targets, pool.map(answer, targets), strict=True)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _description(
    target: Target, isolate: bool, timeout: float, guard: Adversary | None
) -> Description:
    with open_session(
        target, isolate=isolate, timeout=max(timeout, 30.0), adversary=guard
    ) as session:
        return session.description


def _breadth(
    descriptions: Sequence[Description], profile: Profile, jobs: int
) -> tuple[Profile, tuple[str, ...]]:
    """``profile`` in the breadth that its time is enough for, and what to say if that is not all of
    it.
    """
    wide = in_whole_breadth(descriptions, profile)
    if wide is None or profile.total_seconds is None:
        return profile, ()
    whole, seconds = wide
    if seconds <= profile.total_seconds * jobs:
        return whole, ()
    return profile, (
        f"not every claim is asked in every dtype and mode of {len(descriptions)} backends; "
        f"with --time {math.ceil(seconds / jobs / 60)}m it is",
    )


def _plan(described: Described, selection: Selection, profile: Profile) -> dict[str, list[CellKey]]:
    plans = {
        name: cells(description, selection, profile) for name, (_, description) in described.items()
    }
    if any(plans.values()):
        return plans
    offers = "; ".join(
        f"{name} offers ops {', '.join(description.operations)} "
        f"in dtypes {', '.join(description.contract.dtypes)}"
        for name, (_, description) in described.items()
    )
    raise OptionError(
        f"the selection leaves no cell: {offers}; selected ops={selection.ops}, "
        f"claims={selection.claims}, dtypes={selection.dtypes}"
    )


def _idle(plans: dict[str, list[CellKey]]) -> tuple[str, ...]:
    """A note that names the backends of which the selection leaves nothing."""
    names = sorted(name for name, plan in plans.items() if not plan)
    return (f"the selection leaves no cell for {', '.join(names)}",) if names else ()


def _new_result(options: Options, seed: int, described: Described, planned: int) -> Result:
    versions: dict[str, str] = {}
    notes: list[str] = []
    for target, description in described.values():
        versions |= description.versions
        notes += static_notes(target) if options.adversarial else ()
    return Result(
        campaign=secrets.token_hex(4),
        started=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        profile=options.profile,
        seed=seed,
        targets=options.targets,
        versions=versions,
        contracts={name: _rows(d) for name, (_, d) in described.items()},
        planned=planned,
        adversarial=options.adversarial,
        static_notes=tuple(dict.fromkeys(notes)),
    )


def _rows(description: Description) -> dict[str, Any]:
    """The contract as JSON would give it back."""
    rows = description.contract.rows()
    return {name: list(value) if isinstance(value, tuple) else value for name, value in rows}


def _job(
    key: CellKey,
    described: Described,
    options: Options,
    profile: Profile,
    seed: int,
    guard: Adversary | None,
) -> Job:
    target, description = described[key.backend]
    return Job(
        key=key,
        target=target,
        profile=allotted(key, description, profile),
        seed=seed_of(seed, key),
        isolate=options.isolate,
        database=str((options.directory / "examples").absolute()),
        adversary=guard,
    )


def _run(
    result: Result,
    todo: list[Job],
    budget: Budget,
    journal: Journal,
    listen: Listener,
    total: int,
) -> Result:
    done = list(result.cells)
    notes: list[str] = []
    with PoolExecutor(budget.jobs) as executor:
        try:
            for cell in executor.run(todo, budget):
                journal.add(result.campaign, cell)
                done.append(cell)
                listen(Done(cell, len(done), total))
        except KeyboardInterrupt:
            executor.kill()
            notes.append(
                f"interrupted: {len(done)} of {total} cells have a verdict; continue with --resume"
            )
    if not notes and len(done) < total:
        notes.append(
            f"budget of {budget.seconds:g} s spent: {total - len(done)} of {total} cells "
            "did not run; continue with --resume"
        )
    for note in notes:
        listen(Note(note))
    final = replace(
        result,
        cells=tuple(done),
        planned=total,
        finished=len(done) == total,
        seconds=result.seconds + time.monotonic() - budget.began,
        notes=(*result.notes, *notes),
    )
    journal.end(final)
    return final


def run_backend(
    backend: Backend,
    *,
    ops: tuple[str, ...] | None = None,
    claims: tuple[str, ...] | None = None,
    dtypes: tuple[str, ...] | None = None,
    profile: str = "quick",
    seed: int = 0,
) -> Result:
    """A campaign over a backend object in this process: no worker, no journal. For test suites."""
    selection, chosen = Selection(ops, claims, dtypes), profile_named(profile)
    with open_session(backend, isolate=False) as session:
        description = session.description
        chosen, _ = _breadth([description], chosen, 1)
        plan = cells(description, selection, chosen)
        budget = Budget(chosen.total_seconds, 1, time.monotonic())
        found = tuple(LocalExecutor(session).run(plan, chosen, seed, budget))
    name = description.contract.name
    return Result(
        campaign="",
        started=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        profile=profile,
        seed=seed,
        targets=(name,),
        versions=dict(description.versions),
        contracts={name: _rows(description)},
        planned=len(plan),
        cells=found,
        finished=len(found) == len(plan),
        seconds=time.monotonic() - budget.began,
    )
