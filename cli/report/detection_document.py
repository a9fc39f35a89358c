"""The page of the docs that says how well faults are found, as Markdown."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence

from assay.cli.report.markdown import escape, table
from assay.cli.versions import machine, own_version
from assay.cli.zoo_summary import FAULT_COLUMNS, control_rows, fault_row, uncaught
from assay.zoo.detection import Detection, Trail
from assay.zoo.figures import figures
from assay.zoo.needs import needs

ZOO = """Written by `make detection`; do not edit. The zoo holds kernels with one planted fault
each, and controls: kernels that are right and computed in another way. No property, bound or
strategy knows of them.
"""
FAULTS = """Each run examines one fault as `assay run` would (those that hide from it, as
`assay run --adversarial`), in the order of its plan, until it is found for the right reason: by
one of the claims that are about it, and with the verdict that it deserves (a wrong value must not
be found by a crash). Only wall-clock limits are lifted to a minute for each cell, so that a busy
machine ends no search.
"""
CONTROLS = """Each control is examined as `assay run` would, by every claim about its ops: what is
found here is an error of assay's.
"""
TIMES = """Times are CPU seconds of everything that ran, the worker included, and depend on the
machine; examples, cases and verdicts follow from the seed.
"""


def write(detection: Detection, line: str) -> str:
    """The whole page; ``line`` is the command that gave it."""
    title = f"# {_subject(detection)} the {detection.plan.profile.name} profile"
    examined = [FAULTS] * bool(detection.plan.faults) + [CONTROLS] * bool(detection.plan.controls)
    head = [title, "", ZOO, *examined, TIMES, *_source(detection, line)]
    parts: list[Iterable[str]] = [head, _figures(detection)]
    if detection.plan.faults:
        parts += [_uncaught(detection), _faults(detection), _claims(detection)]
    if detection.plan.controls:
        parts += [_controls(detection)]
    return "\n".join(text for part in parts for text in part).rstrip("\n") + "\n"


def _subject(detection: Detection) -> str:
    if detection.plan.sweeps:
        return "What each claim finds by"
    return "Detection by" if detection.plan.faults else "Sound kernels under"


def _source(detection: Detection, line: str) -> Iterable[str]:
    today = datetime.datetime.now(datetime.UTC).date()
    yield f"`{line}`, assay {own_version()}, {machine()}, {today}."
    if detection.stopped:
        yield f"**{escape(detection.stopped)}.**"
    yield ""


def _figures(detection: Detection) -> Iterable[str]:
    yield "## Summary"
    yield ""
    yield from table(
        ("", "measured", "aim"), [(f.what, f.value, f.aim) for f in figures(detection)]
    )
    yield ""


def _uncaught(detection: Detection) -> Iterable[str]:
    runs = [run for run in detection.hunts if run.outcome in ("missed", "wrong reason")]
    yield "## Not caught"
    yield ""
    yield from (f"- {escape(uncaught(run))}" for run in runs)
    if not runs:
        yield "Nothing: every fault was caught with every seed."
    yield ""


def _faults(detection: Detection) -> Iterable[str]:
    yield "## Faults"
    yield ""
    yield "Medians over the runs. Examples and seconds count from the start of the run; size is the"
    yield "largest dim of the small case; hint: in how many runs the blame hint names the fault,"
    yield "where it has a name."
    yield ""
    by_kind: dict[str, list[Trail]] = {}
    for trail in detection.trails:
        by_kind.setdefault(trail.fault.kind, []).append(trail)
    for kind, trails in by_kind.items():
        yield f"### {kind.capitalize()}"
        yield ""
        yield from table((*FAULT_COLUMNS, "what is wrong", "hard"), map(_row, trails))
        yield ""


def _row(trail: Trail) -> Sequence[str]:
    return (*fault_row(trail), trail.fault.summary, trail.fault.hard)


def _claims(detection: Detection) -> Iterable[str]:
    yield "## Claims"
    yield ""
    if not detection.sweeps:
        yield "Which claims catch which fault was not asked: `assay zoo --all-claims`."
        yield ""
        return
    found = needs(detection.sweeps)
    yield "Every claim of the plan was asked about every fault, with the first seed."
    yield ""
    rows = [(s.fault.name, str(len(s.caught_by)), ", ".join(s.caught_by)) for s in detection.sweeps]
    yield from table(("fault", "claims that catch it", "these"), rows)
    yield ""
    hanging = [f"- {escape(fault)}: {escape(claim)}" for fault, claim in found.sole.items()]
    yield from ["Caught by one claim only:", "", *(hanging or ["None."]), ""]
    yield "Claims that no fault needs, since other claims catch the same ones:"
    yield ""
    rows = [
        (name, str(len(found.caught[name])), ", ".join(found.caught[name][:4]))
        for name in found.unneeded
    ]
    yield from table(("claim", "faults that it catches", "some of them"), rows)
    yield ""


def _controls(detection: Detection) -> Iterable[str]:
    yield "## Controls"
    yield ""
    summaries = {c.control.name: c.control.summary for c in detection.clearances}
    rows = [(*row, summaries[row[0]]) for row in control_rows(detection)]
    yield from table(("control", "cells", "cases", "false alarms", "how it computes"), rows)
    yield ""
    alarms = [alarm for c in detection.clearances for alarm in c.alarms]
    yield from (f"- {escape(alarm)}" for alarm in alarms)
