"""``assay replay``: run the smallest known case of a finding again."""

from __future__ import annotations

from argparse import ArgumentParser, BooleanOptionalAction, Namespace

from assay.cli import console
from assay.cli.command import Command, Status, add_store
from assay.cli.store import find
from assay.cli.summary import finding_line


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("finding", metavar="ID", help="a finding's id, or its first characters")
    parser.add_argument(
        "--isolate",
        action=BooleanOptionalAction,
        default=True,
        help="run the backend in its own process",
    )
    add_store(parser)


def _execute(args: Namespace) -> Status:
    from assay.properties.replay import replay

    finding = find(args.directory, args.finding)
    again = replay(finding, isolate=args.isolate)
    if again is None:
        console.line(f"{finding.cell}: does not fail any more [{finding.summary}]")
        return Status.HELD
    console.line(finding_line(again))
    if again.hint:
        console.line(f"hint: {again.hint}")
    if again.trace:
        console.block("\n".join(console.plain(text) for text in again.trace.splitlines()))
    return Status.FINDINGS


COMMAND = Command(
    name="replay",
    summary="run the smallest case of a finding again",
    examples=(
        ("assay replay 7f3a", "exit status 1 while it fails, 0 once it is mended"),
        ("assay replay 7f3a --no-isolate", "in this process, under a debugger"),
    ),
    arguments=_arguments,
    execute=_execute,
)
