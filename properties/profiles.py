"""Profiles: how much a campaign spends."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Breadth = Literal["few", "some", "all"]


@dataclass(frozen=True)
class Profile:
    """The budget of a campaign.

    examples        for a property of weight 1, in each cell
    fills           value seeds judged for each drawn structure, by the properties of which drawing
                    costs more than judging; another structure finds more than another seed
    cell_seconds    after which a cell stops drawing (a cell that has found a fault still shrinks
                    it)
    total_seconds   for the whole campaign, shared out to its cells; None: no limit
    shrink_seconds  for Hypothesis and the value shrinker together
    timeout         of one call in a worker
    breadth         which cells there are: "all" of them; "some": values in every dtype and mode,
                    the rest crossed with modes in the first dtype only, hygiene in one mode and on
                    two ops of a backend for each of its parts after the first dtype; "few": values
                    in one mode after the first dtype and nothing else there, hygiene so everywhere
    share           seconds that a cell may take of the whole campaign's; set when it starts
    """

    name: str
    summary: str
    examples: int
    fills: int
    cell_seconds: float
    total_seconds: float | None
    shrink_seconds: float
    timeout: float
    breadth: Breadth
    share: float = math.inf

    @property
    def thorough(self) -> bool:
        """Whether it searches and does not only sample."""
        return self.breadth != "few"


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
            breadth="few",
        ),
        Profile(
            name="ci",
            summary="a gate for every change, within ten minutes",
            examples=100,
            fills=3,
            cell_seconds=20.0,
            total_seconds=570.0,
            shrink_seconds=6.0,
            timeout=10.0,
            breadth="some",
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
            breadth="all",
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
            breadth="all",
        ),
    )
}
