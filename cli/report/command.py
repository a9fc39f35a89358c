"""``assay report``: the newest campaign and the proofs, for people."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from assay.cli import console, store
from assay.cli.command import Command, Status, UsageError, add_store, check_output


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--html", type=Path, metavar="F", help="one self-contained file (default: in DIR)"
    )
    parser.add_argument("--markdown", type=Path, metavar="F", help="for a pull request or a wiki")
    parser.add_argument("--json", type=Path, metavar="F", help="for a program")
    parser.add_argument("--campaign", metavar="ID", help="another than the newest")
    parser.add_argument("--known", type=Path, metavar="FILE", help="expected findings (known.toml)")
    parser.add_argument("--open", action="store_true", help="show the HTML in a browser")
    add_store(parser)


def _execute(args: Namespace) -> Status:
    from assay.cli import outputs, summary
    from assay.properties import known

    files = {kind: getattr(args, kind) for kind in ("html", "markdown", "json")}
    for kind, path in files.items():
        check_output(f"--{kind}", path)
    result = store.campaign(args.directory, args.campaign)
    if not result.cells:
        raise UsageError(f"campaign {result.campaign} ran no cell, so there is nothing to report")
    expected = known.load(args.known) if args.known else known.Known()
    result, stale_entries = known.apply(expected, result)
    stale = tuple(str(entry) for entry in stale_entries)
    status = summary.status(result, stale)
    if not any(files.values()) or (args.open and not files["html"]):
        files["html"] = args.directory / "report.html"
    for kind, path in files.items():
        if path is not None:
            outputs.write(kind, path, result, status, stale, args.directory)
            console.block(str(path.absolute()))
    if args.open:
        import webbrowser

        webbrowser.open(files["html"].absolute().as_uri())
    return Status.HELD


COMMAND = Command(
    name="report",
    summary="report the newest campaign and the proofs as HTML, Markdown or JSON",
    examples=(
        ("assay report --open", "write .assay/report.html and show it"),
        ("assay report --html r.html --markdown r.md", "both, from the newest campaign"),
    ),
    arguments=_arguments,
    execute=_execute,
)
