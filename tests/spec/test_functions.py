"""Smooth functions on floats, on scalars of an interpretation, and on plain numbers among them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import flint
import ml_dtypes
import numpy as np
import pytest

from assay.proofs.scalars.balls import precision
from assay.spec.error_function import error_function
from assay.spec.functions import absolute, erf, log, log1p, sqrt, tanh

FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[float], float]]] = {
    "log": (log, math.log),
    "log1p": (log1p, math.log1p),
    "sqrt": (sqrt, math.sqrt),
    "tanh": (tanh, math.tanh),
    "erf": (erf, math.erf),
    "abs": (absolute, abs),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_floats_balls_and_plain_numbers_agree(name: str) -> None:
    function, plain = FUNCTIONS[name]
    points = [0.25, 1.0, 3.0]
    want = [plain(x) for x in points]
    assert np.allclose(function(np.array(points)), want, rtol=1e-15, atol=0)
    assert np.allclose(function(np.array(points, dtype=object)).astype(float), want, rtol=1e-15)
    with precision(100):
        balls = np.empty(3, dtype=object)
        balls[:] = [flint.arb(x) for x in points]
        for ball, value in zip(function(balls), want, strict=True):
            assert abs(ball - value) < 1e-15


@pytest.mark.parametrize("kind", [np.float64, np.longdouble])
def test_the_error_function_is_good_to_six_units_everywhere(kind: Any) -> None:
    x = np.concatenate([np.linspace(-7, 7, 801), [1e-300, -1e-10, 30.0]]).astype(kind)
    got = error_function(x)
    assert got.dtype == kind
    with precision(160):
        for point, value in zip(x, got, strict=True):
            high = float(point)
            true = (flint.arb(high) + flint.arb(float(point - kind(high)))).erf()
            found = flint.arb(float(value)) + flint.arb(float(value - kind(float(value))))
            assert abs(found - true) <= 6 * float(np.finfo(kind).eps) * abs(true)


def test_the_error_function_is_odd_and_keeps_special_values() -> None:
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan])
    assert np.array_equal(error_function(x), [0.0, -0.0, 1.0, -1.0, np.nan], equal_nan=True)
    assert np.array_equal(error_function(-np.arange(5.0)), -error_function(np.arange(5.0)))


@pytest.mark.parametrize("kind", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_narrow_formats_get_the_rounded_value(kind: Any) -> None:
    x = np.linspace(-3, 3, 41).astype(kind)
    want = np.array([math.erf(float(v)) for v in x]).astype(kind)
    assert error_function(x).dtype == np.dtype(kind)
    assert np.array_equal(error_function(x), want)


def test_no_number_gives_no_number_and_an_empty_array_an_empty_one() -> None:
    assert np.isnan(error_function(np.array([np.nan, 1.0]))).tolist() == [True, False]
    assert error_function(np.zeros((0, 3))).shape == (0, 3)
