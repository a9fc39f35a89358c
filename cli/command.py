"""What a command is: name, help, arguments and what it does. Every exit status is defined here."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

STORE = Path(".assay")
"""Where campaigns, proofs and error traces are kept, relative to the working directory."""


class Status(IntEnum):
    """Exit status, the same for every command."""

    HELD = 0
    FINDINGS = 1
    USAGE = 2
    UNANSWERED = 3


class UsageError(Exception):
    """The user asked for what does not exist or cannot be; the message says what is valid."""


@dataclass(frozen=True)
class Command:
    """One subcommand.

    examples   (command line, what it does) pairs, shown at the end of its help
    arguments  adds its options to the parser
    execute    does the work and gives the exit status
    """

    name: str
    summary: str
    examples: tuple[tuple[str, str], ...]
    arguments: Callable[[ArgumentParser], None]
    execute: Callable[[Namespace], Status]

    @property
    def epilog(self) -> str:
        """The examples as help text."""
        width = max(len(line) for line, _ in self.examples)
        lines = [f"  {line:<{width}}    {meaning}" for line, meaning in self.examples]
        return "\n".join(["examples:", *lines])


def add_store(parser: ArgumentParser) -> None:
    """The option that says where results are kept."""
    parser.add_argument(
        "--directory",
        type=Path,
        default=STORE,
        metavar="DIR",
        help="where campaigns and proofs are kept (default: %(default)s)",
    )


def check_output(option: str, path: Path | None) -> None:
    """Refuse an output place that does not exist before time is spent, not after."""
    if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
        raise UsageError(f"{option}={str(path)!r} must be a file in a directory that exists")


def words(text: str) -> tuple[str, ...]:
    """Comma-separated names.

    >>> words("float32, bfloat16")
    ('float32', 'bfloat16')
    """
    return tuple(word.strip() for word in text.split(",") if word.strip())
