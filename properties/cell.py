"""One cell from search to verdict."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from assay.properties.case import Case
from assay.properties.finding import describe
from assay.properties.profiles import Profile
from assay.properties.results import Cell, CellKey, Verdict
from assay.properties.search import Search, search
from assay.properties.shrink import simplify_values
from assay.properties.trial import Bench, Trial
from assay.spec.claims import claim


def run_cell(
    bench: Bench, profile: Profile, key: CellKey, target: str, seed: int, database: Path | None
) -> Cell:
    """Run one cell to its verdict. ``target`` is the text that loads the backend again."""
    exclusion = bench.prop.excluded(bench.ctx)
    if exclusion is not None:
        return Cell(key, bench.prop.claim, "unsupported", reason=exclusion.reason)
    run = Search(bench, profile, key)
    search(run, seed, database)
    if run.oracle_fault:
        reason = f"the oracle is wrong, please report it: {run.oracle_fault}"
        return Cell(key, bench.prop.claim, "inconclusive", run.examples, reason=reason)
    return _quiet(run) if run.best is None else _faulty(run, run.best, target)


def _quiet(run: Search) -> Cell:
    """The verdict of a cell in which nothing failed."""
    verdict: Verdict = "held"
    reason, grade = run.weaker, "weaker promise" if run.weaker else _grade(run)
    if run.informative == 0:
        verdict, grade = ("unsupported", "") if run.unsupported else ("inconclusive", "")
        reason = run.unsupported or f"none of {run.examples} examples could have failed"
    return Cell(
        run.key,
        run.bench.prop.claim,
        verdict,
        run.examples,
        time.monotonic() - run.started,
        run.worst,
        tuple(run.scores),
        reason,
        grade,
        run.rejudged,
        cut=run.cut,
    )


def _grade(run: Search) -> str:
    if claim(run.bench.prop.claim).exact:
        return "exact"
    return "bitwise" if run.worst == 0.0 else "within bound"


def _faulty(run: Search, best: Trial, target: str) -> Cell:
    """The verdict of a cell with a fault: confirm it, simplify its values, describe it."""
    confirmed = best if best.slow() else _confirmed(run, best)
    small = confirmed or best
    if confirmed is not None and not confirmed.slow():
        small = _simplified(run, confirmed, stateful=confirmed.case != best.case)
    finding = describe(run.key, target, run.bench, small, large=run.largest)
    finding = replace(
        finding,
        verdict=finding.verdict if confirmed is not None else "flaky",
        hint=finding.hint if confirmed is not None else "shows only after other calls",
        examples=run.first_failure[0],
        seconds=run.first_failure[1],
        shrink_seconds=time.monotonic() - run.started - run.first_failure[1],
    )
    return Cell(
        run.key,
        run.bench.prop.claim,
        finding.verdict,
        run.examples,
        time.monotonic() - run.started,
        max(run.worst, finding.score),
        tuple(run.scores),
        finding=finding,
    )


def _confirmed(run: Search, best: Trial) -> Trial | None:
    """The simplest failing trial that fails before any other call too.

    A kernel that keeps state can fail on anything once it is spoilt: then the small case shows
    nothing by itself, and an earlier one may.
    """
    for trial in (best, run.first, run.largest):
        if trial is None:
            continue
        again = run.bench.attempt_fresh(trial.case)
        if again.failed and again.kind() == trial.kind():
            return again
    return None


def _simplified(run: Search, trial: Trial, *, stateful: bool) -> Trial:
    """The trial with simpler values that fails as well, before any other call."""
    attempt = run.bench.attempt_fresh if stateful else run.bench.attempt
    last = trial

    def fails(case: Case) -> bool:
        nonlocal last
        again = attempt(case)
        if again.failed and again.kind() == trial.kind():
            last = again
            return True
        return False

    made, seconds = trial.made, run.profile.shrink_seconds / 2
    simplify_values(trial.case, made.arrays, made.fits, fails, seconds)
    if stateful or last is trial:
        return last
    fresh = run.bench.attempt_fresh(last.case)
    return fresh if fresh.failed and fresh.kind() == trial.kind() else trial
