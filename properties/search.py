"""The search of one cell: Hypothesis draws cases until one fails, and makes that one small."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

import hypothesis
import hypothesis.errors
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st
from hypothesis.database import DirectoryBasedExampleDatabase
from hypothesis.internal.cache import LRUCache
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

from assay.properties import oracle
from assay.properties.case import Case
from assay.properties.experiment import Close
from assay.properties.profiles import Profile
from assay.properties.property import Property
from assay.properties.results import CellKey
from assay.properties.spread import spreading
from assay.properties.trial import Bench, Trial

KEPT_SCORES = 200
"""Scores of one cell that are kept for the plot."""

TELLING = 16
"""Sum of the sizes from which on a failing case tells a factor, a tile or a row from a chance."""

FEWEST = 16
"""Examples drawn at least, but by properties whose examples are many calls each."""

LEAST = 4
"""Examples that a cell is judged on though its time is over."""

OVERDRAFT = 1.0
"""Seconds after which fewer must do: of a backend whose every call takes that long."""

MANY = 1000
"""Examples of which half may be spent near those with the greatest scores."""

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


_PERMITTED: LRUCache[Any, Any] = LRUCache(1024)
"""What Hypothesis' own numbers leave for a range: its cache would keep those of other searches."""


class _Fault(Exception):
    """Tells Hypothesis that the example fails."""


class _Enough(BaseException):
    """Leaves Hypothesis at once: the time is over, or there is nothing to gain. Not an Exception,
    so that it passes through.
    """


@dataclass
class Search:
    """The search of one cell for a failing trial, and what it has seen so far.

    cut                   the time was over before all examples were drawn
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
    cut: bool = False
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
        for fill in range(fills(self.profile, self.bench.prop)):
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
        """Whether half of the search climbs toward greater scores: where rounding decides, and
        examples are many.
        """
        many = _examples(self.profile, self.bench.prop) >= MANY
        return many and self.bench.prop.every_dtype

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
        spent = time.monotonic() - self.started
        if self.best is None and self._over(spent):
            self.cut = True
            raise _Enough
        if (
            self.best is not None
            and spent - self.first_failure[1] > self.profile.shrink_seconds / 2
        ):
            raise _Enough

    def _over(self, spent: float) -> bool:
        """Whether to stop drawing: not before something could have failed, nor, where the campaign
        is in a hurry, before a few such examples.
        """
        own = self.profile.cell_seconds + self.bench.ctx.contract.compile_seconds
        late = spent - min(own, self.profile.share)
        if late <= 0 or self.informative == 0:
            return False
        return self.informative >= LEAST or late > OVERDRAFT

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
    number = _examples(run.profile, run.bench.prop)
    climbing = number // 2 if run.climbs() else 0
    settings = hypothesis.settings(
        deadline=None,
        database=None if database is None else DirectoryBasedExampleDatabase(database),
        phases=_PHASES,
        suppress_health_check=_UNCHECKED,
        derandomize=False,
        report_multiple_bugs=False,
        print_blob=False,
        verbosity=hypothesis.Verbosity.quiet,
    )
    try:
        with _only_seeded(), spreading() as spread:
            for source, most in ((spread, number - climbing), ("hypothesis", climbing)):
                if most:
                    part = hypothesis.settings(settings, backend=source, max_examples=most)
                    part(hypothesis.seed(seed)(test))()
    except (_Fault, _Enough, hypothesis.errors.Unsatisfiable):
        return
    except hypothesis.errors.Flaky:
        # Of a fault that comes and goes, or of an error of assay's own, which must show.
        if run.best is None:
            raise


@contextmanager
def _only_seeded() -> Iterator[None]:
    """Draws that the seed alone decides.

    Hypothesis mixes in numbers that it reads from the text of whatever local modules have been
    imported. With them a cell would draw other cases in a worker, in a clone or after another cell.
    """
    if not hasattr(providers, "_get_local_constants"):  # Before version 6.131.
        yield
        return
    with (
        mock.patch.object(providers, "_get_local_constants", Constants),
        mock.patch.object(providers, "CONSTANTS_CACHE", _PERMITTED),
    ):
        yield


def _examples(profile: Profile, prop: Property) -> int:
    """How many cases to draw: a share of the profile's examples, and at least a few."""
    fewest = FEWEST if prop.weight >= 0.2 else round(prop.weight * 20)
    return max(fewest, round(profile.examples * prop.weight / fills(profile, prop)))


def fills(profile: Profile, prop: Property) -> int:
    """How often a drawn structure is judged, each time with other values."""
    return profile.fills if prop.refilled else 1
