"""Running one cell: draw cases, make and judge experiments, make the first fault small."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import hypothesis
import hypothesis.errors
import numpy as np
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st
from hypothesis.database import DirectoryBasedExampleDatabase

from assay.impl.call import Failure
from assay.impl.session import Session
from assay.properties import oracle
from assay.properties.blame import Evidence, blame, blame_failure
from assay.properties.case import Case, Materials
from assay.properties.context import Context
from assay.properties.experiment import Close, Experiment
from assay.properties.judge import Judgement, Violation, judge
from assay.properties.profiles import Profile
from assay.properties.property import Property
from assay.properties.results import Cell, CellKey, Finding, Verdict
from assay.properties.shrink import cost, simplify_values
from assay.spec.claims import claim

KEPT_SCORES = 200
FEWEST = 10
"""Structures drawn at least, but by properties whose examples are many calls each."""

FILLS = 2
"""Value seeds judged for each drawn structure: drawing costs more than judging."""


# A cell has its own limits of time and size. The deprecated members of the enumeration warn.
_UNCHECKED = (
    HealthCheck.too_slow,
    HealthCheck.data_too_large,
    HealthCheck.filter_too_much,
    HealthCheck.large_base_example,
)


class _Fault(Exception):
    """Tells Hypothesis that the example fails."""


class _Enough(BaseException):
    """Leaves Hypothesis at once: the time is over, or there is nothing to gain. Not an Exception,
    so that it passes through.
    """


@dataclass
class Trial:
    """What one case did."""

    case: Case
    experiment: Experiment
    made: Materials
    judgement: Judgement

    @property
    def failed(self) -> bool:
        """A violation, or a call that should have given a value and did not."""
        failure = self.judgement.failure
        return bool(self.judgement.violations) or (
            failure is not None and failure.kind != "unsupported"
        )

    def complexity(self) -> tuple[int, ...]:
        """Smaller is simpler: sizes first, then what differs from the defaults, then the values."""
        c = self.case
        plain = sum(kind != "contiguous" for kind in c.layouts.values())
        return (
            int(np.sum(list(c.dims.values()))),
            len(c.attributes),
            int(c.mask is not None),
            plain,
            sum(cost(a) for a in self.made.arrays.values()),
        )


def attempt(prop: Property, ctx: Context, session: Session, case: Case) -> Trial:
    """Make and judge the experiment of one case."""
    made = Materials(case)
    with np.errstate(all="ignore"):
        experiment = prop.build(case, ctx, made)
        replies = session.run(experiment.calls)
        return Trial(case, experiment, made, judge(experiment, replies))


@dataclass
class CellRun:
    """The state of one cell while it runs."""

    prop: Property
    ctx: Context
    session: Session
    profile: Profile
    key: CellKey
    target: str
    started: float = field(default_factory=time.monotonic)
    structures: int = 0
    examples: int = 0
    informative: int = 0
    worst: float = 0.0
    scores: list[float] = field(default_factory=list)
    bitwise: bool = True
    weaker: str = ""
    unsupported: str = ""
    rejudged: int = 0
    oracle_fault: str = ""
    best: Trial | None = None
    largest: Trial | None = None
    simplest_fails: bool = False
    first_failure: tuple[int, float] = (0, 0.0)

    def example(self, case: Case) -> None:
        """One drawn structure, with several fillings."""
        self._check_time()
        self.structures += 1
        for fill in range(FILLS):
            trial = attempt(
                self.prop, self.ctx, self.session, replace(case, seed=(case.seed + fill) % 2**32)
            )
            self._note(trial)
            self._rejudge(trial)
            if trial.failed:
                self._keep(trial)
                self._leave(case)
                return
            if trial.judgement.failure is not None or not trial.judgement.informative:
                # Nothing could have failed: Hypothesis draws another structure in its place.
                hypothesis.reject()

    def _leave(self, case: Case) -> None:
        """Let Hypothesis shrink, unless the very first and simplest case fails: that one is small
        already.

        Then one more is looked for, which need not be small: it says more of the cause.
        """
        if self.structures == 1 and max(case.dims.values(), default=0) <= 2:
            self.simplest_fails = True
        elif self.simplest_fails:
            raise _Enough
        else:
            raise _Fault

    def _rejudge(self, trial: Trial) -> None:
        """Now and then, test what the example was judged by. A wrong oracle ends the cell."""
        calls, failure = trial.experiment.calls, trial.judgement.failure
        if not self.prop.rejudged or self.informative % oracle.RATE != 1 or failure is not None:
            return
        if not oracle.affordable(calls[0].inputs):
            return
        exact = [e for e in trial.experiment.expectations if isinstance(e, Close)]
        self.rejudged += 1
        self.oracle_fault = oracle.disagreement(
            self.ctx,
            calls[0].inputs,
            trial.case.attributes,
            {e.subject.name: e.want for e in exact},
            {e.subject.name: e.bound for e in exact},
        )
        if self.oracle_fault:
            raise _Enough

    def _check_time(self) -> None:
        now = time.monotonic()
        if self.best is None and now - self.started > self.profile.cell_seconds:
            raise _Enough
        if (
            self.best is not None
            and now - self.started - self.first_failure[1] > self.profile.shrink_seconds / 2
        ):
            raise _Enough

    def _note(self, trial: Trial) -> None:
        verdict = trial.judgement
        if self.best is None:
            self.examples += 1
        if verdict.failure is not None and verdict.failure.kind == "unsupported":
            self.unsupported = verdict.failure.message
            return
        self.informative += int(verdict.informative)
        self.bitwise = self.bitwise and verdict.bitwise
        self.weaker = self.weaker or trial.experiment.weaker
        if verdict.failure is None and self.best is None:
            self.worst = max(self.worst, verdict.score)
            index = self.examples % KEPT_SCORES
            self.scores[index : index + 1] = [verdict.score]

    def _keep(self, trial: Trial) -> None:
        if self.best is None:
            self.first_failure = (self.examples, time.monotonic() - self.started)
        if self.best is None or trial.complexity() < self.best.complexity():
            self.best = trial
        if self.largest is None or trial.complexity() > self.largest.complexity():
            self.largest = trial
        failure = trial.judgement.failure
        if failure is not None and failure.kind in ("hung", "memory"):
            raise _Enough  # Every further example would cost the whole time limit again.


def run_cell(
    prop: Property,
    ctx: Context,
    session: Session,
    profile: Profile,
    key: CellKey,
    target: str,
    seed: int,
    database: Path | None,
) -> Cell:
    """Run one cell to its verdict."""
    run = CellRun(prop, ctx, session, profile, key, target)
    exclusion = prop.excluded(ctx)
    if exclusion is not None:
        return Cell(key, prop.claim, "unsupported", reason=exclusion.reason)
    _search(run, seed, database)
    if run.oracle_fault:
        reason = f"the oracle is wrong, please report it: {run.oracle_fault}"
        return Cell(key, prop.claim, "inconclusive", run.examples, reason=reason)
    return _quiet(run) if run.best is None else _faulty(run)


def _search(run: CellRun, seed: int, database: Path | None) -> None:
    """Let Hypothesis draw, and shrink the structure of the first fault."""
    strategy = st.composite(lambda draw: run.prop.draw(draw, run.ctx))()
    phases = [Phase.reuse, Phase.generate, Phase.shrink]

    def one_example(case: Case) -> None:
        run.example(case)

    test = hypothesis.given(strategy)(one_example)
    inner: Any = test.hypothesis.inner_test  # type: ignore[attr-defined]
    # One function body serves all cells: the digest keeps their stored examples apart.
    inner._hypothesis_internal_add_digest = hashlib.sha256(str(run.key).encode()).digest()
    settings = hypothesis.settings(
        max_examples=_structures(run.profile, run.prop),
        deadline=None,
        database=None if database is None else DirectoryBasedExampleDatabase(database),
        phases=phases,
        suppress_health_check=_UNCHECKED,
        derandomize=False,
        report_multiple_bugs=False,
        print_blob=False,
        verbosity=hypothesis.Verbosity.quiet,
    )
    try:
        settings(hypothesis.seed(seed)(test))()
    except (_Fault, _Enough, hypothesis.errors.Flaky):
        return
    except hypothesis.errors.Unsatisfiable:
        return


def _structures(profile: Profile, prop: Property) -> int:
    """How many structures to draw: a share of the profile's examples, and at least a few."""
    return max(FEWEST if prop.weight >= 0.2 else 3, round(profile.examples * prop.weight / FILLS))


def _quiet(run: CellRun) -> Cell:
    """The verdict of a cell in which nothing failed."""
    verdict: Verdict = "held"
    reason, grade = run.weaker, "weaker promise" if run.weaker else _grade(run)
    if run.informative == 0:
        verdict, grade = ("unsupported", "") if run.unsupported else ("inconclusive", "")
        reason = run.unsupported or f"none of {run.examples} examples could have failed"
    return Cell(
        run.key,
        run.prop.claim,
        verdict,
        run.examples,
        time.monotonic() - run.started,
        run.worst,
        tuple(run.scores),
        reason,
        grade,
        run.rejudged,
    )


def _grade(run: CellRun) -> str:
    if claim(run.prop.claim).exact:
        return "exact"
    return "bitwise" if run.worst == 0.0 else "within bound"


def _faulty(run: CellRun) -> Cell:
    """The verdict of a cell with a fault: simplify its values, confirm it, describe it."""
    trial = run.best
    if trial is None:
        raise ValueError("the run has no failing trial")
    began = time.monotonic()
    last = trial
    slow = trial.judgement.failure is not None and trial.judgement.failure.kind in (
        "hung",
        "memory",
    )

    def fails(case: Case) -> bool:
        nonlocal last
        again = attempt(run.prop, run.ctx, run.session, case)
        if again.failed and _kind(again) == _kind(trial):
            last = again
            return True
        return False

    confirmed = slow or any(fails(trial.case) for _ in range(2))
    if confirmed and not slow:
        simplify_values(trial.case, trial.made.arrays, fails, run.profile.shrink_seconds / 2)
    spent = began - run.started - run.first_failure[1] + time.monotonic() - began
    finding = describe(run, last, confirmed, spent)
    return Cell(
        run.key,
        run.prop.claim,
        finding.verdict,
        run.examples,
        time.monotonic() - run.started,
        max(run.worst, finding.score),
        tuple(run.scores),
        finding=finding,
    )


def _kind(trial: Trial) -> str:
    failure = trial.judgement.failure
    return "violation" if failure is None else failure.kind


def describe(run: CellRun, trial: Trial, confirmed: bool, shrink_seconds: float) -> Finding:
    """The finding that a failing trial makes."""
    failure = trial.judgement.failure
    violation = trial.judgement.worst()
    verdict: Verdict = "violated" if violation is not None else "crashed"
    if failure is not None and failure.kind == "hung":
        verdict = "hung"
    if not confirmed:
        verdict = "flaky"
    case = trial.case.to_json()
    text = json.dumps([str(run.key), case], sort_keys=True, default=str)
    return Finding(
        id=hashlib.sha256(text.encode()).hexdigest()[:8],
        cell=run.key,
        claim=run.prop.claim,
        target=run.target,
        verdict=verdict,
        kind=violation.kind if violation is not None else "functional",
        message=violation.message if violation is not None else _failed(failure),
        case=case,
        summary=trial.case.summary(),
        hint=_hint(run, trial),
        score=violation.score if violation is not None else float("inf"),
        picture=picture(trial, violation),
        examples=run.first_failure[0],
        seconds=run.first_failure[1],
        shrink_seconds=shrink_seconds,
        trace=failure.trace if failure is not None else "",
    )


def _hint(run: CellRun, trial: Trial) -> str:
    """What the failing trial, and the largest one that failed before it was made small, say of the
    cause.
    """
    failure = trial.judgement.failure
    small, large = _evidence(trial), None if run.largest is None else _evidence(run.largest)
    if small is not None:
        return blame(run.ctx, small, large)
    return "" if failure is None else blame_failure(failure)


def _evidence(trial: Trial) -> Evidence | None:
    worst = trial.judgement.worst()
    return None if worst is None else Evidence(trial.experiment, worst, trial.case.attributes)


def _failed(failure: Failure | None) -> str:
    if failure is None:
        return ""
    name = f"{failure.type}: " if failure.type and failure.type not in failure.message else ""
    return f"{failure.kind}: {name}{failure.message}"


def picture(trial: Trial, violation: Violation | None) -> dict[str, Any]:
    """Small two-dimensional arrays for the report: the mask, and got, want and error around the
    worst element.
    """
    shown: dict[str, Any] = {}
    mask = trial.experiment.calls[0].inputs.get("mask")
    if mask is not None and mask.ndim >= 2:
        visible = mask if mask.dtype == bool else ~np.isneginf(mask.astype(np.float64))
        shown["mask"] = _corner(visible.reshape(-1, *visible.shape[-2:])[0].astype(float))
    if (
        violation is None
        or violation.got is None
        or violation.want is None
        or violation.error is None
    ):
        return shown
    error = np.where(np.isnan(violation.error), np.inf, violation.error)
    where = np.unravel_index(int(np.argmax(error)), error.shape)[:-2] if error.ndim >= 2 else ()
    for name, array in (("got", violation.got), ("want", violation.want), ("error", error)):
        plane = array[where] if array.ndim >= 2 else np.atleast_2d(array)
        shown[name] = _corner(plane.astype(np.float64))
    return shown


def _corner(plane: np.ndarray, most: int = 40) -> list[list[Any]]:
    """At most ``most`` rows and columns, non-finite values as text."""
    rows = plane[:most, :most].tolist()
    return [[v if np.isfinite(v) else str(v) for v in row] for row in rows]
