"""What ``assay calibrate`` prints, and its JSON."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from assay.cli import console
from assay.cli.command import UsageError
from assay.cli.versions import machine, own_version
from assay.zoo.calibration.alarms import AlarmCount
from assay.zoo.calibration.calibration import Calibration, Plan, Record
from assay.zoo.calibration.comparison import Caught
from assay.zoo.calibration.rules import ASSAY, RULES
from assay.zoo.calibration.samples import SOURCES
from assay.zoo.calibration.sensitivity import EXTENTS, Threshold
from assay.zoo.catalogue import CONTROLS, FAULTS

SCHEMA = 1
"""Version of the JSON document; it grows when a field changes its meaning or goes."""

COMPARED = (
    "judged by",
    "faults caught",
    "of the hard ones",
    "false alarms, typical inputs",
    "false alarms, drawn inputs",
)


def show(calibration: Calibration) -> None:
    """Tables of what was measured."""
    if calibration.stopped:
        console.line(f"{calibration.stopped}; what was measured so far:")
    if calibration.caught or calibration.counts:
        rows = compared(calibration)
        console.table("planted faults and sound kernels", COMPARED, rows, right=COMPARED[1:])
    for dtype in calibration.plan.dtypes if calibration.thresholds else ():
        console.table(
            f"smallest error seen in half of the cases, {dtype}, median over ops",
            ("rule", *(f"{extent}, {source}" for source in SOURCES for extent in EXTENTS)),
            smallest(calibration, dtype),
        )


def compared(calibration: Calibration) -> list[tuple[str, ...]]:
    """A row for a whole campaign, then one for each rule."""
    rows: list[tuple[str, ...]] = []
    name = f"assay, a campaign ({calibration.plan.profile.name})"
    rows.append((name, share(calibration.hunted()), share(calibration.hunted(hard=True)), "", ""))
    for rule in RULES:
        name = "assay's bounds alone, typical inputs" if rule is ASSAY else rule.name
        found = (calibration.found(rule.name), calibration.found(rule.name, hard=True))
        alarms = (calibration.alarms(rule.name, source) for source in ("typical", "drawn"))
        rows.append((name, *map(share, found), *map(share, alarms)))
    return rows


def smallest(calibration: Calibration, dtype: str) -> list[tuple[str, ...]]:
    """For each rule, source and extent: the median over ops."""
    return [
        (
            rule.name,
            *(
                error(calibration.typical(rule.name, dtype, source, extent))
                for source in SOURCES
                for extent in EXTENTS
            ),
        )
        for rule in RULES
    ]


def share(part: tuple[int, int]) -> str:
    """So many of how many; nothing where none were asked.

    >>> share((3, 40)), share((0, 0))
    ('3 of 40', '')
    """
    return f"{part[0]} of {part[1]}" if part[1] else ""


def error(value: float) -> str:
    """Two digits; an error that no size makes visible is never seen.

    >>> error(0.00123), error(float("inf")), error(float("nan"))
    ('1.2e-03', 'never', '')
    """
    return "" if math.isnan(value) else "never" if math.isinf(value) else f"{value:.1e}"


def as_json(calibration: Calibration) -> str:
    """Every record; infinity, which JSON lacks, is the text "inf"."""
    document: dict[str, Any] = {
        **_settings(calibration.plan),
        "assay": own_version(),
        "machine": machine(),
        "stopped": calibration.stopped,
        "rules": [{"name": r.name, "rule": r.summary, "source": r.source} for r in RULES],
        "caught": [asdict(c) for c in calibration.caught],
        "alarms": [asdict(c) for c in calibration.counts],
        "errors": [
            {**asdict(t), "errors": [e if math.isfinite(e) else "inf" for e in t.errors]}
            for t in calibration.thresholds
        ],
    }
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def from_json(path: Path, plan: Plan) -> list[Record]:
    """The records of an earlier run, of what is still in the zoo. UsageError where it measured
    something else.
    """
    planted = {fault.name: fault for fault in FAULTS}
    sound = {control.name for control in CONTROLS}
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        for name, now in _settings(plan).items():
            if document[name] != now:
                raise UsageError(
                    f"--resume={str(path)!r} has {name}={document[name]!r}, not {now!r}"
                )
        return [
            *(
                replace(Caught(**record), kind=now.kind, hard=now.hard)
                for record in document["caught"]
                if (now := planted.get(record["fault"])) is not None
            ),
            *(AlarmCount(**r) for r in document["alarms"] if r["control"] in sound),
            *(
                Threshold(**{**record, "errors": tuple(map(float, record["errors"]))})
                for record in document["errors"]
            ),
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"--resume={str(path)!r} is no JSON of assay calibrate: {error!r}"
        ) from error


def _settings(plan: Plan) -> dict[str, Any]:
    """What must be the same for records to belong together."""
    return {
        "schema": SCHEMA,
        "seed": plan.seed,
        "cases": plan.cases,
        "profile": plan.profile.name,
    }
