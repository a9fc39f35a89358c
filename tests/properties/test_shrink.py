"""The value shrinker ends at simple arrays that still fail."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from assay.properties import shrink
from assay.properties.case import Case, Fit, as_it_is
from assay.properties.shrink import cost, simplify_values

CASE = Case("attention", "float32", "default", 0, {"B": 1})


def _shrink(
    arrays: dict[str, np.ndarray],
    fails: object,
    seconds: float = 5.0,
    fits: dict[str, Fit] | None = None,
) -> dict[str, np.ndarray]:
    fits = dict.fromkeys(arrays, as_it_is) if fits is None else fits
    found = simplify_values(CASE, arrays, fits, lambda case: bool(fails(case.arrays)), seconds)  # type: ignore[operator]
    return found.arrays


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


def test_only_legal_values_are_tried_and_only_where_others_are_legal() -> None:
    x, drawn = np.array([-0.7, 0.3, 2.6]), np.array([0.1, 0.2, 0.3])
    tried = []

    def fails(arrays: dict[str, np.ndarray]) -> bool:
        tried.append(arrays)
        return True

    shrunk = _shrink({"x": x, "y": drawn}, fails, fits={"x": lambda a: np.where(a == 0, 4, a)})

    assert all(arrays.keys() == {"x"} and np.all(arrays["x"] != 0) for arrays in tried)
    assert set(shrunk["x"]) == {1.0}


def test_signs_are_kept_where_they_matter() -> None:
    x = np.array([-0.71, 0.32, -2.63])

    assert _shrink({"x": x}, lambda a: np.sign(a["x"]).tolist() == [-1, 1, -1])["x"].tolist() == [
        -1.0,
        1.0,
        -1.0,
    ]


def test_special_values_are_kept() -> None:
    x = np.array([np.nan, 3.7], dtype=np.float32)

    shrunk = _shrink({"x": x}, lambda a: np.isnan(a["x"]).any())["x"]

    assert np.isnan(shrunk[0])
    assert shrunk[1] == 0.0


def test_an_unstable_failure_returns_the_case_as_it_was() -> None:
    assert (
        simplify_values(CASE, {"x": np.ones(2)}, {"x": as_it_is}, lambda case: False, 1.0) is CASE
    )


def test_it_stops_when_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).standard_normal(64)
    clock = [0.0]
    monkeypatch.setattr(shrink, "time", SimpleNamespace(monotonic=lambda: clock[0]))

    def slow(arrays: dict[str, np.ndarray]) -> bool:
        clock[0] += 0.02
        return bool(arrays["x"][0] != 0)

    _shrink({"x": x}, slow, seconds=0.2)
    assert 0.2 <= clock[0] <= 0.24
    _shrink({"x": x}, slow, seconds=100.0)
    assert clock[0] > 1.0


def test_cost_orders_zero_one_integer_fraction_and_digits() -> None:
    assert [cost(np.array([v])) for v in (0.0, 1.0, 3.0, 0.5, 0.1)] == [0, 1, 2, 3, 4]
