"""Replaying a finding: the same case, built again by the same property, on the backend of today."""

from __future__ import annotations

from dataclasses import replace

from assay.impl.loading import Target, resolve
from assay.impl.session import open_session
from assay.properties.case import Case
from assay.properties.context import context_of
from assay.properties.finding import describe
from assay.properties.profiles import PROFILES
from assay.properties.properties import find
from assay.properties.results import Finding
from assay.properties.trial import Bench
from assay.spec.ops import op

TIMEOUT = PROFILES["quick"].timeout


def _target(finding: Finding) -> Target:
    return resolve(finding.target, op=finding.cell.op, device=finding.device or None)


def replay(finding: Finding, *, isolate: bool = True) -> Finding | None:
    """Run a finding's case again: the finding as it shows now, or None when it shows no more."""
    key = finding.cell
    with open_session(_target(finding), isolate=isolate, timeout=TIMEOUT) as session:
        ctx = context_of(op(key.op), session.description, key.dtype, key.mode)
        bench = Bench(find(key.property), ctx, session)
        trial = bench.attempt(Case.from_json(finding.case))
        if not trial.failed:
            return None
        return replace(describe(key, finding.target, bench, trial), id=finding.id)
