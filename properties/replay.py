"""Replaying a finding: the same case, built again by the same property, on the backend of today."""

from __future__ import annotations

from dataclasses import replace

from assay.impl.loading import Target, resolve
from assay.impl.session import open_session
from assay.properties.adversarial import adversary
from assay.properties.case import Case
from assay.properties.context import context_of
from assay.properties.finding import describe
from assay.properties.profiles import PROFILES
from assay.properties.properties import find
from assay.properties.results import Finding
from assay.properties.trial import Bench
from assay.spec.ops import op

TIMEOUT = PROFILES["quick"].timeout

ATTEMPTS = 12
"""Times that a case is tried in the adversarial mode, where order and clocks differ each time."""


def _target(finding: Finding) -> Target:
    return resolve(finding.target, op=finding.cell.op, device=finding.device or None)


def replay(finding: Finding, *, isolate: bool = True) -> Finding | None:
    """Run a finding's case again, in the adversarial mode where it was found there: the finding as
    it shows now, or None when it shows no more.
    """
    key = finding.cell
    guard = adversary() if finding.adversarial and isolate else None
    with open_session(
        _target(finding), isolate=isolate, timeout=TIMEOUT, adversary=guard
    ) as session:
        ctx = context_of(op(key.op), session.description, key.dtype, key.mode)
        bench = Bench(find(key.property), ctx, session)
        case = Case.from_json(finding.case)
        trials = (bench.attempt(case) for _ in range(ATTEMPTS if guard else 1))
        trial = next((trial for trial in trials if trial.failed), None)
        if trial is None:
            return None
        again = describe(key, finding.target, bench, trial)
        return replace(again, id=finding.id, adversarial=finding.adversarial)
