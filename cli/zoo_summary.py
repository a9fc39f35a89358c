"""What ``assay zoo`` prints, and writes as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from assay.cli import console
from assay.cli.versions import machine, own_version
from assay.zoo.detection import Detection, Trail
from assay.zoo.figures import figures
from assay.zoo.hunt import Clearance, Hunt, Record
from assay.zoo.needs import needs

SCHEMA = 1
"""Version of the JSON document; it grows when a field changes its meaning or goes."""

FAULT_COLUMNS = ("fault", "caught", "first by", "examples", "CPU s", "shrink s", "size", "hint")


def bad_news(record: Record) -> Iterator[str]:
    """Lines about one run that did not go as it should."""
    if record.absent:
        member = record.control if isinstance(record, Clearance) else record.fault
        yield f"absent: {member.name}: {record.absent}"
    elif isinstance(record, Clearance):
        yield from (f"false alarm (seed {record.seed}): {alarm}" for alarm in record.alarms)
    elif isinstance(record, Hunt) and record.outcome != "caught":
        yield uncaught(record)
    if isinstance(record, (Hunt, Clearance)):
        yield from (f"no verdict (seed {record.seed}): {trouble}" for trouble in record.troubles)


def uncaught(run: Hunt) -> str:
    """What a run over a fault found instead."""
    fault, first = run.fault, run.first
    head = f"{run.outcome} (seed {run.seed}): {fault.name}: {fault.summary}"
    owed = f"{' or '.join(fault.claims)} should be {fault.verdict}"
    if first is None:
        return f"{head}; {owed}, and nothing was found in {run.cells} cells"
    return f"{head}; {owed}, and {first.claim} is {first.verdict}: {first.message} [{first.case}]"


def fault_row(trail: Trail) -> tuple[str, ...]:
    """One fault: in how many runs it was caught, and what that took."""
    first = trail.first
    said = f"{first.claim}" if first else "-"
    hints = f"{sum(trail.hints)} of {len(trail.hints)}" if trail.hints else "-"
    return (
        trail.fault.name,
        f"{trail.times_caught} of {len(trail.hunts)}",
        said,
        _number(trail.median(lambda s: s.examples), 0),
        _number(trail.median(lambda s: s.seconds), 2),
        _number(trail.median(lambda s: s.shrink), 2),
        _number(trail.median(lambda s: s.size), 0),
        hints,
    )


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def show(detection: Detection) -> None:
    """Tables of faults, controls and claims, and the figures."""
    if detection.trails:
        rows = [fault_row(trail) for trail in detection.trails]
        console.table("", FAULT_COLUMNS, rows, right=FAULT_COLUMNS[3:7])
    if detection.clearances:
        console.table("", ("control", "cells", "cases", "alarms"), control_rows(detection))
    for text in claim_lines(detection):
        console.line(text)
    rows = [(f.what, f.value, f.aim) for f in figures(detection)]
    if rows:
        console.table("", ("", "measured", "aim"), rows)
    if detection.stopped:
        console.line(detection.stopped)


def control_rows(detection: Detection) -> list[tuple[str, ...]]:
    """Each control over all seeds."""
    runs: dict[str, list[Clearance]] = {}
    for clearance in detection.clearances:
        runs.setdefault(clearance.control.name, []).append(clearance)
    return [
        (
            name,
            str(sum(c.cells for c in all_of)),
            str(sum(c.examples for c in all_of)),
            all_of[0].absent or str(sum(len(c.alarms) for c in all_of)),
        )
        for name, all_of in runs.items()
    ]


def claim_lines(detection: Detection) -> Iterable[str]:
    """Faults that hang on one claim, and claims that could go, where all were asked."""
    if not detection.sweeps:
        return
    found = needs(detection.sweeps)
    for fault, claim in found.sole.items():
        yield f"caught by one claim only: {fault}: {claim}"
    yield f"claims that no fault needs ({len(found.unneeded)}): {', '.join(found.unneeded) or '-'}"
    yield f"of these, without any fault that they catch: {', '.join(found.idle) or '-'}"


def as_json(detection: Detection) -> str:
    """Every run and every figure."""
    plan = detection.plan
    document = {
        "schema": SCHEMA,
        "assay": own_version(),
        "machine": machine(),
        "profile": plan.profile.name,
        "seeds": list(plan.seeds),
        "stopped": detection.stopped,
        "figures": [asdict(figure) for figure in figures(detection)],
        "faults": [_trail(trail) for trail in detection.trails],
        "controls": [
            {**asdict(c), "control": c.control.name, "worst": str(c.worst)}
            for c in detection.clearances
        ],
        "claims": _claims(detection) if detection.sweeps else None,
    }
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def _claims(detection: Detection) -> dict[str, Any]:
    found = needs(detection.sweeps)
    return {**asdict(found), "unneeded": found.unneeded, "idle": found.idle}


def _trail(trail: Trail) -> dict[str, Any]:
    runs = [
        {**asdict(run), "fault": run.fault.name, "outcome": run.outcome, "hinted": run.hinted}
        for run in trail.hunts
    ]
    return {
        **asdict(trail.fault),
        "outcome": trail.outcome,
        "runs": runs,
    }
