"""The time of a campaign, shared out so that every cell gets a verdict.

A cell may take its part of what is left when it starts; what it does not use is there for the later
ones. Its examples are drawn from its own seed, so one that ran out of time has seen the first of
the very examples that it would have seen: a busy machine costs examples, and changes nothing else.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from assay.properties.profiles import Profile

SHRINKS = 20
"""Shares that a cell with a fault may take to make it small: few cells have one."""

LEAST_SHRINK = 1.0
"""Seconds that it has for that in any case."""

AIM = 0.95
"""Part of the time that is shared out. The rest is for cells that take longer than their share."""


@dataclass(frozen=True)
class Budget:
    """``seconds`` from ``began`` (monotonic) on, for ``jobs`` cells at a time. None: no limit."""

    seconds: float | None
    jobs: int
    began: float

    @property
    def spent(self) -> bool:
        """Whether no further cell is to be started."""
        return self.seconds is not None and time.monotonic() >= self.began + self.seconds

    def share(self, profile: Profile, waiting: int) -> Profile:
        """``profile`` with the time that the next of ``waiting`` cells may take."""
        if self.seconds is None:
            return profile
        left = max(0.0, self.began + AIM * self.seconds - time.monotonic())
        own = left * min(self.jobs, waiting) / waiting
        return replace(
            profile,
            share=own,
            shrink_seconds=min(profile.shrink_seconds, max(LEAST_SHRINK, SHRINKS * own)),
        )


def unlimited() -> Budget:
    """No limit but the profile's own for each cell."""
    return Budget(None, 1, time.monotonic())
