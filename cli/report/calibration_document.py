"""The page of the docs that compares assay's bounds with the rules of other projects."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator
from pathlib import Path

from assay.cli.calibration_summary import COMPARED, compared, error, share, smallest
from assay.cli.report import calibration_plots
from assay.cli.report.markdown import escape, table
from assay.cli.versions import machine, own_version
from assay.zoo.calibration.calibration import Calibration
from assay.zoo.calibration.rules import RULES
from assay.zoo.calibration.samples import SOURCES, Source
from assay.zoo.calibration.sensitivity import EXTENTS
from assay.zoo.catalogue import CONTROLS, FAULTS

HEAD = """# Calibration

Written by `assay calibrate`; do not edit. Both sides of a test are measured: how small an error it
sees, and how often it accuses a kernel that is right. assay judges every element by a derived error
bound; other projects use the rules below. All are given the same cases and the same oracle, the
exact value rounded once, which is better than what most of those projects compare with.

*Typical inputs* are what tests of kernels use: values from a normal distribution, sizes that are
powers of two or a little ragged, causal or padding masks. *Drawn inputs* are what assay's campaigns
draw: edge sizes, and values that stress rounding.
"""

PLANTED = """## Planted faults and sound kernels

A rule catches a fault when it calls a reply of the faulty kernel wrong, and has nothing against
that of the sound kernel that the fault is planted in. It is asked about values, and about gradients
where the project's tests compare them. This measures the rule on typical inputs, not the project's
whole test suite, which may have special cases. A campaign also draws its own cases and asks for
relations, memory hygiene, refusals and repeated calls; only what it finds for the right reason
counts. Hard faults are those that a few random inputs of usual size do not show. A false alarm is
an alarm on one of the zoo's controls.
"""

ERRORS = """## The smallest errors that are seen

A kernel that is perfect (exact, rounded once) gets one error e: in one element, one row (the last
axis) or one head (a channel of an image), each multiplied by 1 + e; or as a bias of e times the
root mean square of the output, added to all of it. The output is rounded to the dtype, so that
errors below its resolution show only where rounding tips. For each case the smallest e that is an
alarm is found by bisection, to a quarter of a power of two; shown is the median over cases, then
over ops. *never*: not even an error of 2^10 is seen.

In float32 some of the rules see smaller errors than assay's bounds do. The price is in the table
above: their tolerance does not grow with the length of a sum or with cancellation, so that they
accuse sound kernels where these matter. assay's bounds hold for any order of summation.
"""


def write(path: Path, calibration: Calibration, line: str) -> None:
    """The page at ``path`` and its plots beside it; ``line`` is the command that gave it."""
    plots = {
        "errors": calibration_plots.errors(calibration),
        "faults": calibration_plots.faults(calibration),
    }
    links = {}
    for name, svg in plots.items():
        if svg:
            file = path.with_name(f"{path.stem}-{name}.svg")
            file.write_text(svg, encoding="utf-8")
            links[name] = file.name
    path.write_text(page(calibration, line, links), encoding="utf-8")


def page(calibration: Calibration, line: str, links: dict[str, str]) -> str:
    """The whole page; ``links``: file names of plots."""
    parts = (
        [HEAD, *_source(calibration, line)],
        _rules(),
        _faults(calibration, links.get("faults")),
        _alarms(calibration),
        _errors(calibration, links.get("errors")),
    )
    return "\n".join(text for part in parts for text in part).rstrip("\n") + "\n"


def _source(calibration: Calibration, line: str) -> Iterator[str]:
    today = datetime.datetime.now(datetime.UTC).date()
    yield f"`{line}`, assay {own_version()}, {machine()}, {today}."
    faults = len(calibration.caught)
    controls = len({count.control for count in calibration.counts})
    yield (
        f"Measured: {faults} of the zoo's {len(FAULTS)} planted faults, {controls} of its "
        f"{len(CONTROLS)} controls, {len({t.op for t in calibration.thresholds})} ops."
    )
    if calibration.stopped:
        yield f"**{escape(calibration.stopped)}.**"
    yield ""


def _rules() -> Iterator[str]:
    yield "## The rules"
    yield ""
    for rule in RULES:
        yield f"- **{rule.name}**: {escape(rule.summary)} ({_link(rule.source)})."
    yield ""
    yield (
        "The tests of flash-attention are of float16 and bfloat16; the reference takes every "
        "operation in float32 and rounds the result to the dtype. The same rule is applied to "
        "float32, with a float32 reference, and to other ops. KernelBench and ONNX compare no "
        "gradients."
    )
    yield ""


def _link(source: str) -> str:
    address, _, remark = source.partition(" (")
    name = address.rpartition("/")[2]
    if "://" not in address:
        return f"[{name}]({name})"
    return f"[{name}]({address})" + (f", {remark.rstrip(')')}" if remark else "")


def _faults(calibration: Calibration, plot: str | None) -> Iterator[str]:
    if not calibration.caught and not calibration.counts:
        return
    yield PLANTED
    yield from table(COMPARED, compared(calibration))
    yield ""
    if plot:
        yield f"![planted faults caught under each rule]({plot})"
        yield ""
    left = sum(not c.rules for c in calibration.caught)
    if left:
        yield (
            f"{left} faults are of counts, sizes or bytes that a model reports, where no rule "
            "compares values: they count as not caught by any rule, and are marked with a dash."
        )
        yield ""
    yield from _folded("each fault", _each_fault(calibration))


def _each_fault(calibration: Calibration) -> Iterable[str]:
    names = [rule.name for rule in RULES]
    rows = [
        (
            c.fault,
            c.kind,
            c.hard,
            c.campaign,
            *("caught" if c.rules.get(n) else "" if c.rules else "-" for n in names),
        )
        for c in calibration.caught
    ]
    return table(("fault", "kind", "hard", "campaign", *names), rows)


def _alarms(calibration: Calibration) -> Iterator[str]:
    if not calibration.counts:
        return
    yield "## False alarms by dtype"
    yield ""
    dtypes = sorted({c.dtype for c in calibration.counts})
    columns: list[tuple[str, Source]] = [(d, source) for d in dtypes for source in SOURCES]
    rows = [(r.name, *(share(calibration.alarms(r.name, s, d)) for d, s in columns)) for r in RULES]
    yield from table(("rule", *(f"{d}, {s}" for d, s in columns)), rows)
    yield ""
    yield from _folded("each op", _each_op(calibration))


def _each_op(calibration: Calibration) -> Iterable[str]:
    names = [rule.name for rule in RULES]
    keys = sorted({(c.op, c.dtype) for c in calibration.counts})
    rows = []
    for op, dtype in keys:
        own = [c for c in calibration.counts if (c.op, c.dtype) == (op, dtype)]
        cells = [
            share((sum(c.alarms.get(n, 0) for c in own), sum(c.cases.get(n, 0) for c in own)))
            for n in names
        ]
        rows.append((op, dtype, *cells))
    return table(("op", "dtype", *names), rows)


def _errors(calibration: Calibration, plot: str | None) -> Iterator[str]:
    if not calibration.thresholds:
        return
    yield ERRORS
    if plot:
        yield f"![smallest error seen by each rule]({plot})"
        yield ""
    columns = ("rule", *(f"{e}, {s}" for s in SOURCES for e in EXTENTS))
    for dtype in calibration.plan.dtypes:
        yield f"### {dtype}"
        yield ""
        yield from table(columns, smallest(calibration, dtype))
        yield ""
        yield from _folded(f"each op in {dtype}", _each_error(calibration, dtype))


def _each_error(calibration: Calibration, dtype: str) -> Iterable[str]:
    names = [rule.name for rule in RULES]
    own = {
        (t.op, t.source, t.extent, t.rule): t for t in calibration.thresholds if t.dtype == dtype
    }
    rows = []
    for op, source, extent in dict.fromkeys(key[:3] for key in own):
        seen = [own[op, source, extent, name] for name in names]
        rows.append((op, source, extent, *(error(t.typical) for t in seen)))
    return table(("op", "inputs", "error in", *names), rows)


def _folded(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield f"<details><summary>{title}</summary>"
    yield ""
    yield from lines
    yield ""
    yield "</details>"
    yield ""
