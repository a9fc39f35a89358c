"""The value shrinker ends at simple arrays that still fail."""

from __future__ import annotations

import time

import numpy as np

from assay.properties.case import Case
from assay.properties.shrink import cost, simplify_values

CASE = Case("attention", "float32", "default", 0, {"B": 1})


def _shrink(
    arrays: dict[str, np.ndarray], fails: object, seconds: float = 5.0
) -> dict[str, np.ndarray]:
    return simplify_values(CASE, arrays, lambda case: bool(fails(case.arrays)), seconds).arrays  # type: ignore[operator]


def test_only_the_entry_that_matters_is_left() -> None:
    x = np.random.default_rng(0).standard_normal((4, 5)).astype(np.float32)

    shrunk = _shrink({"x": x}, lambda a: a["x"][2, 3] != 0)["x"]

    assert np.count_nonzero(shrunk) == 1
    assert shrunk[2, 3] == 1.0


def test_a_threshold_keeps_few_digits() -> None:
    x = np.full((2, 2), 7.123456, dtype=np.float32)

    assert _shrink({"x": x}, lambda a: (a["x"] > 6.5).all())["x"].tolist() == [
        [7.0, 7.0],
        [7.0, 7.0],
    ]


def test_masks_keep_only_the_blocked_entries_that_matter() -> None:
    mask = np.zeros((3, 3), dtype=bool)

    assert np.argwhere(
        ~_shrink({"mask": mask}, lambda a: not a["mask"][1, 1])["mask"]
    ).tolist() == [[1, 1]]


def test_special_values_are_kept() -> None:
    x = np.array([np.nan, 3.7], dtype=np.float32)

    shrunk = _shrink({"x": x}, lambda a: np.isnan(a["x"]).any())["x"]

    assert np.isnan(shrunk[0])
    assert shrunk[1] == 0.0


def test_an_unstable_failure_returns_the_case_as_it_was() -> None:
    assert simplify_values(CASE, {"x": np.ones(2)}, lambda case: False, 1.0) is CASE


def test_it_stops_when_the_time_is_over() -> None:
    x = np.random.default_rng(0).standard_normal(64)

    def slow(arrays: dict[str, np.ndarray]) -> bool:
        time.sleep(0.02)
        return bool(arrays["x"][0] != 0)

    began = time.monotonic()
    _shrink({"x": x}, slow, seconds=0.2)
    assert time.monotonic() - began < 1.0


def test_cost_orders_zero_one_integer_fraction_and_digits() -> None:
    assert [cost(np.array([v])) for v in (0.0, 1.0, 3.0, 0.5, 0.1)] == [0, 1, 2, 3, 4]
