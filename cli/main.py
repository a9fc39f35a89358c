"""The command line: runs one command, turns every error into one message and an exit status."""

from __future__ import annotations

import errno
import os
import sys
import time
import traceback
from argparse import Action, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from pathlib import Path

from assay.cli import calibrate, layout, listing, new_backend, prove, replay, repro, run, zoo
from assay.cli.command import STORE, Command, Status, UsageError
from assay.cli.report import command as report
from assay.cli.training import command as train

COMMANDS: tuple[Command, ...] = (
    run.COMMAND,
    prove.COMMAND,
    report.COMMAND,
    replay.COMMAND,
    repro.COMMAND,
    layout.COMMAND,
    train.COMMAND,
    listing.COMMAND,
    zoo.COMMAND,
    calibrate.COMMAND,
    new_backend.COMMAND,
)

_DESCRIPTION = """\
Does this kernel compute what the mathematics says, and how do we know?

exit status: 0 all held; 1 findings or a refuted proof; 2 usage or configuration error;
3 ended without an answer (out of budget, stopped, open obligations, internal error)"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that ``argv`` (default: ``sys.argv[1:]``) names; returns the exit status."""
    try:
        args = parser().parse_args(argv)
    except SystemExit as stop:  # argparse has printed the help or the error
        return int(stop.code or 0)
    try:
        status = int(args.execute(args))
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        return _say("stopped; what was finished is kept (assay report shows it)", Status.UNANSWERED)
    except BrokenPipeError:
        # The reader (head, less) has gone, and flushing at exit must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Status.UNANSWERED
    except Exception as error:
        return _explain(error, args)


class _Version(Action):
    """Prints the version; importlib.metadata is slow to import, hence only when asked."""

    def __call__(self, parser: ArgumentParser, *_: object) -> None:
        from assay.cli.versions import own_version

        sys.stdout.write(f"assay {own_version()}\n")
        parser.exit()


def parser() -> ArgumentParser:
    """The parser of all commands."""
    top = ArgumentParser(
        prog="assay",
        description=_DESCRIPTION,
        formatter_class=RawDescriptionHelpFormatter,
        epilog="assay COMMAND --help shows the options and examples of a command.",
    )
    top.add_argument("--version", action=_Version, nargs=0, help="show the version and stop")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for entry in COMMANDS:
        sub = commands.add_parser(
            entry.name,
            help=entry.summary,
            description=entry.summary,
            epilog=entry.epilog,
            formatter_class=RawDescriptionHelpFormatter,
        )
        entry.arguments(sub)
        sub.set_defaults(execute=entry.execute)
    return top


def _explain(error: Exception, args: Namespace) -> Status:
    """One clear message for ``error``; a fault of our own is told apart from one of the user's."""
    full = _disk_full(error)
    if full:
        return _say(
            f"{full}; what was found before is kept (assay report shows it)", Status.UNANSWERED
        )
    if isinstance(error, UsageError):  # asked first, since the other kinds are slow to import
        return _say(str(error), Status.USAGE)
    if isinstance(error, _unavailable()):
        return _say(f"cannot run here: {error}", Status.UNANSWERED)
    if isinstance(error, _expected_errors()):
        return _say(str(error), Status.USAGE)
    if isinstance(error, OSError) and error.filename is not None:
        return _say(f"{error.filename}: {error.strerror}", Status.USAGE)
    return _internal(error, getattr(args, "directory", STORE))


def _expected_errors() -> tuple[type[Exception], ...]:
    """Errors whose message is written for the user. Imported here, since that is slow."""
    from assay.impl.loading import TargetError
    from assay.properties.campaign import OptionError
    from assay.properties.journal import JournalError
    from assay.properties.known import KnownError

    return (TargetError, OptionError, JournalError, KnownError)


def _unavailable() -> type[Exception]:
    from assay.impl.protocol import Unavailable

    return Unavailable


def _disk_full(error: BaseException | None) -> str:
    """What to say when ``error``, or its cause, is that nothing more can be written; else empty."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return f"the disk is full ({error.filename or error.strerror})"
        if type(error).__module__ == "sqlite3" and "disk is full" in str(error):
            return "the disk is full (the journal could not be written)"
        error = error.__cause__ or error.__context__
    return ""


def _internal(error: Exception, directory: Path) -> Status:
    """Keep the traceback in a file; a fault of assay is no answer about the backend."""
    trace = "".join(traceback.format_exception(error))
    file = Path(directory) / f"error-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.txt"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(trace, encoding="utf-8")
        place = f"the traceback is in {file}"
    except OSError:
        place = f"the traceback could not be stored, so it follows\n{trace}"
    return _say(f"internal error: {type(error).__name__}: {error}; {place}", Status.UNANSWERED)


def _say(message: str, status: Status) -> Status:
    sys.stderr.write(f"assay: {message}\n")
    return status
