"""A measured figure, and tables of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One measured value in words, and what was aimed at ("" where nothing was)."""

    what: str
    value: str
    aim: str = ""


@dataclass(frozen=True)
class Section:
    """The figures of one benchmark, and how they were taken."""

    title: str
    method: str
    figures: tuple[Figure, ...]

    def markdown(self) -> str:
        """As a table."""
        rows = [(f.what, f.value, f.aim) for f in self.figures]
        return f"{self.method}\n\n{table(('', 'measured', 'aim'), rows)}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def megabytes(size: int) -> str:
    """Bytes in MB."""
    return f"{size / 1e6:.0f} MB"
