"""Convolutions that transform their operands stay within bounds by norms, and need them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.spec.arithmetic import Arithmetic
from assay.spec.ops import op
from assay.spec.spatial.normwise import A, B, G, growth
from assay.zoo.sound_convolutions import FastConvolution, WinogradConvolution

Case = tuple[dict[str, np.ndarray], dict[str, Any]]
KERNELS = (FastConvolution, WinogradConvolution)
BY_NORMS = Arithmetic(normwise=True)


@st.composite
def convolutions(draw: st.DrawFn) -> Case:
    """Dense windows of three taps over 1 or 2 axes, magnitudes far apart."""
    axes, groups = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    inside, out = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    sizes = draw(st.tuples(*[st.integers(1, 6)] * axes))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    spread = draw(st.sampled_from([0.0, 2.0, 6.0]))

    def numbers(*shape: int) -> np.ndarray:
        magnitudes = np.exp(spread * rng.normal(size=shape))
        return (rng.normal(size=shape) * magnitudes).astype(np.float32)

    inputs = {
        "x": numbers(2, groups * inside, *sizes),
        "weight": numbers(groups * out, inside, *(3,) * axes),
        "bias": numbers(groups * out),
    }
    return inputs, {"padding": 1, "groups": groups}


def exact(inputs: dict[str, np.ndarray], attributes: dict[str, Any]) -> np.ndarray:
    """The output as fractions."""
    fractions = {n: np.vectorize(Fraction, otypes=[object])(a) for n, a in inputs.items()}
    return op("convolution").forward(fractions, attributes)["out"]


def errors(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    wide = np.vectorize(Fraction, otypes=[object])(got.astype(np.float64))
    return np.abs(wide - want).astype(np.float64)


def bound(case: Case, arithmetic: Arithmetic) -> np.ndarray:
    wide = {n: a.astype(np.float64) for n, a in case[0].items()}
    return op("convolution").bound(wide, case[1], arithmetic)["out"]


def run(kernel: type, case: Case) -> np.ndarray:
    inputs, attributes = case
    given = dict(inputs)
    return np.asarray(
        kernel().convolution(given.pop("x"), given.pop("weight"), **given, **attributes)
    )


@pytest.mark.parametrize("kernel", KERNELS)
@given(convolutions())
@settings(max_examples=40)
def test_transformed_convolutions_stay_within_bounds_by_norms(kernel: type, case: Case) -> None:
    found = errors(run(kernel, case), exact(*case))
    assert np.all(found <= bound(case, BY_NORMS))


@pytest.mark.parametrize("kernel", KERNELS)
def test_small_elements_beside_large_ones_break_the_bound_of_direct_sums(kernel: type) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1, 1, 16)).astype(np.float32)
    weight = rng.normal(size=(1, 1, 3)).astype(np.float32)
    # Large numbers under a small tap: a direct sum never multiplies them by the other taps.
    x[..., 7:9] *= 1e6
    weight[..., 2] *= 1e-6
    inputs = {"x": x, "weight": weight}
    case = inputs, {"padding": 1}
    found = errors(run(kernel, case), exact(*case))
    assert np.any(found > bound(case, Arithmetic()))
    assert np.all(found <= bound(case, BY_NORMS))


@pytest.mark.parametrize("storage", ["bfloat16", "float16"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_bounds_by_norms_cover_a_stored_result(kernel: type, storage: str) -> None:
    rng = np.random.default_rng(1)
    kind = np.dtype(getattr(ml_dtypes, storage, storage))
    inputs = {
        "x": rng.normal(size=(2, 3, 6, 5)).astype(kind),
        "weight": rng.normal(size=(2, 3, 3, 3)).astype(kind),
    }
    case = inputs, {"padding": 1}
    wide = {n: a.astype(np.float64) for n, a in inputs.items()}
    found = errors(run(kernel, case), exact(wide, case[1]))
    assert np.all(found <= bound(case, Arithmetic(storage, normwise=True)))


@pytest.mark.parametrize("axes", [1, 2])
def test_a_tile_that_is_one_percent_off_exceeds_the_bound(axes: int) -> None:
    rng = np.random.default_rng(2)
    shape = (16,) * axes
    x = rng.normal(size=(1, 3, *shape)).astype(np.float32)
    weight = rng.normal(size=(2, 3, *(3,) * axes)).astype(np.float32)
    case = {"x": x, "weight": weight}, {"padding": 1}
    want = op("convolution").forward({n: a.astype(float) for n, a in case[0].items()}, case[1])
    wrong = want["out"].copy()
    place: Any = (..., *(slice(0, 2),) * axes)
    wrong[place] *= 1.01
    assert np.any(np.abs(wrong - want["out"]) > bound(case, BY_NORMS))


def test_gradients_have_bounds_by_norms_too() -> None:
    rng = np.random.default_rng(3)
    inputs = {"x": rng.normal(size=(2, 4, 9)), "weight": rng.normal(size=(6, 2, 3))}
    slope = {"out": rng.normal(size=(2, 6, 7))}
    both = [
        op("convolution").backward_bound(inputs, slope, {"groups": 2}, arithmetic)
        for arithmetic in (Arithmetic(), BY_NORMS)
    ]
    for name, direct in both[0].items():
        assert both[1][name].shape == direct.shape == inputs[name].shape
        assert np.all(both[1][name] > direct)


def test_winograd_gradient_into_the_kernel_stays_within_its_bound() -> None:
    """F(3, 2): the same three matrices, each in another's place."""
    rng = np.random.default_rng(4)
    x, slope = (rng.normal(size=(1, 1, n)).astype(np.float32) for n in (16, 14))
    x[..., 8:] *= 1e4
    a, b, g = (m.astype(np.float32) for m in (A, B, G))
    total = np.zeros(3, np.float32)
    for i in range(0, 14, 2):
        total = total + g.T @ ((a.T @ slope[0, 0, i : i + 2]) * (b @ x[0, 0, i : i + 4]))
    wide = {"x": x.astype(float), "weight": np.ones((1, 1, 3))}
    cotangent = {"out": slope.astype(float)}
    want = op("convolution").backward(wide, cotangent, {})["weight"][0, 0]
    allowed = op("convolution").backward_bound(wide, cotangent, {}, BY_NORMS)["weight"][0, 0]
    assert np.all(np.abs(total - want) <= allowed)
    assert np.all(allowed < 1e-2 * np.abs(x).max() * 14)


def test_no_grid_and_empty_grids_have_bounds() -> None:
    for batch, size in ((0, 5), (1, 5), (1, 1)):
        wide = {"x": np.ones((batch, 1, size)), "weight": np.ones((2, 1, 3))}
        slope = {"out": np.ones((batch, 2, max(size - 2, 0)))}
        assert op("convolution").bound(wide, {}, BY_NORMS)["out"].shape == slope["out"].shape
        found = op("convolution").backward_bound(wide, slope, {}, BY_NORMS)
        assert found["x"].shape == wide["x"].shape


def test_the_transforms_compute_a_convolution() -> None:
    for j in range(2):
        form = np.einsum("i,ij,ik->jk", A[j], G, B)
        assert np.array_equal(form, np.eye(3, 4, k=j))
    assert growth() == pytest.approx(3.06, abs=0.5)


def test_where_a_spectrum_may_overflow_nothing_is_promised() -> None:
    huge = np.full((1, 1, 8), 1e30)
    case: Case = {"x": huge, "weight": huge[..., :3] / 1e3}, {}
    assert np.all(np.isinf(bound(case, BY_NORMS)))
    half = replace(BY_NORMS, accumulate="float64", intermediate="float64")
    assert np.all(np.isfinite(bound(({n: a / 1e10 for n, a in case[0].items()}, {}), half)))


@pytest.mark.parametrize("scale", [2.0**-560, 2.0**400])
def test_the_slack_scales_with_its_grids(scale: float) -> None:
    """Also where squares would underflow or overflow."""
    rng = np.random.default_rng(0)
    double = replace(BY_NORMS, storage="float64", accumulate="float64", intermediate="float64")
    x, weight = rng.normal(size=(1, 2, 7)), rng.normal(size=(3, 2, 3))
    one, scaled = (
        op("convolution").bound({"x": x * s, "weight": weight}, {}, double)["out"]
        for s in (1.0, scale)
    )
    assert np.allclose(scaled / scale, one, rtol=1e-12, atol=0.0)
