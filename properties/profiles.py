"""Profiles: how much a campaign spends."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Profile:
    """The budget of a campaign.

    examples        for a property of weight 1, in each cell
    fills           value seeds judged for each drawn structure: drawing costs more than judging,
                    but another structure finds more than another seed where examples are few
    cell_seconds    after which a cell stops drawing (a cell that has found a fault still shrinks
                    it)
    total_seconds   after which no cell is started; None: no limit
    shrink_seconds  for Hypothesis and the value shrinker together
    timeout         of one call in a worker
    thorough        run all properties in all dtypes and modes; else dtypes after the first, and
                    hygiene, are sampled: fewer properties and examples, in one mode, and each part
                    of hygiene on two ops of a backend
    """

    name: str
    summary: str
    examples: int
    fills: int
    cell_seconds: float
    total_seconds: float | None
    shrink_seconds: float
    timeout: float
    thorough: bool


PROFILES: dict[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile(
            name="quick",
            summary="a first verdict on a backend within a minute",
            examples=20,
            fills=1,
            cell_seconds=6.0,
            total_seconds=900.0,
            shrink_seconds=3.0,
            timeout=5.0,
            thorough=False,
        ),
        Profile(
            name="ci",
            summary="a gate for every change, within ten minutes",
            examples=100,
            fills=3,
            cell_seconds=20.0,
            total_seconds=1200.0,
            shrink_seconds=6.0,
            timeout=10.0,
            thorough=True,
        ),
        Profile(
            name="nightly",
            summary="two or three hours",
            examples=2500,
            fills=3,
            cell_seconds=60.0,
            total_seconds=None,
            shrink_seconds=20.0,
            timeout=30.0,
            thorough=True,
        ),
        Profile(
            name="soak",
            summary="until it is stopped or its --time is over",
            examples=50_000,
            fills=3,
            cell_seconds=1800.0,
            total_seconds=None,
            shrink_seconds=20.0,
            timeout=60.0,
            thorough=True,
        ),
    )
}
