"""Cases of a search differ, pairs of choices meet early, and the seed alone decides."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
from collections.abc import Callable
from itertools import combinations

import hypothesis
import pytest
from hypothesis import strategies as st

from assay.properties.draw import Draw, choice, draw_recipes
from assay.properties.spread import spreading

Row = tuple[int, ...]
AXES, LEVELS, CASES = 8, 4, 40
LEVEL = st.sampled_from(range(LEVELS))

_PROGRAM = """
from tests.properties.test_spread import _rows
print(_rows(3))
"""


def _rows(seed: int, failing: Callable[[Row], bool] = lambda row: False) -> list[Row]:
    """The cases that are drawn, to the smallest failing one."""
    found: list[Row] = []

    def collect(row: Row) -> None:
        found.append(row)
        assert not failing(row)

    rows = st.tuples(*[LEVEL] * AXES)
    with spreading() as source:
        settings = hypothesis.settings(
            max_examples=CASES, database=None, backend=source, deadline=None
        )
        with contextlib.suppress(AssertionError):
            settings(hypothesis.seed(seed)(hypothesis.given(rows)(collect)))()
    return found


def _pairs(rows: list[Row]) -> int:
    return len({(a, row[a], b, row[b]) for row in rows for a, b in combinations(range(AXES), 2)})


@pytest.mark.parametrize("seed", range(3))
def test_nearly_all_pairs_of_choices_meet(seed: int) -> None:
    rng = random.Random(seed)
    chance = [tuple(rng.randrange(LEVELS) for _ in range(AXES)) for _ in range(CASES)]
    every = LEVELS**2 * AXES * (AXES - 1) // 2
    rows = _rows(seed)

    assert len(rows) == CASES
    assert every - _pairs(rows) < (every - _pairs(chance)) / 4


def test_a_failing_pair_is_made_small() -> None:
    rows = _rows(0, lambda row: row[2] >= 2 and row[5] == 3)

    assert rows[-1] == (0, 0, 2, 0, 0, 3, 0, 0)


def test_the_hash_seed_decides_nothing() -> None:
    told = {
        subprocess.run(
            [sys.executable, "-c", _PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": number},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for number in ("1", "2")
    }

    assert told == {f"{_rows(3)}\n"}


def test_recipes_of_all_arrays_are_drawn_alike() -> None:
    recipes = tuple("abcdefgh")
    seen: list[dict[str, str]] = []

    def draw_case(draw: Draw) -> dict[str, str]:
        draw(choice(1, 2))
        return draw_recipes(draw, recipes, ("q", "k", "v"))

    def collect(case: dict[str, str]) -> None:
        seen.append(case)

    cases = st.composite(draw_case)()
    with spreading() as source:
        settings = hypothesis.settings(max_examples=400, database=None, backend=source)
        settings(hypothesis.seed(0)(hypothesis.given(cases)(collect)))()

    for name in ("q", "k", "v"):
        counts = [sum(case[name] == recipe for case in seen) for recipe in recipes]
        # 50 each; 25 more or less is nearly four standard deviations.
        assert min(counts) > 25, counts
        assert max(counts) < 75, counts
