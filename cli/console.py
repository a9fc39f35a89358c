"""What the commands print: lines and tables, foreign control characters made harmless."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

WIDE = 140
"""Columns for tables when nobody's terminal says otherwise, so that a log keeps names whole."""


def plain(text: str) -> str:
    r"""``text`` on one line, without control characters: no backend's message steers a terminal.

    >>> plain("a\nb\x1b[31m")
    'a b?[31m'
    """
    joined = " ".join(text.split())
    return "".join(c if c.isprintable() else "?" for c in joined)


def line(text: str = "") -> None:
    """One line on standard output."""
    sys.stdout.write(plain(text) + "\n")


def block(text: str) -> None:
    """Text of our own, as it is, on standard output."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


def note(text: str) -> None:
    """One line on standard error."""
    sys.stderr.write(f"assay: {plain(text)}\n")


def console(*, stderr: bool = False) -> Console:
    """A rich console that takes text literally (no markup, no emoji)."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else WIDE
    return Console(file=stream, width=width, markup=False, emoji=False, highlight=False)


def table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[str] = ()
) -> None:
    """Print a table on standard output; ``right``: columns to align so; the first is kept whole."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    drawn = Table(title=title or None, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for column in columns:
        drawn.add_column(
            column,
            justify="right" if column in right else "left",
            overflow="fold",
            no_wrap=column == columns[0],
        )
    for row in rows:
        drawn.add_row(*(Text(plain(entry)) for entry in row))
    console().print(drawn)
