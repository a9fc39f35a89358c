"""A campaign: plan the cells, run them on worker processes under a budget, journal each, report
progress.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import secrets
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from assay.impl.loading import Target, resolve
from assay.impl.protocol import Backend
from assay.impl.session import Description, open_session
from assay.properties.executor import Job, LocalExecutor, PoolExecutor
from assay.properties.journal import Journal
from assay.properties.plan import OptionError, Selection, cells, interleave, profile_named
from assay.properties.profiles import Profile
from assay.properties.results import Cell, CellKey, Result

__all__ = [
    "Done",
    "Event",
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
    resume: bool = False
    directory: Path = Path(".assay")

    def __post_init__(self) -> None:
        if not self.targets:
            raise OptionError("targets=() is empty; name at least one backend")
        if self.time is not None and not self.time > 0:
            raise OptionError(f"time={self.time!r} must be a positive number of seconds")
        if self.jobs is not None and self.jobs < 1:
            raise OptionError(f"jobs={self.jobs!r} must be at least 1")
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


Event = Planned | Done | Note
Listener = Callable[[Event], None]


def _silent(event: Event) -> None:
    """The listener that does nothing."""


def run_campaign(options: Options, listen: Listener = _silent) -> Result:
    """Run a campaign to its end, or to its budget, or to Ctrl-C; what ended is journalled in any
    case.

    Raises OptionError and TargetError before anything runs, JournalError when the journal cannot be
    used.
    """
    selection = Selection(options.ops, options.claims, options.dtypes)
    profile = profile_named(options.profile)
    if options.time is not None:
        profile = replace(profile, total_seconds=options.time)
    targets = [resolve(text, op=options.op, device=options.device) for text in options.targets]
    with Journal(options.directory, create=True) as journal:
        resumed = journal.load(_to_resume(journal, options)) if options.resume else None
        described = _describe(targets, options, profile)
        plans = _plan(described, selection, profile)
        result = resumed or _new_result(options, described, sum(map(len, plans.values())))
        if resumed is None:
            journal.begin(result, options.fingerprint())
        finished = {cell.key for cell in result.cells}
        order = interleave(list(plans.values()))
        listen(Planned(replace(result, planned=len(order)), tuple(order)))
        todo = [
            _job(key, described, options, profile, result.seed)
            for key in order
            if key not in finished
        ]
        return _run(result, todo, options, profile, journal, listen, len(order))


def _to_resume(journal: Journal, options: Options) -> str:
    found = journal.unfinished(options.fingerprint())
    if found is None:
        raise OptionError(
            "resume=True, but the journal has no unfinished campaign with these targets, "
            "selections and profile; run without --resume to start one"
        )
    return found


def _describe(
    targets: list[Target], options: Options, profile: Profile
) -> dict[str, tuple[Target, Description]]:
    """What each backend says of itself, by its name. TargetError when one cannot be loaded;
    OptionError when two share a name.
    """
    described: dict[str, tuple[Target, Description]] = {}
    for target in targets:
        with open_session(
            target, isolate=options.isolate, timeout=max(profile.timeout, 30.0)
        ) as session:
            name = session.description.contract.name
            if name in described:
                raise OptionError(
                    f"targets {described[name][0].text!r} and {target.text!r} have the same name "
                    f"{name!r}; rename one"
                )
            described[name] = (target, session.description)
    return described


def _plan(
    described: dict[str, tuple[Target, Description]], selection: Selection, profile: Profile
) -> dict[str, list[CellKey]]:
    plans = {
        name: cells(description, selection, profile) for name, (_, description) in described.items()
    }
    for name, plan in plans.items():
        if not plan:
            contract, operations = described[name][1].contract, described[name][1].operations
            raise OptionError(
                f"the selection leaves no cell for {name}: it offers ops {', '.join(operations)} "
                f"in dtypes {', '.join(contract.dtypes)}; selected ops={selection.ops}, "
                f"claims={selection.claims}, dtypes={selection.dtypes}"
            )
    return plans


def _new_result(
    options: Options, described: dict[str, tuple[Target, Description]], planned: int
) -> Result:
    versions: dict[str, str] = {}
    for _, description in described.values():
        versions |= description.versions
    return Result(
        campaign=secrets.token_hex(4),
        started=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        profile=options.profile,
        seed=options.seed if options.seed is not None else secrets.randbelow(2**32),
        targets=options.targets,
        versions=versions,
        contracts={name: _rows(d) for name, (_, d) in described.items()},
        planned=planned,
    )


def _rows(description: Description) -> dict[str, Any]:
    """The contract as JSON would give it back."""
    rows = description.contract.rows()
    return {name: list(value) if isinstance(value, tuple) else value for name, value in rows}


def _job(
    key: CellKey,
    described: dict[str, tuple[Target, Description]],
    options: Options,
    profile: Profile,
    seed: int,
) -> Job:
    own = hashlib.sha256(f"{seed} {key}".encode()).digest()
    return Job(
        key=key,
        target=described[key.backend][0],
        profile=_share(key, described, profile),
        seed=int.from_bytes(own[:8], "big"),
        isolate=options.isolate,
        database=str((options.directory / "examples").absolute()),
    )


def _share(
    key: CellKey, described: dict[str, tuple[Target, Description]], profile: Profile
) -> Profile:
    """Half the examples for dtypes after the first, where a profile only samples those."""
    first = described[key.backend][1].contract.dtypes[0]
    if profile.thorough or key.dtype == first:
        return profile
    return replace(profile, examples=profile.examples // 2)


def _run(
    result: Result,
    todo: list[Job],
    options: Options,
    profile: Profile,
    journal: Journal,
    listen: Listener,
    total: int,
) -> Result:
    began = time.monotonic()
    done = list(result.cells)
    stop = None if profile.total_seconds is None else began + profile.total_seconds
    jobs = options.jobs or os.cpu_count() or 1
    notes: list[str] = []
    with PoolExecutor(jobs) as executor:
        try:
            for cell in executor.run(todo, stop):
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
            f"budget of {profile.total_seconds:g} s spent: {total - len(done)} of {total} cells "
            "did not run; continue with --resume"
        )
    for note in notes:
        listen(Note(note))
    final = replace(
        result,
        cells=tuple(done),
        planned=total,
        finished=len(done) == total,
        seconds=result.seconds + time.monotonic() - began,
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
        plan = cells(description, selection, chosen)
        stop = None if chosen.total_seconds is None else time.monotonic() + chosen.total_seconds
        began = time.monotonic()
        found = tuple(LocalExecutor(session).run(plan, chosen, seed, stop))
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
        seconds=time.monotonic() - began,
    )
