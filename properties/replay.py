"""Replaying a finding: the same case, built again by the same property, on the backend as it is
now.
"""

from __future__ import annotations

from dataclasses import replace

from assay.impl.loading import resolve
from assay.impl.session import Session, open_session
from assay.properties.case import Case, Materials
from assay.properties.cell import CellRun, attempt, describe
from assay.properties.context import Context, context_of
from assay.properties.experiment import Experiment
from assay.properties.profiles import PROFILES
from assay.properties.properties import find
from assay.properties.results import Finding
from assay.spec.ops import op


def _context(finding: Finding, session: Session) -> Context:
    return context_of(
        op(finding.cell.op), session.description, finding.cell.dtype, finding.cell.mode
    )


def _session(finding: Finding, isolate: bool) -> Session:
    return open_session(
        resolve(finding.target, op=finding.cell.op),
        isolate=isolate,
        timeout=PROFILES["quick"].timeout,
    )


def rebuild(finding: Finding) -> Experiment:
    """The experiment of a finding: its calls and what must hold of them."""
    case = Case.from_json(finding.case)
    with _session(finding, isolate=True) as session:
        return find(finding.cell.property).build(case, _context(finding, session), Materials(case))


def replay(finding: Finding, *, isolate: bool = True) -> Finding | None:
    """Run a finding's case again: the finding as it shows now, or None when it does not show any
    more.
    """
    prop, case = find(finding.cell.property), Case.from_json(finding.case)
    with _session(finding, isolate) as session:
        ctx = _context(finding, session)
        trial = attempt(prop, ctx, session, case)
        if not trial.failed:
            return None
        run = CellRun(prop, ctx, session, PROFILES["quick"], finding.cell, finding.target)
        return replace(describe(run, trial, True, 0.0), id=finding.id)
