"""``assay calibrate``: how small an error is seen and how often sound kernels are accused, under
assay's bounds and under the rules of other projects, on the same cases.
"""

from __future__ import annotations

import fnmatch
import os
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from assay.cli import console
from assay.cli.command import Command, Status, UsageError, check_output, words
from assay.cli.run import natural

if TYPE_CHECKING:
    from assay.zoo.calibration.calibration import Calibration, Plan, Record

PARTS = ("faults", "alarms", "errors")
_EVERY = 10.0
"""Seconds between progress lines where there is no terminal."""


def _arguments(parser: ArgumentParser) -> None:
    what = parser.add_argument_group("what is measured (default: everything)")
    what.add_argument(
        "--only",
        type=words,
        default=PARTS,
        metavar="PART,...",
        help="faults (which rules catch them), alarms (false ones, on controls), errors (the "
        "smallest that are seen)",
    )
    what.add_argument("--ops", type=words, default=("*",), metavar="GLOB,...", help="only these")
    what.add_argument("--dtypes", type=words, metavar="NAME,...", help="only these of the four")
    what.add_argument("--faults", type=words, default=("*",), metavar="GLOB,...")
    what.add_argument("--controls", type=words, default=("*",), metavar="GLOB,...")
    how = parser.add_argument_group("how")
    how.add_argument(
        "--cases",
        type=natural,
        default=12,
        metavar="N",
        help="for each op, dtype and source of inputs (default: %(default)s)",
    )
    how.add_argument("--seed", type=natural, default=0, metavar="S")
    how.add_argument(
        "--profile", default="quick", help="of the campaigns for faults (default: %(default)s)"
    )
    how.add_argument(
        "--resume",
        type=Path,
        metavar="F",
        help="keep what the JSON of an earlier run holds (the same seed, cases and profile), and "
        "measure only the rest",
    )
    how.add_argument("--jobs", type=natural, metavar="N", help="processes (default: the cores)")
    out = parser.add_argument_group("what comes out")
    out.add_argument("--json", type=Path, metavar="F", help="write every record as JSON")
    out.add_argument(
        "--markdown", type=Path, metavar="F", help="write the page of the docs, and plots beside it"
    )


def _execute(args: Namespace) -> Status:
    from assay.cli import calibration_summary

    for kind in ("json", "markdown"):
        check_output(f"--{kind}", getattr(args, kind))
    plan = _plan(args)
    known = calibration_summary.from_json(args.resume, plan) if args.resume else []
    calibration = _run(plan, known, args.jobs or os.cpu_count() or 1)
    calibration_summary.show(calibration)
    if args.json:
        args.json.write_text(calibration_summary.as_json(calibration), encoding="utf-8")
    if args.markdown:
        from assay.cli.report import calibration_document

        calibration_document.write(args.markdown, calibration, _line(args))
    return status(calibration)


def status(calibration: Calibration) -> Status:
    """Findings: assay's own bounds accused a sound kernel."""
    if calibration.stopped:
        return Status.UNANSWERED
    accused = any(count.alarms.get("assay", 0) for count in calibration.counts)
    return Status.FINDINGS if accused else Status.HELD


def _plan(args: Namespace) -> Plan:
    from assay.properties.plan import profile_named
    from assay.zoo.calibration.calibration import DTYPES, Plan
    from assay.zoo.calibration.samples import covered
    from assay.zoo.catalogue import CONTROLS, FAULTS

    _chosen("only", PARTS, args.only)
    if args.cases < 1:
        raise UsageError(f"--cases={args.cases} must be at least 1")
    if args.jobs is not None and args.jobs < 1:
        raise UsageError(f"--jobs={args.jobs} must be at least 1")
    ops = _chosen("ops", covered(), args.ops)
    faults = _chosen("faults", [f.name for f in FAULTS], args.faults)
    controls = _chosen("controls", [c.name for c in CONTROLS], args.controls)
    return Plan(
        ops=ops,
        dtypes=_chosen("dtypes", DTYPES, args.dtypes or DTYPES),
        faults=tuple(f for f in FAULTS if f.name in faults) if "faults" in args.only else (),
        controls=tuple(c for c in CONTROLS if c.name in controls) if "alarms" in args.only else (),
        profile=profile_named(args.profile),
        cases=args.cases,
        seed=args.seed,
        bisects="errors" in args.only,
    )


def _chosen(what: str, names: Sequence[str], patterns: Sequence[str]) -> tuple[str, ...]:
    """Names that a pattern matches. UsageError for a pattern that matches none."""
    for pattern in patterns:
        if not fnmatch.filter(names, pattern):
            raise UsageError(f"--{what}={pattern!r} matches nothing; valid: {', '.join(names)}")
    return tuple(n for n in names if any(fnmatch.fnmatch(n, p) for p in patterns))


def _line(args: Namespace) -> str:
    """The command that gives the same again."""
    parts = [f"--cases {args.cases}", f"--seed {args.seed}", f"--profile {args.profile}"]
    if tuple(args.only) != PARTS:
        parts.append(f"--only {','.join(args.only)}")
    parts += [
        f"--{name} '{','.join(given)}'"
        for name in ("ops", "dtypes", "faults", "controls")
        if (given := getattr(args, name)) and tuple(given) != ("*",)
    ]
    resumed = ["(and earlier runs)"] if args.resume else []
    return " ".join(["assay calibrate", *parts, *resumed])


def _run(plan: Plan, known: Sequence[Record], jobs: int) -> Calibration:
    """Run what is not yet known to its end, or to Ctrl-C; what ended is kept in any case."""
    from concurrent.futures.process import BrokenProcessPool

    from assay.zoo.calibration.calibration import Calibration, key_of
    from assay.zoo.spread import spread

    tasks = plan.tasks({key_of(record) for record in known})
    records = list(known)
    done, stopped = 0, ""
    with _listen(len(tasks)) as listen, closing(spread(tasks, jobs)) as groups:
        try:
            for group in groups:
                records += group
                done += 1
                listen()
        except KeyboardInterrupt:
            stopped = f"stopped after {done} of {len(tasks)} measurements"
        except BrokenProcessPool:
            stopped = f"ended after {done} of {len(tasks)} measurements: processes died"
    return Calibration.of(plan, records, stopped)


@contextmanager
def _listen(total: int) -> Iterator[Callable[[], None]]:
    """A bar on a terminal, else a line now and then."""
    done, last = 0, time.monotonic()
    if sys.stderr.isatty():
        from assay.cli.listener import bar

        with bar() as progress:
            task = progress.add_task("measurements", total=total)
            yield lambda: progress.update(task, advance=1)
        return

    def lines() -> None:
        nonlocal done, last
        done += 1
        if time.monotonic() - last >= _EVERY or done == total:
            last = time.monotonic()
            console.note(f"{done} of {total} measurements")

    yield lines


COMMAND = Command(
    name="calibrate",
    summary="compare assay's error bounds with the rules of other projects, on the same cases",
    examples=(
        ("assay calibrate", "faults caught, false alarms, smallest errors seen"),
        ("assay calibrate --only errors --ops attention", "the smallest errors seen in attention"),
        ("assay calibrate --only alarms --cases 100", "false alarms in more cases"),
        ("assay calibrate --resume a.json --json b.json", "go on where a run was stopped"),
        ("assay calibrate --markdown docs/calibration.md", "the page of the docs, with plots"),
    ),
    arguments=_arguments,
    execute=_execute,
)
