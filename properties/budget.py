"""The time of a campaign, shared out so that every cell gets a verdict.

A cell may take its part of what is left when it starts; what it does not use is there for the later
ones. Where kernels are compiled for each shape, a few examples take longer than any share: what the
cells of a backend took beyond theirs is set aside for those that still wait. A cell's examples are
drawn from its own seed, so one that ran out of time has seen the first of the very examples that it
would have seen: a busy machine costs examples, and changes nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from assay.properties.profiles import Profile

SHRINKS = 20
"""Shares that a cell with a fault may take to make it small: few cells have one."""

LEAST_SHRINK = 1.0
"""Seconds that it has for that in any case."""

AIM = 0.95
"""Part of the time that is shared out. The rest is for cells that take longer than their share."""


MOST_BEYOND = 1.0
"""Seconds beyond its share that a cell is expected to take at most: the first ones of a backend,
which load and compile it, take more.
"""


@dataclass
class _Beyond:
    """Seconds that the cells of one backend took beyond their shares."""

    cells: int = 0
    seconds: float = 0.0

    @property
    def mean(self) -> float:
        return self.seconds / self.cells


@dataclass(frozen=True)
class Budget:
    """``seconds`` from ``began`` (monotonic) on, for ``jobs`` cells at a time. None: no limit."""

    seconds: float | None
    jobs: int
    began: float
    _beyond: dict[str, _Beyond] = field(default_factory=dict, init=False)

    @property
    def spent(self) -> bool:
        """Whether no further cell is to be started."""
        return self.seconds is not None and time.monotonic() >= self.began + self.seconds

    def share(self, profile: Profile, waiting: Mapping[str, int]) -> Profile:
        """``profile`` with the time that the next cell may take, while so many of each backend
        wait, this one among them.
        """
        if self.seconds is None:
            return profile
        cells = sum(waiting.values())
        left = max(0.0, self.began + AIM * self.seconds - time.monotonic()) * min(self.jobs, cells)
        aside = sum(self._beyond[b].mean * n for b, n in waiting.items() if b in self._beyond)
        own = max(0.0, left - aside) / cells
        return replace(
            profile,
            share=own,
            shrink_seconds=min(profile.shrink_seconds, max(LEAST_SHRINK, SHRINKS * own)),
        )

    def took(self, backend: str, seconds: float, share: float) -> None:
        """A cell of ``backend`` has ended, whose share it was."""
        seen = self._beyond.setdefault(backend, _Beyond())
        seen.cells += 1
        seen.seconds += min(max(0.0, seconds - share), MOST_BEYOND)


def unlimited() -> Budget:
    """No limit but the profile's own for each cell."""
    return Budget(None, 1, time.monotonic())
