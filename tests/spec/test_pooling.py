"""Mean and maximum over windows, and over whole grids."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.spec.ops import op
from assay.spec.spatial.pooling import (
    global_mean,
    global_mean_backward,
    max_pool,
    max_pool_backward,
    mean_pool,
    mean_pool_backward,
)
from tests.spec.agreement import (
    arithmetic_of,
    assert_agrees_with_torch,
    assert_encloses,
    assert_notices,
    assert_rounded_within_bounds,
)

Case = tuple[dict[str, np.ndarray], dict[str, Any]]


@st.composite
def poolings(draw: st.DrawFn, most: int = 7) -> Case:
    """A grid of 1 to 3 axes and windows that fit; values are distinct."""
    axes = draw(st.integers(1, 3))
    window = draw(st.tuples(*[st.integers(1, 4)] * axes))
    padding = tuple(draw(st.integers(0, k // 2)) for k in window)
    # torch's avg_pool3d refuses windows that fit only with padding; avg_pool1d and 2d take them.
    sizes = [
        draw(st.integers(k if axes == 3 else max(1, k - 2 * p), max(k, most - axes)))
        for k, p in zip(window, padding, strict=True)
    ]
    stride = draw(st.none() | st.tuples(*[st.integers(1, 5)] * axes))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = (draw(st.sampled_from([1, 2])), draw(st.integers(1, 3)), *sizes)
    kind = draw(st.sampled_from(["mean", "max"]))
    attributes = {"kind": kind, "window": window, "stride": stride, "padding": padding}
    return {"x": rng.normal(size=shape)}, attributes


def torch_pooling(given: dict[str, Any], attributes: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    axes, rest = given["x"].ndim - 2, dict(attributes)
    name = {"mean": "avg_pool", "max": "max_pool"}[rest.pop("kind")]
    function = getattr(torch.nn.functional, f"{name}{axes}d")
    return {"out": function(given["x"], rest.pop("window"), **rest)}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@given(poolings())
@settings(max_examples=100)
def test_pooling_and_its_gradient_agree_with_torch(dtype: str, case: Case) -> None:
    assert_agrees_with_torch("pooling", *case, torch_pooling, dtype)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@given(poolings())
@settings(max_examples=15)
def test_rounded_pooling_stays_within_its_bounds(dtype: str, case: Case) -> None:
    assert_rounded_within_bounds("pooling", *case, dtype)


@given(poolings(most=3))
@settings(max_examples=15)
def test_balls_enclose_pooling(case: Case) -> None:
    assert_encloses("pooling", *case)


def test_maximum_has_no_rounding_error_and_its_gradient_only_that_of_sums() -> None:
    x = np.random.default_rng(0).normal(size=(1, 2, 4, 6)).astype(np.float32)
    attributes = {"kind": "max", "window": 2}
    entry = op("pooling")
    assert not entry.bound({"x": x}, attributes, arithmetic_of("float32"))["out"].any()
    width = entry.backward_bound(
        {"x": x}, {"out": np.ones((1, 2, 2, 3))}, attributes, arithmetic_of("float32")
    )
    slope = entry.backward({"x": x}, {"out": np.ones((1, 2, 2, 3))}, attributes)["x"]
    # Windows side by side: one share each, nothing is summed but zeros.
    assert slope.sum() == 12
    assert set(slope.ravel().tolist()) == {0.0, 1.0}
    assert (width["x"][slope == 0] == 0).all()


def test_pooling_of_fractions_is_exact() -> None:
    x = np.array([[[Fraction(1, 3), Fraction(2, 3), Fraction(-1, 2), Fraction(5)]]], dtype=object)
    mean = mean_pool(x, window=3, stride=1, padding=1)
    assert mean.ravel().tolist() == [
        Fraction(1, 3), Fraction(1, 6), Fraction(31, 18), Fraction(3, 2)
    ]  # fmt: skip
    top = max_pool(x, window=3, stride=1, padding=1)
    assert top.ravel().tolist() == [Fraction(2, 3), Fraction(2, 3), 5, 5]
    slope = max_pool_backward(x, top, window=3, stride=1, padding=1)
    assert slope.ravel().tolist() == [0, Fraction(4, 3), 0, 10]
    share = mean_pool_backward(x, top, window=3, stride=1, padding=1)
    assert share.sum() == (3 * top.sum() - top[0, 0, 0] - top[0, 0, 3]) / 3


def test_an_error_of_one_in_ten_thousand_is_noticed() -> None:
    x = np.random.default_rng(0).normal(size=(1, 2, 4, 6)).astype(np.float32)
    wrong = x.copy()
    wrong[0, 1, 2, 3] *= np.float32(1 + 1e-4)
    for kind in ("mean", "max"):
        top = wrong if kind == "mean" else np.maximum(wrong, x.max() * np.float32(1 + 1e-6))
        assert_notices("pooling", {"x": x}, {"kind": kind, "window": None}, {"x": top})


def test_tied_maxima_give_the_gradient_to_the_first() -> None:
    x = np.array([[[[1.0, 2.0], [2.0, 2.0]]]])
    slope = max_pool_backward(x, np.array([[[[5.0]]]]), window=2)
    assert slope.ravel().tolist() == [0.0, 5.0, 0.0, 0.0]


def test_padding_is_never_the_maximum_and_counts_in_the_mean() -> None:
    x = np.full((1, 1, 2), -4.0)
    assert max_pool(x, window=2, stride=1, padding=1).ravel().tolist() == [-4.0] * 3
    assert mean_pool(x, window=2, stride=1, padding=1).ravel().tolist() == [-2.0, -4.0, -2.0]


def test_nan_in_a_window_reaches_that_output_only() -> None:
    x = np.array([[[1.0, np.nan, 3.0, 4.0]]])
    for pool in (mean_pool, max_pool):
        out = pool(x, window=2).ravel()
        assert np.isnan(out[0])
        assert np.isfinite(out[1])


@given(st.integers(1, 3), st.integers(1, 5))
def test_global_mean_is_the_mean_over_the_grid(axes: int, size: int) -> None:
    x = np.random.default_rng(axes).normal(size=(2, 3, *range(size, size + axes)))
    leaf = torch.tensor(x, requires_grad=True)
    want = leaf.mean(dim=tuple(range(2, 2 + axes)))
    got = global_mean(x)
    assert got.shape == (2, 3)
    assert np.abs(got - want.detach().numpy()).max() <= 1e-14
    (grad,) = torch.autograd.grad(want.sum(), leaf)
    assert np.abs(global_mean_backward(x, np.ones((2, 3))) - grad.numpy()).max() <= 1e-14
    assert (mean_pool(x).reshape(2, 3) == got).all()


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"window": 2, "padding": 2}, "padding=2 must be at most half of window=2"),
        ({"window": 0}, "kernel=0"),
        ({"window": (2, 2)}, r"kernel=\(2, 2\)"),
        ({"window": 2, "stride": 0}, "stride=0"),
    ],
)
def test_windows_that_are_none_are_refused(rules: dict[str, Any], message: str) -> None:
    for pool in (mean_pool, max_pool):
        with pytest.raises(ValueError, match=message):
            pool(np.ones((1, 1, 4)), **rules)


def test_an_unknown_kind_names_the_valid_ones() -> None:
    with pytest.raises(ValueError, match="kind='median' is not a pooling; valid: max, mean"):
        op("pooling").forward({"x": np.ones((1, 1, 4))}, {"kind": "median"})


def test_the_mean_over_an_empty_grid_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\(1, 1, 0\): there is no mean over an empty grid"):
        global_mean(np.ones((1, 1, 0)))
