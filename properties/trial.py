"""A trial: one case made into an experiment, run and judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from assay.impl.adversarial_session import rounds
from assay.impl.session import Session
from assay.properties.case import Case, Materials
from assay.properties.context import Context
from assay.properties.experiment import Experiment
from assay.properties.judge import Judgement, judge
from assay.properties.property import Property
from assay.properties.shrink import cost


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

    def kind(self) -> str:
        """What sort of failure it is: a violation, or the kind of the failed call."""
        failure = self.judgement.failure
        return "violation" if failure is None else failure.kind

    def slow(self) -> bool:
        """Whether to run it again would cost a whole time or memory limit."""
        return self.kind() in ("hung", "memory")


@dataclass
class Bench:
    """Where trials are made.

    session  the backend, which has been called before
    fresh    opens a session in which nothing has been called yet; None where that cannot be done
    """

    prop: Property
    ctx: Context
    session: Session
    fresh: Callable[[], Session] | None = None

    def attempt(self, case: Case) -> Trial:
        """Make and judge the experiment of one case."""
        return self._attempt(case, self.session)

    def attempt_fresh(self, case: Case) -> Trial:
        """The same before any other call, where that can be had."""
        if self.fresh is None:
            return self.attempt(case)
        with self.fresh() as session:
            return self._attempt(case, session)

    def _attempt(self, case: Case, session: Session) -> Trial:
        made = Materials(case)
        with np.errstate(all="ignore"):
            experiment = self.prop.build(case, self.ctx, made)
            answers = rounds(session, experiment.calls) or [session.run(experiment.calls)]
            trials = [Trial(case, experiment, made, judge(experiment, a)) for a in answers]
        return next((trial for trial in trials if trial.failed), trials[0])
