"""Affine scans agree with torch and with every other arrangement, and their bounds hold for all."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.spec.arithmetic import Arithmetic
from assay.spec.inexact import Inexact
from assay.spec.ops import op
from assay.spec.scans.affine import (
    affine_scan,
    affine_scan_backward,
    affine_scan_chunked,
    affine_scan_tree,
)
from assay.spec.scans.algebra import (
    IDENTITY,
    AffineMap,
    apply,
    compose,
    composed,
    summary,
)
from assay.spec.scans.runner import fold_bracketed, scan_tree
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
STEPS = (0, 1, 2, 3, 5, 8, 13)


@st.composite
def cases(draw: st.DrawFn, steps: tuple[int, ...] = STEPS, spread: float = 1.0) -> Case:
    """Shared or own a and b, with or without h0; now and then an a of 0, 1 or -1."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = (draw(st.sampled_from((1, 2))), draw(st.sampled_from(steps)), draw(st.integers(1, 3)))
    forms = ((), shape[2:], (shape[1], 1), shape)
    a = rng.normal(size=draw(st.sampled_from(forms))) * draw(st.sampled_from((0.5, spread)))
    if draw(st.booleans()):
        a = np.where(rng.random(a.shape) < 0.3, rng.integers(-1, 2, a.shape), a)
    case = {"a": a, "b": rng.normal(size=draw(st.sampled_from(forms))), "x": rng.normal(size=shape)}
    if draw(st.booleans()):
        case["h0"] = rng.normal(size=(shape[0], shape[2]))
    return case


def torch_scan(t: dict[str, Any], _: Mapping[str, Any]) -> Mapping[str, Any]:
    """Step by step, in plain torch."""
    x = t["x"]
    a, b = (t[n].expand(x.shape) for n in "ab")
    h = t["h0"] if "h0" in t else torch.zeros_like(x[:, 0]) if x.shape[1] else None
    states = []
    for s in range(x.shape[1]):
        h = a[:, s] * h + b[:, s] * x[:, s]
        states.append(h)
    return {"states": torch.stack(states, dim=1) if states else x * 1.0}


@pytest.mark.parametrize("dtype", FORMATS)
@given(case=cases())
@settings(max_examples=100)
def test_agrees_with_torch(dtype: str, case: Case) -> None:
    assert_agrees_with_torch("affine_scan", case, {}, torch_scan, dtype)


@pytest.mark.parametrize("dtype", LOW)
@given(case=cases())
@settings(max_examples=30)
def test_rounded_evaluation_stays_within_bounds(dtype: str, case: Case) -> None:
    assert_rounded_within_bounds("affine_scan", case, {}, dtype)


@given(case=cases((3, 5)))
@settings(max_examples=10)
def test_balls_enclose_it(case: Case) -> None:
    assert_encloses("affine_scan", case, {})


def test_small_errors_are_noticed() -> None:
    rng = np.random.default_rng(0)
    case = {"a": rng.random((1, 64, 2)), "b": np.ones(()), "x": rng.normal(size=(1, 64, 2))}
    for name, where in (("x", (0, 40, 0)), ("a", (0, 40, 1))):
        spoilt = {**case, name: case[name].copy()}
        spoilt[name][where] *= 1 + 1e-4
        assert_notices("affine_scan", case, {}, spoilt)


# -- Every arrangement


def rounded_states(case: Case, kind: Any, arrangement: str) -> np.ndarray:
    given = rounded(case, kind)
    h0 = given.get("h0")
    if arrangement == "tree":
        return affine_scan_tree(given["a"], given["b"], given["x"], h0)
    if arrangement == "chunks of trees":
        parts, h = [], h0
        for s in range(0, given["x"].shape[1], 3):
            a, b = (np.broadcast_to(given[n], given["x"].shape)[:, s : s + 3] for n in "ab")
            parts.append(affine_scan_tree(a, b, given["x"][:, s : s + 3], h))
            h = parts[-1][:, -1]
        return np.concatenate(parts, axis=1)
    a, b = (np.broadcast_to(given[n], given["x"].shape) for n in "ab")
    maps = [AffineMap(a[:, s], b[:, s] * given["x"][:, s]) for s in range(a.shape[1])]
    split = {"reversed": lambda n: 1, "ragged": lambda n: 1 + (5 * n) % (n - 1)}[arrangement]
    start = np.zeros_like(given["x"][:, 0]) if h0 is None else h0
    folds = [
        fold_bracketed(lambda e, f: compose(f, e), maps[: s + 1], split) for s in range(len(maps))
    ]
    return np.stack([apply(f, start) for f in folds], axis=1)


@pytest.mark.parametrize("dtype", LOW)
@pytest.mark.parametrize("arrangement", ["tree", "chunks of trees", "reversed", "ragged"])
@given(case=cases((1, 3, 8, 13)))
@settings(max_examples=30)
def test_every_bracketing_stays_within_the_bound(dtype: str, arrangement: str, case: Case) -> None:
    kind, entry = LOW[dtype], op("affine_scan")
    given = rounded(case, kind)
    bound = entry.bound(rounded(given, np.float64), {}, arithmetic_of(dtype))["states"]
    want = entry.forward(widened(given), {})["states"]
    with np.errstate(all="ignore"):
        got = rounded_states(given, kind, arrangement)
    assert excess(got, want, bound) <= 1


def test_a_tree_may_exceed_the_error_of_the_sequence_but_not_the_bound() -> None:
    rng = np.random.default_rng(2195)
    a, x = (
        z.astype(np.float32).reshape(1, 16, 1)
        for z in (np.abs(rng.uniform(-1, 1, 16)), rng.normal(size=16))
    )
    one = np.ones((), dtype=np.float32)
    wide = {"a": a.astype(float), "b": np.ones(()), "x": x.astype(float)}
    gap = np.abs(affine_scan_tree(a, one, x) - affine_scan(**wide))
    h, sequential = Inexact(np.zeros(1), 0.0, Arithmetic()), []
    for s in range(16):
        h = h.of(wide["a"][0, s]) * h + h.of(wide["x"][0, s])
        sequential.append(h.error)
    assert (gap[0] > 2 * np.stack(sequential)).any()
    assert (gap <= op("affine_scan").bound(wide, {}, Arithmetic())["states"]).all()


@pytest.mark.parametrize("form", ["tree", "doubling"])
@given(case=cases((2, 5, 8, 13)))
@settings(max_examples=40)
def test_gradients_through_a_tree_stay_within_the_bound(form: str, case: Case) -> None:
    """They never form l_t h_{t-1}, but add products of the parts of both."""
    entry, given = op("affine_scan"), rounded(case, np.float32)
    leaves = {n: torch.tensor(v, requires_grad=True) for n, v in given.items()}
    a, b = (leaves[n].expand(leaves["x"].shape) for n in "ab")
    maps = [AffineMap(a[:, s], b[:, s] * leaves["x"][:, s]) for s in range(a.shape[1])]
    if form == "tree":
        maps = scan_tree(composed, maps)
    else:
        for reach in (1, 2, 4, 8):
            maps = [compose(f, maps[i - reach]) if i >= reach else f for i, f in enumerate(maps)]
    start = leaves.get("h0", torch.zeros(()))
    states = torch.stack([apply(f, start) for f in maps], dim=1)
    cotangent = np.random.default_rng(0).normal(size=given["x"].shape).astype(np.float32)
    found = torch.autograd.grad((states * torch.tensor(cotangent)).sum(), list(leaves.values()))
    want = entry.backward(widened(given), {"states": cotangent.astype(np.longdouble)}, {})
    flow = {"states": cotangent.astype(np.float64)}
    bound = entry.backward_bound(rounded(given, np.float64), flow, {}, Arithmetic())
    for name, gradient in zip(leaves, found, strict=True):
        assert excess(gradient.numpy(), want[name], bound[name]) <= 1, name


# -- What is exactly so


def fractions(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    make = np.frompyfunc(lambda n, d: Fraction(int(n), int(d)), 2, 1)
    return np.asarray(make(rng.integers(-9, 10, shape), rng.integers(1, 6, shape)), dtype=object)


@given(st.integers(0, 2**32 - 1), st.sampled_from(STEPS[1:]), st.integers(1, 9))
@settings(max_examples=40)
def test_tree_chunks_and_sequence_are_one_function_of_rationals(
    seed: int, steps: int, chunk: int
) -> None:
    rng = np.random.default_rng(seed)
    a, b, x = (fractions(rng, (2, steps, 2)) for _ in range(3))
    h0 = fractions(rng, (2, 2))
    want = affine_scan(a, b, x, h0)
    assert (affine_scan_tree(a, b, x, h0) == want).all()
    assert (affine_scan_chunked(a, b, x, h0, chunk=chunk) == want).all()
    at = chunk % (steps + 1)
    head = affine_scan(a[:, :at], b[:, :at], x[:, :at], h0)
    state = head[:, -1] if at else h0
    tail = affine_scan(a[:, at:], b[:, at:], x[:, at:], state)
    assert (np.concatenate([head, tail], axis=1) == want).all()


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_gradient_of_rationals_is_the_adjoint_of_the_derivative(seed: int) -> None:
    """h is affine in each input: a difference quotient is exact, whatever its step."""
    rng = np.random.default_rng(seed)
    given = {n: fractions(rng, s) for n, s in (("a", (2,)), ("b", (1, 3, 2)), ("x", (1, 3, 2)))}
    given["h0"], cotangent = fractions(rng, (1, 2)), fractions(rng, (1, 3, 2))
    grads = affine_scan_backward(**given, cotangent=cotangent)
    for name in ("b", "x", "h0"):
        moved = fractions(rng, given[name].shape)
        other = {**given, name: given[name] + moved}
        change = ((affine_scan(**other) - affine_scan(**given)) * cotangent).sum()
        assert change == (getattr(grads, name) * moved).sum()


def test_gradient_into_a_shared_rate_is_the_polynomials_own() -> None:
    # h_3 = x_1 a^2 + x_2 a + x_3 and h_2 = x_1 a + x_2: their sum has slope 2 x_1 a + x_2 + x_1.
    a, x = np.array([Fraction(2, 3)]), np.array([[[Fraction(5)], [Fraction(7)], [Fraction(11)]]])
    ones = np.array([[[Fraction(1)]] * 3])
    grads = affine_scan_backward(a, np.array([Fraction(1)]), x, None, ones)
    assert grads.a.tolist() == [2 * 5 * Fraction(2, 3) + 7 + 5]


def test_rate_zero_starts_a_new_sequence_bit_by_bit() -> None:
    rng = np.random.default_rng(3)
    a, x = rng.random((1, 9, 2)), rng.normal(size=(1, 9, 2))
    a[:, 4] = 0.0
    one = np.ones(())
    alone = affine_scan(a[:, 4:], one, x[:, 4:])
    assert affine_scan(a, one, x)[:, 4:].tobytes() == alone.tobytes()


def test_rates_of_at_most_one_never_widen_a_gap() -> None:
    rng = np.random.default_rng(4)
    a, b, x = rng.uniform(-1, 1, (1, 50, 3)), rng.normal(size=(3,)), rng.normal(size=(1, 50, 3))
    starts = rng.normal(size=(2, 1, 3))
    gap = np.abs(affine_scan(a, b, x, starts[0]) - affine_scan(a, b, x, starts[1]))
    assert (np.diff(gap, axis=1) <= 1e-15).all()
    assert (gap <= np.abs(starts[0] - starts[1])).all()


MAPS = st.builds(AffineMap, st.fractions(-3, 3, max_denominator=9), st.fractions(max_denominator=9))


@given(MAPS, MAPS, MAPS, st.fractions(max_denominator=9))
def test_composition_is_associative_with_an_identity_and_applies_in_turn(
    f: AffineMap, g: AffineMap, k: AffineMap, h: Fraction
) -> None:
    assert compose(compose(f, g), k) == compose(f, compose(g, k))
    assert compose(f, IDENTITY) == f == compose(IDENTITY, f)
    assert apply(compose(f, g), h) == apply(f, apply(g, h))
    assert summary([k, g, f]) == compose(f, compose(g, k))


def test_composition_in_floats_is_not_associative() -> None:
    maps = [
        AffineMap(np.float64(a), np.float64(b)) for a, b in ((0.1, 0.2), (0.3, 0.7), (0.7, 0.1))
    ]
    f, g, k = maps
    assert compose(compose(f, g), k) != compose(f, compose(g, k))


def test_it_runs_on_symbols_and_its_gradient_is_the_derivative() -> None:
    names = {n: sympy.symbols(f"{n}1:4") for n in ("a", "x", "g")} | {"h0": sympy.symbols("h:1")}
    a, x, g = (np.array(names[n], dtype=object).reshape(1, 3, 1) for n in ("a", "x", "g"))
    h0 = np.array(names["h0"], dtype=object).reshape(1, 1)
    one = np.ones((), dtype=object)
    loss = (affine_scan(a, one, x, h0) * g).sum()
    grads = affine_scan_backward(a, one, x, h0, g)
    for leaf, gradient in ((a, grads.a), (x, grads.x), (h0, grads.h0)):
        for symbol, slope in zip(leaf.flat, gradient.flat, strict=True):
            assert sympy.expand(sympy.diff(loss, symbol) - slope) == 0


# -- Edges


def test_infinities_and_overflow_have_no_bound() -> None:
    x = np.full((1, 3, 1), 1e30)
    inputs = {"a": np.full((1,), 1e30), "b": np.ones(()), "x": x}
    bound = op("affine_scan").bound(inputs, {}, Arithmetic())["states"]
    assert np.isfinite(bound[0, 0, 0])
    assert np.isinf(bound[0, 1:, 0]).all()


def test_a_single_term_that_is_only_handed_on_is_rounded_once_when_it_is_stored() -> None:
    inputs = {"a": np.ones(()), "b": np.ones(()), "x": np.eye(4)[:1, :, None]}
    bound = op("affine_scan").bound(inputs, {}, Arithmetic())["states"]
    assert (bound < 1.01 * 2.0**-24).all()


def test_shapes_that_do_not_fit_are_named() -> None:
    x = np.ones((2, 3, 4))
    with pytest.raises(ValueError, match=r"shape of a \(3,\) must broadcast to that of x"):
        affine_scan(np.ones(3), np.ones(()), x)
    with pytest.raises(ValueError, match=r"shape of h0 \(4,\) must be that of x without its time"):
        affine_scan(np.ones(4), np.ones(()), x, np.ones(4))
    with pytest.raises(ValueError, match="x must have at least 2 axes"):
        affine_scan(np.ones(4), np.ones(()), np.ones(4))
    with pytest.raises(ValueError, match="shape of b"):
        affine_scan(np.ones(4), np.ones((1, 2, 3, 4)), x)
