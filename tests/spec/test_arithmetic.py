"""Formats and the growth of rounding errors."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.spec.arithmetic import FORMATS, Arithmetic, gamma

HOSTS: dict[str, type[np.floating[Any]]] = {
    "float16": np.float16,
    "float32": np.float32,
    "float64": np.float64,
}


@pytest.mark.parametrize("name", HOSTS)
def test_format_equals_numpys(name: str) -> None:
    info, fmt = np.finfo(HOSTS[name]), FORMATS[name]
    assert fmt.unit == float(info.eps) / 2
    assert fmt.tiny == float(info.tiny)
    assert fmt.max == float(info.max)
    assert fmt.subnormal == float(info.smallest_subnormal)


def test_bfloat16_equals_that_of_ml_dtypes() -> None:
    info, fmt = ml_dtypes.finfo(ml_dtypes.bfloat16), FORMATS["bfloat16"]
    assert fmt.unit == float(info.eps) / 2
    assert fmt.tiny == float(info.tiny)
    assert fmt.max == float(info.max)
    assert fmt.subnormal == float(info.smallest_subnormal)


@pytest.mark.parametrize("name", FORMATS)
def test_unit_roundoff_is_the_greatest_relative_error_of_rounding(name: str) -> None:
    fmt = FORMATS[name]
    # The point midway between 1 and its neighbour is the worst; it rounds to even, down to 1.
    assert fmt.unit == 2.0**-fmt.precision
    if name in HOSTS:
        assert HOSTS[name](1.0 + fmt.unit) == 1.0


@given(st.integers(0, 40), st.sampled_from([2.0**-8, 2.0**-11, 2.0**-24]))
def test_gamma_bounds_the_growth_exactly(n: int, u: float) -> None:
    growth = (1 + Fraction(u)) ** n - 1
    # gamma itself is rounded twice.
    assert growth <= Fraction(float(gamma(n, u))) * (1 + Fraction(2) ** -51)


@given(st.integers(1, 40))
def test_gamma_is_not_far_above_n_times_u(n: int) -> None:
    assert float(gamma(n, 2.0**-24)) <= 1.001 * n * 2.0**-24


def test_gamma_is_infinite_where_nothing_is_promised() -> None:
    assert np.isinf(gamma(256, 2.0**-8))
    assert np.isinf(gamma(np.array([1, 2**24]), 2.0**-24)).tolist() == [False, True]


def test_intermediate_costs_nothing_when_it_is_the_accumulator() -> None:
    assert Arithmetic("bfloat16").u_mid == 0.0
    assert Arithmetic("bfloat16", intermediate="bfloat16").u_mid == 2.0**-8


def test_flushing_costs_the_smallest_normal_number() -> None:
    assert Arithmetic(flush=True).tau_acc == FORMATS["float32"].tiny
    assert Arithmetic().tau_acc == FORMATS["float32"].subnormal


@pytest.mark.parametrize(("block", "keys", "blocks"), [(0, 9, 1), (4, 0, 1), (4, 8, 2), (4, 9, 3)])
def test_blocks_count_the_last_ragged_one(block: int, keys: int, blocks: int) -> None:
    assert Arithmetic(block=block).blocks(keys) == blocks


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"storage": "float8"}, r"storage='float8' is not a known format; valid: \['bfloat16'"),
        ({"exp_ulps": -1.0}, r"exp_ulps=-1.0 and block=0 must not be negative"),
        ({"block": -2}, r"block=-2 must not be negative"),
    ],
)
def test_bad_values_are_named(keywords: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Arithmetic(**keywords)  # type: ignore[arg-type]
