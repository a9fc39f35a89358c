"""The causal convolution agrees with torch's depthwise one, and streams by its history."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.spec.scans.causal_conv import (
    causal_conv1d,
    causal_conv1d_backward,
    from_depthwise,
    to_depthwise,
)
from tests.spec.agreement import (
    FORMATS,
    LOW,
    assert_agrees_with_torch,
    assert_encloses,
    assert_notices,
    assert_rounded_within_bounds,
)

Case = dict[str, np.ndarray]


@st.composite
def cases(draw: st.DrawFn, steps: tuple[int, ...] = (0, 1, 2, 3, 5, 11)) -> Case:
    """With and without bias and history; chunks shorter and longer than the history."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    batch, taps, width = (draw(st.integers(1, n)) for n in (2, 5, 3))
    shape = (batch, draw(st.sampled_from(steps)), width)
    case = {"x": rng.normal(size=shape), "weight": rng.normal(size=(taps, width))}
    if draw(st.booleans()):
        case["bias"] = rng.normal(size=width)
    if draw(st.booleans()):
        case["history"] = rng.normal(size=(batch, taps - 1, width))
    return case


def torch_conv(t: dict[str, Any], _: Mapping[str, Any]) -> Mapping[str, Any]:
    """torch's own grouped convolution over the history and x."""
    x, weight = t["x"], t["weight"]
    taps, width = weight.shape
    past = t["history"] if "history" in t else x.new_zeros(x.shape[0], taps - 1, width)
    joined = torch.cat([past, x], dim=1)
    kernel = weight.flip(0).T[:, None, :]
    out = x * 1.0
    if x.shape[1]:
        out = torch.nn.functional.conv1d(joined.mT, kernel, t.get("bias"), groups=width).mT
    return {"out": out, "history": joined[:, x.shape[1] :]}


@pytest.mark.parametrize("dtype", FORMATS)
@given(case=cases())
@settings(max_examples=100)
def test_agrees_with_torch(dtype: str, case: Case) -> None:
    assert_agrees_with_torch("causal_conv1d", case, {}, torch_conv, dtype)


@pytest.mark.parametrize("dtype", LOW)
@given(case=cases())
@settings(max_examples=30)
def test_rounded_evaluation_stays_within_bounds(dtype: str, case: Case) -> None:
    assert_rounded_within_bounds("causal_conv1d", case, {}, dtype)


@given(case=cases((2, 5)))
@settings(max_examples=10)
def test_balls_enclose_it(case: Case) -> None:
    assert_encloses("causal_conv1d", case, {})


@pytest.mark.parametrize("name", ["x", "weight", "bias", "history"])
def test_small_errors_are_noticed(name: str) -> None:
    rng = np.random.default_rng(0)
    shapes = {"x": (1, 6, 2), "weight": (4, 2), "bias": (2,), "history": (1, 3, 2)}
    case = {n: rng.normal(size=shape) for n, shape in shapes.items()}
    spoilt = {**case, name: case[name].copy()}
    spoilt[name].flat[-1] *= 1 + 1e-5
    assert_notices("causal_conv1d", case, {}, spoilt)


def rationals(rng: np.random.Generator, *shape: int) -> np.ndarray:
    make = np.frompyfunc(lambda n: Fraction(int(n), 7), 1, 1)
    return np.asarray(make(rng.integers(-9, 10, shape)), dtype=object)


@given(st.integers(0, 2**32 - 1), st.integers(0, 7), st.integers(1, 4))
@settings(max_examples=40)
def test_every_cut_of_a_stream_gives_the_same_outputs(seed: int, cut: int, taps: int) -> None:
    rng = np.random.default_rng(seed)
    x, weight, bias = rationals(rng, 2, 7, 2), rationals(rng, taps, 2), rationals(rng, 2)
    whole, end = causal_conv1d(x, weight, bias)
    head, history = causal_conv1d(x[:, :cut], weight, bias)
    tail, last = causal_conv1d(x[:, cut:], weight, bias, history)
    assert (np.concatenate([head, tail], axis=1) == whole).all()
    assert (last == end).all()


def test_a_chunk_without_its_history_differs() -> None:
    x, weight = np.ones((1, 4, 1)), np.ones((3, 1))
    _, history = causal_conv1d(x[:, :2], weight)
    kept, _ = causal_conv1d(x[:, 2:], weight, None, history)
    dropped, _ = causal_conv1d(x[:, 2:], weight)
    assert kept.ravel().tolist() == [3.0, 3.0]
    assert dropped.ravel().tolist() == [1.0, 2.0]


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(0, 4))
@settings(max_examples=20)
def test_gradient_of_rationals_is_the_adjoint(seed: int, taps: int, steps: int) -> None:
    rng = np.random.default_rng(seed)
    given = {"x": rationals(rng, 2, steps, 2), "weight": rationals(rng, taps, 2)}
    given |= {"bias": rationals(rng, 2), "history": rationals(rng, 2, taps - 1, 2)}
    flow = rationals(rng, 2, steps, 2), rationals(rng, 2, taps - 1, 2)
    grads = causal_conv1d_backward(**given, cotangent=flow[0], history_cotangent=flow[1])
    for name in given:
        moved = rationals(rng, *given[name].shape)
        new, old = (causal_conv1d(**g) for g in ({**given, name: given[name] + moved}, given))
        change = sum(((a - b) * g).sum() for a, b, g in zip(new, old, flow, strict=True))
        assert change == (getattr(grads, name) * moved).sum()


def test_depthwise_layout_is_oldest_first_and_converts_both_ways() -> None:
    weight = np.arange(6.0).reshape(3, 2)
    assert to_depthwise(weight).tolist() == [[[4.0, 2.0, 0.0]], [[5.0, 3.0, 1.0]]]
    assert (from_depthwise(to_depthwise(weight)) == weight).all()


def test_shapes_that_do_not_fit_are_named() -> None:
    x, weight = np.ones((2, 3, 4)), np.ones((3, 4))
    with pytest.raises(ValueError, match="x must have 3 axes"):
        causal_conv1d(x[0], weight)
    with pytest.raises(
        ValueError, match=r"weight \(0, 4\) must be \(taps, 4\) with at least 1 tap"
    ):
        causal_conv1d(x, weight[:0])
    with pytest.raises(ValueError, match=r"shape of bias \(3,\) must be \(4,\)"):
        causal_conv1d(x, weight, np.ones(3))
    with pytest.raises(ValueError, match=r"history \(2, 3, 4\) must be \(2, 2, 4\)"):
        causal_conv1d(x, weight, None, x)


def test_a_history_that_nothing_reads_has_a_cotangent_of_zeros() -> None:
    rng = np.random.default_rng(2)
    x, weight, flow = rng.normal(size=(1, 4, 2)), rng.normal(size=(3, 2)), np.ones((1, 4, 2))
    short = causal_conv1d_backward(x, weight, None, None, flow)
    long = causal_conv1d_backward(x, weight, None, None, flow, np.zeros((1, 2, 2)))
    assert all((a == b).all() for a, b in zip(short, long, strict=True))
