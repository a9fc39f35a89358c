"""From a failing trial to a finding: message, hint, picture."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

from assay.impl.call import Failure
from assay.properties.blame import Evidence, blame, blame_failure
from assay.properties.context import Context
from assay.properties.judge import Violation
from assay.properties.results import CellKey, Finding, Verdict
from assay.properties.trial import Bench, Trial


def describe(
    key: CellKey, target: str, bench: Bench, trial: Trial, *, large: Trial | None = None
) -> Finding:
    """The finding that a failing trial makes; ``large`` is another that was not made small."""
    failure = trial.judgement.failure
    violation = trial.judgement.worst()
    verdict: Verdict = "violated" if violation is not None else "crashed"
    if failure is not None and failure.kind == "hung":
        verdict = "hung"
    case = trial.case.to_json()
    text = json.dumps([str(key), case], sort_keys=True, default=str)
    return Finding(
        id=hashlib.sha256(text.encode()).hexdigest()[:8],
        cell=key,
        claim=bench.prop.claim,
        target=target,
        device=bench.ctx.contract.device,
        verdict=verdict,
        kind=violation.kind if violation is not None else "functional",
        message=violation.message if violation is not None else _failed(failure),
        case=case,
        summary=trial.case.summary(),
        hint=_hint(bench.ctx, trial, large),
        score=violation.score if violation is not None else float("inf"),
        picture=picture(trial, violation),
        trace=failure.trace if failure is not None else "",
    )


def _hint(ctx: Context, trial: Trial, other: Trial | None) -> str:
    """What the failing trial, and another one that was not made small, say of the cause."""
    failure = trial.judgement.failure
    small, large = _evidence(trial), None if other is None else _evidence(other)
    if small is not None:
        return blame(ctx, small, large)
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
