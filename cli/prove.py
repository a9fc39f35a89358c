"""``assay prove``: discharge the obligations that the spec's claims rest on."""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from assay.cli import console, store
from assay.cli.command import Command, Status, UsageError, add_store, check_output
from assay.cli.run import duration, natural

if TYPE_CHECKING:
    from assay.proofs.obligation import Outcome


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "patterns", nargs="*", metavar="ID", help="obligation ids or globs; default: all"
    )
    parser.add_argument(
        "--timeout",
        type=duration,
        default=20.0,
        metavar="T",
        help="for each obligation (default: 20 s); running out of it is open, never success",
    )
    parser.add_argument(
        "--jobs", type=natural, metavar="N", help="processes (default: one for each core)"
    )
    parser.add_argument(
        "--cross-check", action="store_true", help="ask cvc5 and bitwuzla the same questions"
    )
    parser.add_argument(
        "--no-cache",
        action="store_true",
        help="prove again what was proved before from the same sources and with the same solvers",
    )
    parser.add_argument("--json", type=Path, metavar="F", help="write the outcomes as JSON")
    parser.add_argument(
        "--markdown", type=Path, metavar="F", help="write the proof report, without times"
    )
    parser.add_argument(
        "--smt", type=Path, metavar="DIR", help="write each query as SMT-LIB 2 text"
    )
    add_store(parser)


def _execute(args: Namespace) -> Status:
    before = store.kept_proofs(args.directory)
    if args.no_cache or not before:
        from assay.proofs import preloading

        preloading.start()

    from assay.proofs.crossing import Missing
    from assay.proofs.discharge import discharge
    from assay.proofs.obligations import OBLIGATIONS

    check_output("--json", args.json)
    check_output("--markdown", args.markdown)
    if args.smt is not None and args.smt.exists() and not args.smt.is_dir():
        raise UsageError(f"--smt={str(args.smt)!r} must be a directory, or not exist yet")
    try:
        with _listen() as listen:
            outcomes = discharge(
                args.patterns,
                timeout=args.timeout,
                jobs=(os.cpu_count() or 1) if args.jobs is None else args.jobs,
                cross_check=args.cross_check,
                known=() if args.no_cache else before,
                listen=listen,
            )
    except (ValueError, Missing) as error:
        raise UsageError(str(error)) from error
    _show(outcomes)
    _tell_reuse(outcomes, before)
    kept = store.save_proofs(args.directory, outcomes, [o.id for o in OBLIGATIONS])
    console.note(f"kept in {kept} for assay report")
    if args.smt:
        console.note(f"{write_scripts(outcomes, args.smt)} queries are in {args.smt}")
    if args.json:
        document = {"schema": 1, "outcomes": [o.as_json() for o in outcomes]}
        args.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    if args.markdown:
        from assay.cli.report.proof_document import write

        args.markdown.write_text(write(outcomes), encoding="utf-8")
    return status(outcomes)


def status(outcomes: Sequence[Outcome]) -> Status:
    """Refuted is a finding; open, or nothing that ran, is no answer."""
    words = {outcome.status for outcome in outcomes if outcome.status != "unavailable"}
    if "refuted" in words:
        return Status.FINDINGS
    return Status.UNANSWERED if "open" in words or not words else Status.HELD


def write_scripts(outcomes: Sequence[Outcome], folder: Path) -> int:
    """One file for each query, ``<obligation's id>/<number>.smt2``; returns how many there are."""
    count = 0
    for outcome in outcomes:
        for number, script in enumerate(outcome.scripts, 1):
            path = folder / outcome.id / f"{number:02}.smt2"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"; {outcome.id}\n{script.text}", encoding="utf-8")
            count += 1
    return count


def _tell_reuse(outcomes: Sequence[Outcome], before: Sequence[Outcome]) -> None:
    earlier = {id(o) for o in before}
    reused = sum(id(o) in earlier for o in outcomes)
    if reused:
        console.line(
            f"{reused} of {len(outcomes)} as kept: nothing that they rest on has changed "
            "(--no-cache proves them again)"
        )


def _show(outcomes: Sequence[Outcome]) -> None:
    rows = [
        (o.id, o.status, f"{o.solver} {o.version}", f"{o.seconds:.2f}", o.generality)
        for o in outcomes
    ]
    columns = ("obligation", "status", "by", "seconds", "how general")
    console.table("", columns, rows, right=("seconds",))
    for outcome in outcomes:
        if outcome.failed:
            console.line(f"{outcome.status} {outcome.id}: {outcome.detail}")
    absent = Counter(o.detail for o in outcomes if o.status == "unavailable")
    for reason, number in absent.items():
        console.line(f"{number} {reason}")
    counts = Counter(o.status for o in outcomes)
    console.line(", ".join(f"{number} {word}" for word, number in counts.items()))


@contextmanager
def _listen() -> Iterator[Callable[[Outcome], None]]:
    """One line for each outcome on standard error; on a terminal a spinner with the last one."""
    if not sys.stderr.isatty():
        yield lambda outcome: console.note(
            f"{outcome.status} {outcome.id} ({outcome.seconds:.2f} s)"
        )
        return
    count = 0
    with console.console(stderr=True).status("proving") as spinner:

        def show(outcome: Outcome) -> None:
            nonlocal count
            count += 1
            spinner.update(
                f"proving: {count} done, last {outcome.status} {console.plain(outcome.id)}"
            )

        yield show


COMMAND = Command(
    name="prove",
    summary="discharge the proof obligations of the spec",
    examples=(
        ("assay prove", "all of them; the report shows them beside the tests"),
        ("assay prove 'softmax.*' --timeout 60", "some of them, with more time for each"),
        ("assay prove --cross-check", "also by other solvers; some four times as long"),
    ),
    arguments=_arguments,
    execute=_execute,
)
