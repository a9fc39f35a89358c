"""The search of one cell: Hypothesis draws cases until one fails, and makes that one small."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import hypothesis
import hypothesis.errors
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st
from hypothesis.database import DirectoryBasedExampleDatabase

from assay.properties import oracle
from assay.properties.case import Case
from assay.properties.experiment import Close
from assay.properties.profiles import Profile
from assay.properties.property import Property
from assay.properties.results import CellKey
from assay.properties.trial import Bench, Trial

KEPT_SCORES = 200
"""Scores of one cell that are kept for the plot."""

TELLING = 16
"""Sum of the sizes from which on a failing case tells a factor, a tile or a row from a chance."""

FEWEST = 16
"""Examples drawn at least, but by properties whose examples are many calls each."""

GIVE_UP = 20
"""Cases after which a cell ends in which none could have failed."""

_PHASES = frozenset({Phase.reuse, Phase.generate, Phase.target, Phase.shrink})

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
class Search:
    """The search of one cell for a failing trial, and what it has seen so far.

    best, first, largest  the simplest failing trial, the first one, and the least simple one
    first_failure         examples and seconds up to the first one
    """

    bench: Bench
    profile: Profile
    key: CellKey
    started: float = field(default_factory=time.monotonic)
    drawn: int = 0
    examples: int = 0
    informative: int = 0
    worst: float = 0.0
    scores: list[float] = field(default_factory=list)
    weaker: str = ""
    unsupported: str = ""
    rejudged: int = 0
    oracle_fault: str = ""
    best: Trial | None = None
    first: Trial | None = None
    largest: Trial | None = None
    simplest_fails: bool = False
    first_failure: tuple[int, float] = (0, 0.0)

    def example(self, case: Case) -> None:
        """One drawn case, with as many fillings as the profile asks for."""
        self._check_time()
        self.drawn += 1
        highest = 0.0
        for fill in range(self.profile.fills):
            trial = self.bench.attempt(replace(case, seed=(case.seed + fill) % 2**32))
            self._note(trial)
            self._rejudge(trial)
            if trial.failed:
                self._keep(trial)
                self._leave(case)
                return
            if trial.judgement.failure is not None or not trial.judgement.informative:
                if self.informative == 0 and self.drawn >= GIVE_UP:
                    raise _Enough
                # Nothing could have failed: Hypothesis draws another case in its place.
                hypothesis.reject()
            highest = max(highest, trial.judgement.score)
        if self.climbs():
            hypothesis.target(highest)

    def climbs(self) -> bool:
        """Whether the search climbs toward greater scores: where rounding decides."""
        return self.profile.thorough and self.bench.prop.every_dtype

    def _leave(self, case: Case) -> None:
        """Let Hypothesis shrink, unless the very first and simplest case fails: that one is small.

        Then others are looked for until one is large enough to say more of the cause.
        """
        if self.drawn == 1 and max(case.dims.values(), default=0) <= 2:
            self.simplest_fails = True
        elif not self.simplest_fails:
            raise _Fault
        elif sum(case.dims.values()) >= TELLING:
            raise _Enough

    def _rejudge(self, trial: Trial) -> None:
        """Now and then, test what the example was judged by. A wrong oracle ends the cell."""
        calls, failure = trial.experiment.calls, trial.judgement.failure
        if (
            not self.bench.prop.rejudged
            or self.informative % oracle.RATE != 1
            or failure is not None
        ):
            return
        if not oracle.affordable(calls[0].inputs):
            return
        exact = [e for e in trial.experiment.expectations if isinstance(e, Close)]
        self.rejudged += 1
        self.oracle_fault = oracle.disagreement(
            self.bench.ctx,
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
        self.weaker = self.weaker or trial.experiment.weaker
        if verdict.failure is None and self.best is None:
            self.worst = max(self.worst, verdict.score)
            index = self.examples % KEPT_SCORES
            self.scores[index : index + 1] = [verdict.score]

    def _keep(self, trial: Trial) -> None:
        if self.best is None:
            self.first = trial
            self.first_failure = (self.examples, time.monotonic() - self.started)
        if self.best is None or trial.complexity() < self.best.complexity():
            self.best = trial
        if self.largest is None or trial.complexity() > self.largest.complexity():
            self.largest = trial
        if trial.slow():
            raise _Enough  # Every further example would cost the whole time limit again.


def search(run: Search, seed: int, database: Path | None) -> None:
    """Let Hypothesis draw, and shrink the structure of the first fault."""
    strategy = st.composite(lambda draw: run.bench.prop.draw(draw, run.bench.ctx))()

    def one_example(case: Case) -> None:
        run.example(case)

    test = hypothesis.given(strategy)(one_example)
    inner: Any = test.hypothesis.inner_test  # type: ignore[attr-defined]
    # One function body serves all cells: the digest keeps their stored examples apart.
    inner._hypothesis_internal_add_digest = hashlib.sha256(str(run.key).encode()).digest()
    settings = hypothesis.settings(
        max_examples=_examples(run.profile, run.bench.prop),
        deadline=None,
        database=None if database is None else DirectoryBasedExampleDatabase(database),
        phases=_PHASES if run.climbs() else _PHASES - {Phase.target},
        suppress_health_check=_UNCHECKED,
        derandomize=False,
        report_multiple_bugs=False,
        print_blob=False,
        verbosity=hypothesis.Verbosity.quiet,
    )
    try:
        settings(hypothesis.seed(seed)(test))()
    except (_Fault, _Enough, hypothesis.errors.Unsatisfiable):
        return
    except hypothesis.errors.Flaky:
        # Of a fault that comes and goes, or of an error of assay's own, which must show.
        if run.best is None:
            raise


def _examples(profile: Profile, prop: Property) -> int:
    """How many cases to draw: a share of the profile's examples, and at least a few."""
    fewest = FEWEST if prop.weight >= 0.2 else round(prop.weight * 20)
    return max(fewest, round(profile.examples * prop.weight / profile.fills))
