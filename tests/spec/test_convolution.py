"""Convolution over one, two and three axes, its gradients and its bounds."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.spec.arithmetic import Arithmetic
from assay.spec.ops import op
from assay.spec.spatial.convolution import convolution, convolution_backward
from assay.spec.spatial.windows import extent, same_padding
from tests.spec.agreement import (
    assert_agrees_with_torch,
    assert_encloses,
    assert_notices,
    assert_rounded_within_bounds,
)

Case = tuple[dict[str, np.ndarray], dict[str, Any]]


@st.composite
def convolutions(draw: st.DrawFn, most: int = 6) -> Case:
    """Inputs and attributes over 1 to 3 axes; the kernel fits the padded input."""
    axes = draw(st.integers(1, 3))
    groups, inside, outside = (draw(st.integers(1, 3)) for _ in range(3))
    ranges = ((1, 3), (1, 4), (0, 2), (1, 2))
    kernel, stride, padding, dilation = (
        draw(st.tuples(*[st.integers(*ends)] * axes)) for ends in ranges
    )
    sizes = []
    for k, p, d in zip(kernel, padding, dilation, strict=True):
        least = max(1, d * (k - 1) + 1 - 2 * p)
        sizes.append(draw(st.integers(least, max(least, most // axes + 3))))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    batch = draw(st.sampled_from([0, 1, 2, 3]))
    inputs = {
        "x": rng.normal(size=(batch, groups * inside, *sizes)),
        "weight": rng.normal(size=(groups * outside, inside, *kernel)),
    }
    if draw(st.booleans()):
        inputs["bias"] = rng.normal(size=groups * outside) * draw(st.sampled_from([1.0, 100.0]))
    attributes = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    return inputs, attributes


def torch_convolution(
    given: dict[str, Any], attributes: Mapping[str, Any]
) -> dict[str, torch.Tensor]:
    axes = given["x"].ndim - 2
    function = (torch.conv1d, torch.conv2d, torch.conv3d)[axes - 1]
    return {"out": function(given["x"], given["weight"], given.get("bias"), **attributes)}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@given(convolutions())
@settings(max_examples=100)
def test_convolution_and_its_gradients_agree_with_torch(dtype: str, case: Case) -> None:
    assert_agrees_with_torch("convolution", *case, torch_convolution, dtype)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@given(convolutions())
@settings(max_examples=15)
def test_rounded_convolution_stays_within_its_bounds(dtype: str, case: Case) -> None:
    assert_rounded_within_bounds("convolution", *case, dtype)


@given(convolutions(most=2))
@settings(max_examples=10)
def test_balls_enclose_convolution(case: Case) -> None:
    assert_encloses("convolution", *case)


def by_definition(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray, rules: Mapping[str, Any]
) -> np.ndarray:
    """The formula, one product at a time."""
    s, p, d, groups = (rules[n] for n in ("stride", "padding", "dilation", "groups"))
    sizes, kernel = x.shape[2:], weight.shape[2:]
    grid = [extent(*axis) for axis in zip(sizes, kernel, s, p, d, strict=True)]
    out = np.zeros((len(x), len(weight), *map(int, grid)), dtype=object)
    for b, o, *i in np.ndindex(*out.shape):
        out[(b, o, *i)] = bias[o]
        first = o // (len(weight) // groups) * weight.shape[1]
        for c, *j in np.ndindex(*weight.shape[1:]):
            at = [s[a] * i[a] + d[a] * j[a] - p[a] for a in range(len(kernel))]
            if all(0 <= at[a] < sizes[a] for a in range(len(kernel))):
                out[(b, o, *i)] += weight[(o, c, *j)] * x[(b, first + c, *at)]
    return out


@given(convolutions(most=2))
@settings(max_examples=50)
def test_convolution_of_fractions_is_exactly_its_formula(case: Case) -> None:
    inputs, rules = case
    fraction: Any = np.frompyfunc(lambda x: Fraction(round(8 * x), 3), 1, 1)
    x, weight = fraction(inputs["x"]), fraction(inputs["weight"])
    bias = fraction(np.arange(len(weight), dtype=float))
    got = convolution(x, weight, bias, **rules)
    want = by_definition(x, weight, bias, rules)
    assert got.shape == want.shape
    assert (got == want).all()


@given(convolutions(most=2))
@settings(max_examples=50)
def test_gradients_of_fractions_are_exactly_the_adjoints(case: Case) -> None:
    inputs, rules = case
    fraction: Any = np.frompyfunc(lambda x: Fraction(round(8 * x), 3), 1, 1)
    x, weight = fraction(inputs["x"]), fraction(inputs["weight"])
    y = convolution(x, weight, **rules)
    g = np.asarray(fraction(np.random.default_rng(1).normal(size=y.shape)), dtype=object)
    grads = convolution_backward(x, weight, g, **rules)
    # The convolution is linear in x and in weight: <y, g> = <x, dx> = <weight, dweight>.
    assert (y * g).sum() == (x * grads.x).sum() == (weight * grads.weight).sum()
    assert (grads.bias == g.sum(axis=(0, *range(2, g.ndim)))).all()


def test_an_error_of_one_in_ten_thousand_in_one_weight_is_noticed() -> None:
    rng = np.random.default_rng(3)
    inputs = {
        "x": rng.normal(size=(2, 3, 8, 7)).astype(np.float32),
        "weight": rng.normal(size=(4, 3, 3, 3)).astype(np.float32),
        "bias": rng.normal(size=4).astype(np.float32),
    }
    wrong = inputs["weight"].copy()
    wrong[1, 2, 0, 1] *= np.float32(1 + 1e-4)
    assert_notices("convolution", inputs, {"padding": 1}, {**inputs, "weight": wrong})


def test_a_large_bias_may_be_the_start_of_the_sum() -> None:
    # Each product is less than half a unit in the last place of the bias: all of them are lost.
    x, weight = np.ones((1, 1, 64), np.float32), np.full((1, 1, 64), 4e-4, np.float32)
    bias = np.array([1e4], dtype=np.float32)
    total = bias[0]
    for product in weight.ravel():
        total = np.float32(total + product)
    assert total == bias[0]
    inputs = {"x": x, "weight": weight, "bias": bias}
    bound = op("convolution").bound(inputs, {}, Arithmetic())["out"][0, 0, 0]
    assert 64 * 4e-4 < bound < 2 * 64 * 4e-4


def test_extent_counts_the_windows_that_fit() -> None:
    ranges = (range(7), range(1, 5), range(1, 4), range(3), range(1, 3))
    for n, k, s, p, d in itertools.product(*ranges):
        fits = [i for i in range(40) if s * i + d * (k - 1) < n + 2 * p]
        assert extent(n, k, s, p, d) == len(fits), (n, k, s, p, d)


@pytest.mark.parametrize("n", [0, 1, 2, 5])
@pytest.mark.parametrize("radius", [0, 1, 3])
def test_same_padding_keeps_the_extent(n: int, radius: int) -> None:
    kernel, padding = same_padding(radius)
    assert extent(n, kernel, 1, padding) == n


def test_a_kernel_that_does_not_fit_gives_an_empty_axis() -> None:
    x, weight = np.ones((2, 1, 2, 5)), np.ones((3, 1, 4, 1))
    out = convolution(x, weight)
    assert out.shape == (2, 3, 0, 5)
    grads = convolution_backward(x, weight, out)
    assert not grads.x.any()
    assert not grads.weight.any()
    assert grads.bias.tolist() == [0.0] * 3


def test_inputs_beyond_the_last_window_are_not_read() -> None:
    x, weight = np.ones((1, 1, 5)), np.ones((1, 1, 2))
    spoilt = x.copy()
    spoilt[..., 4] = np.nan
    assert (convolution(spoilt, weight, stride=2) == convolution(x, weight, stride=2)).all()
    assert convolution_backward(x, weight, np.ones((1, 1, 2)), stride=2).x[0, 0, 4] == 0.0


def test_the_format_is_kept() -> None:
    for kind in (np.float32, np.float64, np.longdouble):
        x, weight, bias = np.ones((1, 2, 4), kind), np.ones((2, 1, 2), kind), np.ones(2, kind)
        out = convolution(x, weight, bias, groups=2, padding=1)
        grads = convolution_backward(x, weight, out, groups=2, padding=1)
        assert {a.dtype for a in (out, *grads)} == {np.dtype(kind)}


@pytest.mark.parametrize(
    ("x", "weight", "rules", "message"),
    [
        ((1, 1), (1, 1), {}, "at least one spatial axis"),
        ((1, 1, 4), (1, 1, 2, 2), {}, "as many axes as x"),
        ((1, 3, 4), (1, 2, 2), {}, "x has 3 channels and must have 2"),
        ((1, 3, 4), (2, 1, 2), {"groups": 2}, r"groups=2 must be .* \(3\)"),
        ((1, 2, 4), (1, 2, 2), {"groups": 0}, "groups=0"),
        ((1, 2, 4), (1, 2, 0), {}, r"kernel=\(0,\)"),
        ((1, 2, 4), (1, 2, 2), {"stride": 0}, "stride=0"),
        ((1, 2, 4), (1, 2, 2), {"stride": (1, 2)}, r"stride=\(1, 2\)"),
        ((1, 2, 4), (1, 2, 2), {"padding": -1}, "padding=-1"),
        ((1, 2, 4), (1, 2, 2), {"dilation": 0.5}, "dilation=0.5"),
    ],
)
def test_what_does_not_fit_together_is_refused(
    x: tuple[int, ...], weight: tuple[int, ...], rules: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        convolution(np.ones(x), np.ones(weight), **rules)


def test_a_bias_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match=r"bias has shape \(3,\); it must be \(2,\)"):
        convolution(np.ones((1, 1, 4)), np.ones((2, 1, 2)), np.ones(3))
