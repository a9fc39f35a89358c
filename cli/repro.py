"""``assay repro``: write a finding as a script that needs no assay."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, BooleanOptionalAction, Namespace
from pathlib import Path

from assay.cli import console
from assay.cli.command import Command, Status, add_store, check_output
from assay.cli.store import find


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("finding", metavar="ID", help="a finding's id, or its first characters")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="default: standard output"
    )
    parser.add_argument(
        "--isolate",
        action=BooleanOptionalAction,
        default=True,
        help="run the backend in its own process while looking for what is violated",
    )
    add_store(parser)


def _execute(args: Namespace) -> Status:
    from assay.properties.reproduce import writer

    check_output("--output", args.output)
    finding = find(args.directory, args.finding)
    with writer(isolate=args.isolate) as write:
        text = write(finding)
    if args.output is None:
        sys.stdout.write(text)
        return Status.HELD
    args.output.write_text(text, encoding="utf-8")
    console.note(f"{args.output} written; python {args.output} fails while the fault is there")
    return Status.HELD


COMMAND = Command(
    name="repro",
    summary="write a finding as a script free of assay",
    examples=(
        (
            "assay repro 7f3a > bug.py",
            "then: python bug.py (needs numpy, and torch for a torch backend)",
        ),
        ("assay repro 7f3a -o bug.py", "the same, into a file"),
    ),
    arguments=_arguments,
    execute=_execute,
)
