"""Profiles: how much a campaign spends."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Profile:
    """The budget of a campaign.

    examples        for a property of weight 1, in each cell
    cell_seconds    after which a cell stops drawing (a cell that has found a fault still shrinks
                    it)
    total_seconds   after which no cell is started; None: no limit
    shrink_seconds  for Hypothesis and the value shrinker together
    timeout         of one call in a worker
    thorough        run all properties in all dtypes and modes; else dtypes after the first, and
                    hygiene, are sampled: fewer properties and examples, in one mode
    derandomize     the same draws in every run
    """

    name: str
    summary: str
    examples: int
    cell_seconds: float
    total_seconds: float | None
    shrink_seconds: float
    timeout: float
    thorough: bool
    derandomize: bool = False


PROFILES: dict[str, Profile] = {
    p.name: p
    for p in (
        Profile(
            "quick", "a first verdict within a minute", 24, 2.0, 240.0, 3.0, 5.0, thorough=False
        ),
        Profile(
            "ci",
            "a gate for every change, within ten minutes",
            250,
            8.0,
            570.0,
            6.0,
            10.0,
            thorough=True,
        ),
        Profile("nightly", "an hour or two", 2500, 60.0, None, 20.0, 30.0, thorough=True),
        Profile(
            "soak",
            "until it is stopped or its --time is over",
            50_000,
            1800.0,
            None,
            20.0,
            60.0,
            thorough=True,
        ),
    )
}
