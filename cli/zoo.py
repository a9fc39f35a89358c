"""``assay zoo``: how well do the properties detect? Planted faults are hunted, sound kernels
cleared.
"""

from __future__ import annotations

import difflib
import fnmatch
import os
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from assay.cli import console
from assay.cli.command import Command, Status, UsageError, check_output, words
from assay.cli.run import natural

if TYPE_CHECKING:
    from assay.zoo.detection import Detection, Plan
    from assay.zoo.fault import Control, Fault
    from assay.zoo.hunt import Record

_EVERY = 10.0
"""Seconds between progress lines where there is no terminal."""

Member = TypeVar("Member", "Fault", "Control")


def _arguments(parser: ArgumentParser) -> None:
    what = parser.add_argument_group("what is examined (default: all faults and all controls)")
    what.add_argument(
        "--faults", type=words, metavar="GLOB,...", help="only these (assay list faults)"
    )
    what.add_argument(
        "--controls", type=words, metavar="GLOB,...", help="only these (assay list controls)"
    )
    how = parser.add_argument_group("how")
    how.add_argument(
        "--profile", default="quick", help="quick, ci, nightly or soak (default: %(default)s)"
    )
    how.add_argument(
        "--repeat", type=natural, default=1, metavar="N", help="seeds (default: %(default)s)"
    )
    how.add_argument(
        "--seed", type=natural, default=0, metavar="S", help="the first (default: %(default)s)"
    )
    how.add_argument(
        "--all-claims",
        action="store_true",
        help="then ask every claim about each fault, to see which are needed: takes long",
    )
    how.add_argument("--jobs", type=natural, metavar="N", help="processes (default: the cores)")
    out = parser.add_argument_group("what comes out")
    out.add_argument("--json", type=Path, metavar="F", help="write every run as JSON")
    out.add_argument("--markdown", type=Path, metavar="F", help="write the page of the docs")


def _execute(args: Namespace) -> Status:
    from assay.cli import zoo_summary

    for kind in ("json", "markdown"):
        check_output(f"--{kind}", getattr(args, kind))
    plan = _plan(args)
    detection = _run(plan, args.jobs or os.cpu_count() or 1)
    zoo_summary.show(detection)
    if args.json:
        args.json.write_text(zoo_summary.as_json(detection), encoding="utf-8")
    if args.markdown:
        from assay.cli.report import detection_document

        args.markdown.write_text(detection_document.write(detection, _line(args)), encoding="utf-8")
    return status(detection)


def status(detection: Detection) -> Status:
    """Stopped, or nothing that could run here, is no answer."""
    ran = any(not record.absent for record in detection.records)
    if detection.stopped or not ran:
        return Status.UNANSWERED
    return Status.HELD if detection.clean else Status.FINDINGS


def _plan(args: Namespace) -> Plan:
    from assay.properties.plan import profile_named
    from assay.zoo.catalogue import CONTROLS, FAULTS
    from assay.zoo.detection import Plan

    if args.repeat < 1:
        raise UsageError(f"--repeat={args.repeat} must be at least 1")
    if args.jobs is not None and args.jobs < 1:
        raise UsageError(f"--jobs={args.jobs} must be at least 1")
    if args.all_claims and args.faults is None and args.controls is not None:
        raise UsageError("--all-claims asks about faults: name some with --faults")
    everything = args.faults is None and args.controls is None
    return Plan(
        faults=FAULTS if everything else _chosen("faults", FAULTS, args.faults),
        controls=CONTROLS if everything else _chosen("controls", CONTROLS, args.controls),
        profile=profile_named(args.profile),
        seeds=tuple(range(args.seed, args.seed + args.repeat)),
        sweeps=args.all_claims,
    )


def _chosen(
    what: str, members: Sequence[Member], patterns: Sequence[str] | None
) -> tuple[Member, ...]:
    """Members of which a pattern matches the name; none where the other kind alone was named."""
    names = [member.name for member in members]
    for pattern in patterns or ():
        if not fnmatch.filter(names, pattern):
            close = difflib.get_close_matches(pattern, names, n=1)
            meant = f" did you mean {close[0]!r}?" if close else ""
            raise UsageError(
                f"--{what}={pattern!r} matches nothing;{meant} valid: assay list {what}"
            )
    return tuple(m for m in members if any(fnmatch.fnmatch(m.name, p) for p in patterns or ()))


def _line(args: Namespace) -> str:
    """The command that gives the same again."""
    parts = [f"--profile {args.profile}", f"--repeat {args.repeat}", f"--seed {args.seed}"]
    parts += [f"--{k} '{','.join(v)}'" for k in ("faults", "controls") if (v := getattr(args, k))]
    return " ".join(["assay zoo", *parts, *(["--all-claims"] if args.all_claims else [])])


def _run(plan: Plan, jobs: int) -> Detection:
    """Run the plan to its end, or to Ctrl-C; what ended is kept in any case."""
    from concurrent.futures.process import BrokenProcessPool

    from assay.zoo.detection import Detection
    from assay.zoo.spread import spread

    tasks = plan.tasks()
    done: list[Record] = []
    stopped = ""
    with _listen(len(tasks)) as listen, closing(spread(tasks, jobs)) as records:
        try:
            for record in records:
                done.append(record)
                listen(record)
        except KeyboardInterrupt:
            stopped = f"stopped after {len(done)} of {len(tasks)} runs"
        except BrokenProcessPool as error:
            stopped = f"ended after {len(done)} of {len(tasks)} runs: {error}"
    return Detection(plan, tuple(done), stopped)


@contextmanager
def _listen(total: int) -> Iterator[Callable[[Record], None]]:
    """A bar on a terminal, else a line now and then. What went wrong is told at once."""
    from assay.cli.zoo_summary import bad_news

    done, last = 0, time.monotonic()
    if sys.stderr.isatty():
        from assay.cli.listener import bar

        with bar() as progress:
            task = progress.add_task("runs", total=total)

            def live(record: Record) -> None:
                for text in bad_news(record):
                    console.line(text)
                progress.update(task, advance=1, description=f"runs, last {_name(record)}")

            yield live
        return

    def lines(record: Record) -> None:
        nonlocal done, last
        done += 1
        for text in bad_news(record):
            console.line(text)
        sys.stdout.flush()
        if time.monotonic() - last >= _EVERY or done == total:
            last = time.monotonic()
            console.note(f"{done} of {total} runs, last {_name(record)}")

    yield lines


def _name(record: Record) -> str:
    from assay.zoo.hunt import Clearance

    return record.control.name if isinstance(record, Clearance) else record.fault.name


COMMAND = Command(
    name="zoo",
    summary="measure how well planted faults are found, and that sound kernels are not accused",
    examples=(
        ("assay zoo", "every fault and every control, one seed, quick profile"),
        ("assay zoo --faults 'softmax-*' --repeat 3", "some faults, three seeds"),
        ("assay zoo --controls '*' --profile ci", "controls only"),
        ("assay zoo --faults '*' --all-claims", "which claims catch which fault"),
        ("assay zoo --repeat 3 --markdown detection.md", "the page of the docs"),
    ),
    arguments=_arguments,
    execute=_execute,
)
