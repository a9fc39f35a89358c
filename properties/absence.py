"""Backends that cannot run here, told once for each reason, however many they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from assay.properties.results import Absent

NAMED = 3
"""Names that stand for a larger group where a list would fill the screen."""


@dataclass(frozen=True)
class Group:
    """Backends that one reason keeps away, by name.

    why  the reason, with the command that brings what is missing
    """

    why: str
    backends: tuple[str, ...]

    @property
    def title(self) -> str:
        """Who they are: the only one's name, or how many."""
        few = len(self.backends) == 1
        return self.backends[0] if few else f"{len(self.backends)} backends"

    def __str__(self) -> str:
        """All of it, on one line."""
        return self._line(len(self.backends))

    def short(self) -> str:
        """The same with the first few names only."""
        return self._line(NAMED)

    def _line(self, most: int) -> str:
        line = f"{self.title}: {self.why}"
        if len(self.backends) == 1:
            return line
        rest = ", ..." if len(self.backends) > most else ""
        return f"{line}: {', '.join(self.backends[:most])}{rest}"


def by_reason(absent: Iterable[Absent]) -> tuple[Group, ...]:
    """The groups, in the order of their first backends.

    >>> two = [Absent("chip.b", "no chip"), Absent("chip.a", "no chip", "buy one")]
    >>> [str(group) for group in by_reason([*two, Absent("chip.c", "no chip")])]
    ['chip.a: no chip (buy one)', '2 backends: no chip: chip.b, chip.c']
    """
    groups: dict[str, list[str]] = {}
    for entry in sorted(absent):
        groups.setdefault(entry.why, []).append(entry.backend)
    return tuple(Group(why, tuple(names)) for why, names in groups.items())
