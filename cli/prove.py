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
        "--cross-check", action="store_true", help="ask a second solver, where cvc5 is installed"
    )
    parser.add_argument("--json", type=Path, metavar="F", help="write the outcomes as JSON")
    parser.add_argument("--markdown", type=Path, metavar="F", help="write the table as Markdown")
    add_store(parser)


def _execute(args: Namespace) -> Status:
    from assay.proofs.discharge import discharge

    check_output("--json", args.json)
    check_output("--markdown", args.markdown)
    try:
        with _listen() as listen:
            outcomes = discharge(
                args.patterns,
                timeout=args.timeout,
                jobs=(os.cpu_count() or 1) if args.jobs is None else args.jobs,
                cross_check=args.cross_check,
                listen=listen,
            )
    except ValueError as error:
        raise UsageError(str(error)) from error
    _show(outcomes)
    kept = store.save_proofs(args.directory, outcomes)
    console.note(f"kept in {kept} for assay report")
    if args.json:
        document = {"schema": 1, "outcomes": [o.as_json() for o in outcomes]}
        args.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    if args.markdown:
        from assay.cli.report.markdown import proofs

        args.markdown.write_text(proofs(outcomes), encoding="utf-8")
    return status(outcomes)


def status(outcomes: Sequence[Outcome]) -> Status:
    """Refuted is a finding; open, or nothing at all, is no answer."""
    words = {outcome.status for outcome in outcomes}
    if "refuted" in words:
        return Status.FINDINGS
    return Status.UNANSWERED if "open" in words or not words else Status.HELD


def _show(outcomes: Sequence[Outcome]) -> None:
    rows = [
        (o.id, o.status, f"{o.solver} {o.version}", f"{o.seconds:.2f}", o.generality)
        for o in outcomes
    ]
    columns = ("obligation", "status", "by", "seconds", "how general")
    console.table("", columns, rows, right=("seconds",))
    for outcome in outcomes:
        if not outcome.held:
            console.line(f"{outcome.status} {outcome.id}: {outcome.detail}")
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
    ),
    arguments=_arguments,
    execute=_execute,
)
