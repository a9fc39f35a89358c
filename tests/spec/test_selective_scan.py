"""The selective scan agrees with torch, streams by its state; its bound covers kernels' forms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.spec.ops import op
from assay.spec.scans.selective import selective_scan, selective_scan_backward
from tests.spec.agreement import (
    FORMATS,
    LOW,
    arithmetic_of,
    assert_agrees_with_torch,
    assert_encloses,
    assert_notices,
    assert_rounded_within_bounds,
    excess,
    rounded,
    widened,
)

Case = dict[str, np.ndarray]


@st.composite
def cases(draw: st.DrawFn, steps: tuple[int, ...] = (0, 1, 2, 3, 5, 8)) -> Case:
    """With and without skip and start; now and then steps of 0 and steps that forget everything."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    batch, states, width = (draw(st.integers(1, n)) for n in (2, 3, 3))
    length = draw(st.sampled_from(steps))
    scale = draw(st.sampled_from((0.01, 1.0, 5.0)))
    case = {
        "u": rng.normal(size=(batch, length, width)),
        "delta": scale * rng.random((batch, length, width)),
        "a": rng.uniform(0, 3, size=(width, states)),
        "b": rng.normal(size=(batch, length, states)),
        "c": rng.normal(size=(batch, length, states)),
    }
    if draw(st.booleans()):
        case["delta"] = np.where(rng.random(case["delta"].shape) < 0.2, 0.0, case["delta"])
    if draw(st.booleans()):
        case["d"] = rng.normal(size=width)
    if draw(st.booleans()):
        case["h0"] = rng.normal(size=(batch, width, states))
    return case


def torch_selective(t: dict[str, Any], _: Mapping[str, Any]) -> Mapping[str, Any]:
    """Step by step, in plain torch."""
    u, delta, a, b, c = (t[n] for n in ("u", "delta", "a", "b", "c"))
    h = t["h0"] * 1.0 if "h0" in t else u.new_zeros(u.shape[0], *a.shape)
    out = []
    for s in range(u.shape[1]):
        step = delta[:, s, :, None]
        h = torch.exp(-step * a) * h + step * b[:, s, None, :] * u[:, s, :, None]
        out.append((h * c[:, s, None, :]).sum(-1))
    y = torch.stack(out, dim=1) if out else u * 1.0
    return {"out": y + t["d"] * u if "d" in t else y, "state": h}


@pytest.mark.parametrize("dtype", FORMATS)
@given(case=cases())
@settings(max_examples=100)
def test_agrees_with_torch(dtype: str, case: Case) -> None:
    assert_agrees_with_torch("selective_scan", case, {}, torch_selective, dtype)


@pytest.mark.parametrize("dtype", LOW)
@given(case=cases())
@settings(max_examples=25)
def test_rounded_evaluation_stays_within_bounds(dtype: str, case: Case) -> None:
    assert_rounded_within_bounds("selective_scan", case, {}, dtype)


@given(case=cases((2, 3)))
@settings(max_examples=8)
def test_balls_enclose_it(case: Case) -> None:
    assert_encloses("selective_scan", case, {})


def steady(steps: int = 64) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    return {
        "u": rng.normal(size=(1, steps, 2)),
        "delta": rng.uniform(0.05, 0.5, (1, steps, 2)),
        "a": rng.uniform(0.1, 2, (2, 4)),
        "b": rng.normal(size=(1, steps, 4)),
        "c": rng.normal(size=(1, steps, 4)),
        "d": rng.normal(size=2),
        "h0": rng.normal(size=(1, 2, 4)),
    }


@pytest.mark.parametrize("name", ["u", "delta", "a", "b", "c", "d", "h0"])
def test_an_error_of_a_thousandth_in_one_number_is_noticed(name: str) -> None:
    case = steady()
    spoilt = {**case, name: case[name].copy()}
    spoilt[name].flat[0] *= 1 + 1e-3
    assert_notices("selective_scan", case, {}, spoilt)


# -- Forms that kernels have


def by_sums_of_exponents(given: Case) -> dict[str, np.ndarray]:
    """One product of matrices: factors are exp of minus the exponents summed in between."""
    z = given["delta"][..., None] * given["a"]
    v = (given["delta"] * given["u"])[..., None] * given["b"][:, :, None, :]
    steps = z.shape[1]
    v = np.concatenate([given["h0"][:, None], v], axis=1)
    out, h = [], given["h0"]
    for t in range(steps):
        h = np.zeros_like(given["h0"])
        for s in range(t + 2):
            between = np.add.accumulate(z[:, s : t + 1], axis=1)[:, -1:]
            h = h + (np.exp(-between[:, 0]) if between.size else 1) * v[:, s]
        out.append((h * given["c"][:, t, None, :]).sum(axis=-1))
    return {"out": np.stack(out, axis=1) + given["d"] * given["u"], "state": h}


def skip_first(given: Case) -> dict[str, np.ndarray]:
    """The output's sum begins with the skip, and states are added to it one by one."""
    h, out = given["h0"], []
    for t in range(given["u"].shape[1]):
        step, u = given["delta"][:, t, :, None], given["u"][:, t, :, None]
        h = np.exp(-step * given["a"]) * h + step * given["b"][:, t, None, :] * u
        y = given["d"] * given["u"][:, t]
        for n in range(h.shape[-1]):
            y = y + h[..., n] * given["c"][:, t, None, n]
        out.append(y)
    return {"out": np.stack(out, axis=1), "state": h}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("form", [by_sums_of_exponents, skip_first])
@pytest.mark.parametrize("rate", [0.1, 1.0, 10.0])
def test_forms_of_kernels_stay_within_the_bound(dtype: str, form: Any, rate: float) -> None:
    case, kind, entry = steady(24), LOW[dtype], op("selective_scan")
    case["a"] = case["a"] * rate
    given = rounded(case, kind)
    want = entry.forward(widened(given), {})
    bound = entry.bound(rounded(given, np.float64), {}, arithmetic_of(dtype))
    got = form(given)
    for name, value in want.items():
        assert excess(got[name].astype(kind), value, bound[name]) <= 1


@pytest.mark.parametrize("dtype", LOW)
def test_gradients_from_differences_of_states_stay_within_the_bound(dtype: str) -> None:
    case, kind, entry = steady(16), LOW[dtype], op("selective_scan")
    # Strong decay: what is carried over is small beside the state that it is taken from.
    case["a"] = case["a"] * 8
    given: dict[str, Any] = rounded(case, kind)
    want = entry.forward(widened(given), {})
    flow = {n: np.ones(x.shape) for n, x in want.items()}
    slopes = entry.backward(widened(given), widened(flow), {})
    widths = entry.backward_bound(rounded(given, np.float64), flow, {}, arithmetic_of(dtype))
    low: dict[str, Any] = rounded(flow, kind)
    grads = selective_scan_backward(
        **given,
        cotangent=low["out"],
        state_cotangent=low["state"],
        lose=lambda flow: flow.slopes * (flow.states - flow.added),
    )
    for name, value in grads._asdict().items():
        assert excess(value.astype(kind), slopes[name], widths[name]) <= 1, name


def test_differences_of_running_sums_lose_what_the_bound_promises() -> None:
    # After a long decay the running sum is large, and its neighbours' difference has no digits.
    steps = 200
    case = {n: x.astype(np.float32) for n, x in steady(steps).items()}
    case["delta"][:] = 0.1
    case["a"][:] = 40.0
    z = np.cumsum(case["delta"][..., None] * case["a"], axis=1)
    v = (case["delta"] * case["u"])[..., None] * case["b"][:, :, None, :]
    h = (np.exp(z[:, -2:] - z[:, -1:]) * v[:, -2:]).sum(axis=1)
    want = op("selective_scan").forward(widened(case), {})["state"]
    bound = op("selective_scan").bound(rounded(case, np.float64), {}, arithmetic_of("float32"))
    assert excess(h, want, bound["state"]) > 1


# -- Streaming, causality, edges


@given(case=cases((3, 5, 8)), cut=st.integers(0, 3))
@settings(max_examples=40)
def test_a_stream_continues_from_its_state_bit_by_bit(case: Case, cut: int) -> None:
    along = ("u", "delta", "b", "c")
    first = {n: x[:, :cut] if n in along else x for n, x in case.items()}
    rest = {n: x[:, cut:] if n in along else x for n, x in case.items()}
    whole, end = selective_scan(**case)
    head, state = selective_scan(**first)
    tail, last = selective_scan(**{**rest, "h0": state})
    assert np.concatenate([head, tail], axis=1).tobytes() == whole.tobytes()
    assert last.tobytes() == end.tobytes()


def test_without_its_state_a_stream_differs() -> None:
    case = steady(8)
    del case["h0"]
    rest = {n: x[:, 4:] if n in ("u", "delta", "b", "c") else x for n, x in case.items()}
    assert np.abs(selective_scan(**rest)[0] - selective_scan(**case)[0][:, 4:]).max() > 1e-2


def test_a_step_of_size_zero_changes_no_state_and_only_reads() -> None:
    case = steady(3)
    case["delta"][:, 1] = 0.0
    shorter = {
        n: np.delete(x, 1, 1) if n in ("u", "delta", "b", "c") else x for n, x in case.items()
    }
    out, state = selective_scan(**case)
    want, end = selective_scan(**shorter)
    assert state.tobytes() == end.tobytes()
    assert out[:, [0, 2]].tobytes() == want.tobytes()


def test_long_sequences_and_large_steps_stay_finite() -> None:
    case = steady(3000)
    case["delta"][:, ::7] = 1e4
    out, state = selective_scan(**case)
    assert np.isfinite(out).all()
    assert np.isfinite(state).all()
    grads = selective_scan_backward(**case, cotangent=np.ones_like(out))
    assert all(np.isfinite(g).all() for g in grads)


def test_no_states_leave_the_skip() -> None:
    u, none = np.ones((1, 3, 2)), np.zeros((1, 3, 0))
    out, state = selective_scan(u, u, np.zeros((2, 0)), none, none, np.array([2.0, 3.0]))
    assert out[0].tolist() == [[2.0, 3.0]] * 3
    assert state.shape == (1, 2, 0)


def test_without_steps_the_cotangent_of_the_state_passes_through() -> None:
    case = steady(0)
    out, state = selective_scan(**case)
    assert (state == case["h0"]).all()
    grads = selective_scan_backward(**case, cotangent=out, state_cotangent=2 * state)
    assert (grads.h0 == 2 * state).all()
    assert not selective_scan_backward(**case, cotangent=out).h0.any()


def test_shapes_that_do_not_fit_are_named() -> None:
    case = steady(4)
    with pytest.raises(ValueError, match="u must have 3 axes"):
        selective_scan(**{**case, "u": case["u"][0]})
    for name in ("delta", "b", "c", "d", "h0"):
        with pytest.raises(ValueError, match=rf"shape of {name} .* must be .* as u \(1, 4, 2\)"):
            selective_scan(**{**case, name: case[name][..., :-1]})
