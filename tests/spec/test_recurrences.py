"""Error rules of scans: what is inherited, and what a bracketing may round, stays within them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.spec.arithmetic import Arithmetic
from assay.spec.inexact import Inexact
from assay.spec.scans.affine import decay, into_factors, recurrence, reverse
from assay.spec.scans.algebra import AffineMap, apply, composed
from assay.spec.scans.runner import fold_bracketed

SPLITS: dict[str, Callable[[int], int]] = {
    "sequential": lambda n: n - 1,
    "reversed": lambda n: 1,
    "balanced": lambda n: n // 2,
    "ragged": lambda n: 1 + (5 * n) % (n - 1),
}
SINGLE = Arithmetic("float32", "float32", "float32")


def drawn(seed: int, steps: int, error: float) -> tuple[Any, Any, Any]:
    """a, v and the start, each known up to a share ``error`` of itself."""
    rng = np.random.default_rng(seed)
    arrays = rng.normal(size=(steps, 4)), rng.normal(size=(steps, 4)), rng.normal(size=4)
    low = (x.astype(np.float32).astype(np.float64) for x in arrays)
    a, v, start = (Inexact(x, error * np.abs(x), SINGLE) for x in low)
    return a, v, start


def moved(rng: np.random.Generator, x: Any) -> np.ndarray:
    """A number within the error of each, in single precision."""
    return (x.value + x.error * 0.999 * rng.choice([-1, 1], x.value.shape)).astype(np.float32)


@pytest.mark.parametrize("split", SPLITS.values(), ids=SPLITS.keys())
@given(st.integers(0, 2**32 - 1), st.integers(1, 20), st.sampled_from((0.0, 1e-6, 1e-2)))
@settings(max_examples=50)
def test_any_bracketing_of_inexact_inputs_stays_within_the_error(
    split: Callable[[int], int], seed: int, steps: int, error: float
) -> None:
    a, v, start = drawn(seed, steps, error)
    states: Any = recurrence(a, v, start)
    rng = np.random.default_rng(seed + 1)
    maps = [AffineMap(*f) for f in zip(moved(rng, a), moved(rng, v), strict=True)]
    first = moved(rng, start)
    for t in range(steps):
        got = apply(fold_bracketed(composed, maps[: t + 1], split), first)
        assert got.dtype == np.float32
        assert (np.abs(got - states.value[t]) <= states.error[t]).all()


@given(st.integers(0, 2**32 - 1), st.integers(1, 20), st.sampled_from((1e-4, 1e-2)))
@settings(max_examples=50)
def test_inherited_errors_are_not_much_larger_than_what_inputs_can_do(
    seed: int, steps: int, error: float
) -> None:
    a, v, start = drawn(seed, steps, error)
    for x in (a, v, start):
        x.value = np.abs(x.value)
    states: Any = recurrence(a, v, start)
    # All inputs are positive: the largest result comes from the largest inputs.
    largest = recurrence(a.reach, v.reach, start.reach)
    assert (largest - states.value <= states.error).all()
    assert (states.error <= 1.2 * (largest - states.value)).all()


def test_sums_of_exponents_are_allowed_for_where_decay_is_used() -> None:
    rng = np.random.default_rng(0)
    v: Any = Inexact(rng.normal(size=(30, 2)), 0.0, SINGLE)
    z, start = v.of(rng.random((30, 2))), v.of(np.zeros(2))
    slow: Any = recurrence(np.exp(-z), v, start)
    both: Any = decay(z, v, start)
    assert (both.value == slow.value).all()
    assert (both.error >= slow.error).all()
    # What the sums cost is of the order of what the products do.
    assert (both.error[1:] <= 6 * slow.error[1:]).all()


def test_gradients_into_factors_are_products_and_their_error_is_at_least_that() -> None:
    a, v, start = drawn(3, 9, 0.0)
    read = v.of(np.flip(v.value, axis=0))
    states, slopes = recurrence(a, v, start), reverse(a, read)
    got: Any = into_factors(a, v, start, read, states, slopes)
    earlier: Any = np.concatenate([start[None], states])[:-1]
    assert (got.value == (slopes * earlier).value).all()
    assert (got.error >= (slopes * earlier).error).all()


def test_no_steps_have_no_states_and_no_errors() -> None:
    empty: Any = Inexact(np.zeros((0, 2)), 0.0, SINGLE)
    start = empty.of(np.ones(2))
    for states in (recurrence(empty, empty, start), decay(empty, empty, start)):
        assert states.shape == (0, 2)


def test_a_start_that_is_not_known_leaves_nothing_known() -> None:
    v: Any = Inexact(np.ones((2, 1)), 0.0, SINGLE)
    states: Any = recurrence(v, v, v.of(np.ones(1), np.inf))
    assert np.isinf(states.error).all()
