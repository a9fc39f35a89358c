"""The bounds of normalisation hold for each form in use, and not for a squared mean taken away."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from assay.spec.arithmetic import Arithmetic
from assay.spec.inexact import Inexact
from assay.spec.layers.norm_bounds import (
    mean_error,
    normalize_backward_bound,
    normalize_bound,
)
from assay.spec.layers.slices import by_row, normalize, normalize_backward
from tests.spec.rounded import ORDERS

EPS = 1e-5
KINDS = {"float32": np.float32, "float16": np.float16}
Moments = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def welford(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance by single updates."""
    mean, squares = x[..., 0] * 0, x[..., 0] * 0
    for j in range(x.shape[-1]):
        step = x[..., j] - mean
        mean = mean + step / x.dtype.type(j + 1)
        squares = squares + step * (x[..., j] - mean)
    return mean[..., None], (squares / x.dtype.type(x.shape[-1]))[..., None]


def merged(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance by merging halves."""
    mean, squares = _halves(x)
    return mean[..., None], (squares / x.dtype.type(x.shape[-1]))[..., None]


def _halves(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    n = x.shape[-1]
    if n == 1:
        return x[..., 0], x[..., 0] * 0
    (a, p), (b, q) = _halves(x[..., : n // 2]), _halves(x[..., n // 2 :])
    share = x.dtype.type((n - n // 2) / n)
    step = b - a
    return a + step * share, p + q + step * step * share * x.dtype.type(n // 2)


def two_passes(order: str) -> Moments:
    """Mean, then mean squared deviation, with sums in the order of that name."""

    def moments(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        n = x.dtype.type(x.shape[-1])
        mean = (ORDERS[order](x) / n)[..., None]
        return mean, (ORDERS[order]((x - mean) * (x - mean)) / n)[..., None]

    return moments


def squared_mean(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean of the squares less the squared mean: not sound."""
    mean = x.mean(axis=-1, keepdims=True)
    return mean, np.maximum((x * x).mean(axis=-1, keepdims=True) - mean * mean, 0)


MOMENTS: dict[str, Moments] = {
    "welford": welford,
    "merged": merged,
    **{f"two passes, {name}": two_passes(name) for name in ORDERS},
}


def evaluate(
    x: np.ndarray, w: np.ndarray, b: np.ndarray, g: np.ndarray, moments: Moments, folded: bool
) -> dict[str, np.ndarray]:
    """Output and gradients in the format of x, as kernels have them."""
    kind, n = x.dtype.type, x.dtype.type(x.shape[-1])
    mean, variance = moments(x)
    rate = kind(1) / np.sqrt(variance + kind(EPS))
    h = g * w
    if not folded:
        z = (x - mean) * rate
        t = (h * z).sum(axis=-1, keepdims=True) / n
        dx = (h - h.sum(axis=-1, keepdims=True) / n - z * t) * rate
        return {"out": z * w + b, "x": dx, "weight": (g * z).sum(axis=0)}
    a = rate * w
    sums = (h * x).sum(axis=-1, keepdims=True), h.sum(axis=-1, keepdims=True)
    slope = (sums[1] * mean - sums[0]) * rate * rate * rate / n
    shift = -slope * mean - sums[1] * rate / n
    dw = (g * (x * rate + -mean * rate)).sum(axis=0)
    return {"out": x * a + (b - mean * a), "x": a * g + slope * x + shift, "weight": dw}


def scores(
    x: np.ndarray, moments: Moments, folded: bool, dtype: str, seed: int = 0
) -> dict[str, float]:
    """Largest error / bound of the output and of each gradient."""
    kind, rng = KINDS[dtype], np.random.default_rng(seed)
    drawn = (
        x,
        rng.normal(size=x.shape[-1]),
        rng.normal(size=x.shape[-1]),
        rng.normal(size=x.shape),
    )
    x, w, b, g = (np.asarray(v, dtype=kind) for v in drawn)
    with np.errstate(all="ignore"):
        got = evaluate(x, w, b, g, moments, folded)
    arithmetic, rows = Arithmetic(dtype, dtype, dtype), by_row(x)
    x, w, b, g = (v.astype(np.float64) for v in (x, w, b, g))
    found = normalize_backward_bound(x, w, g, EPS, rows, arithmetic)._asdict()
    bound = {"out": normalize_bound(x, w, b, EPS, rows, arithmetic), **found}
    x, w, b, g = (v.astype(np.longdouble) for v in (x, w, b, g))
    exact = normalize_backward(x, w, g, EPS, rows)._asdict()
    want = {"out": normalize(x, w, b, EPS, rows), **exact}
    return {n: float(np.max(np.abs(got[n] - want[n]) / bound[n])) for n in got}


def drawn(n: int, offset: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(8, n))
    x[0, 0], x[1, -1] = 40.0, 40.0
    return x + offset


@pytest.mark.parametrize("form", MOMENTS)
@pytest.mark.parametrize("folded", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_every_form_in_use_stays_within_the_bounds(form: str, folded: bool, dtype: str) -> None:
    for n in (2, 3, 7, 16, 33):
        for offset in (0.0, 5.0, -300.0 if dtype == "float32" else -3.0):
            found = scores(drawn(n, offset, n), MOMENTS[form], folded, dtype)
            assert max(found.values()) <= 1, (n, offset, found)


def test_a_squared_mean_taken_away_is_noticed_where_the_mean_is_large() -> None:
    x = drawn(16, 1e4, 0)
    assert scores(x, squared_mean, False, "float32")["out"] > 1
    assert scores(x, welford, False, "float32")["out"] <= 1


@pytest.mark.parametrize("form", MOMENTS)
@pytest.mark.parametrize("value", [1.1, 1e3 + 0.1, 1e6 + 0.3, 3e7])
def test_constant_rows_stay_within_the_bounds_unless_the_map_is_folded(
    form: str, value: float
) -> None:
    x = np.full((2, 13), value)
    assert max(scores(x, MOMENTS[form], False, "float32").values()) <= 1


def test_a_folded_map_is_noticed_on_large_constant_rows() -> None:
    assert scores(np.full((2, 13), 1e7), two_passes("forward"), True, "float32")["out"] > 1


def test_the_bounds_of_single_precision_are_below_an_error_of_a_ten_thousandth() -> None:
    x = np.random.default_rng(0).normal(size=(4, 32))
    bound = normalize_bound(x, None, None, EPS, by_row(x), Arithmetic())
    assert bound.max() < 1e-4
    assert np.median(bound) < 3e-5


def test_the_error_of_a_mean_is_0_for_one_entry_and_unknown_where_the_sum_overflows() -> None:
    assert mean_error(np.array([[3.0]]), Arithmetic()).tolist() == [[0.0]]
    huge = mean_error(np.full((1, 4), 3e4), Arithmetic("float16", "float16", "float16"))
    assert np.isinf(huge).all()


def test_an_eps_below_the_normal_numbers_of_half_precision_is_rounded_as_they_are() -> None:
    half = Inexact(np.ones(1), 0.0, Arithmetic("float16", "float16", "float16"))
    gap = abs(float(np.float16(EPS)) - EPS)
    assert 2.0**-11 * EPS < gap <= half.like(EPS).error
    assert half.like(0.5).error == half.like(0.0).error == 0
