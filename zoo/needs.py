"""Which claims catch which faults: which fault hangs on one claim, and which claim could go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assay.zoo.hunt import Sweep


@dataclass(frozen=True)
class Needs:
    """What the sweeps say of the claims.

    asked     properties that at least one fault's backend was asked
    caught    property to the faults that it catches
    sole      fault to the only property that catches it
    """

    asked: tuple[str, ...]
    caught: dict[str, tuple[str, ...]]
    sole: dict[str, str]

    @property
    def unneeded(self) -> list[str]:
        """Those without which every fault would be caught all the same."""
        return [name for name in self.asked if name not in self.sole.values()]

    @property
    def idle(self) -> list[str]:
        """Those that catch no fault at all."""
        return [name for name in self.asked if not self.caught.get(name)]


def needs(sweeps: Sequence[Sweep]) -> Needs:
    """Count which properties catch which faults."""
    asked = sorted({name for s in sweeps for name in s.asked})
    caught = {name: tuple(s.fault.name for s in sweeps if name in s.caught_by) for name in asked}
    sole = {s.fault.name: s.caught_by[0] for s in sweeps if len(s.caught_by) == 1}
    return Needs(tuple(asked), caught, sole)
