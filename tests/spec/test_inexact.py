"""Running error analysis: every rule holds for perturbed operands and rounded operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.spec.arithmetic import Arithmetic
from assay.spec.functions import erf, log, log1p, sqrt, tanh
from assay.spec.inexact import Inexact, running_bound, widest
from assay.spec.rounding.conditions import Uncertain
from assay.spec.scalars import exp, maximum, row_max, select, total

KINDS: dict[str, Any] = {
    "float32": np.float32,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
}
Rule = Callable[..., Any]

UNARY: dict[str, tuple[Rule, float]] = {
    "negative": (lambda x: -x, -8.0),
    "absolute": (np.abs, -8.0),
    "square": (np.square, -8.0),
    "cube": (lambda x: x**3, -8.0),
    "exp": (exp, -8.0),
    "expm1": (np.expm1, -8.0),
    "log": (log, 0.01),
    "log1p": (log1p, -0.5),
    "sqrt": (sqrt, 0.0),
    "tanh": (tanh, -8.0),
    "erf": (erf, -4.0),
    "sin": (np.sin, -8.0),
    "cos": (np.cos, -8.0),
    "a third": (lambda x: x * (1 / 3), -8.0),
    "sum": (lambda x: x.sum(), -8.0),
    "sum of rows": (lambda x: np.sum(x, axis=1, keepdims=True), -8.0),
    "mean": (lambda x: np.mean(x, axis=0), -8.0),
    "prefix sums": (lambda x: np.cumsum(x, axis=1), -8.0),
    "total": (total, -8.0),
    "largest": (lambda x: np.max(x, axis=-1), -8.0),
    "row_max": (lambda x: row_max(x, np.ones(x.shape, dtype=bool)), -8.0),
    "relu by comparison": (lambda x: select(x > 0, x, 0), -1.0),
    "abs by comparison": (lambda x: np.where((x < 0) & ~(x > 0), -x, x), -1.0),
    "pad": (lambda x: np.pad(x, ((0, 0), (1, 2))), -8.0),
    "move": (lambda x: np.concatenate([np.flip(x.T, 0), x.reshape(4, 3)[:, ::-1]], 1), -8.0),
    "stack and split": (lambda x: np.stack(np.split(x, 2, axis=1), axis=0), -8.0),
}
BINARY: dict[str, Rule] = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "maximum": maximum,
    "minimum": np.minimum,
    "matmul": lambda x, y: np.matmul(x, np.swapaxes(y, 0, 1)),
    "einsum": lambda x, y: np.einsum("ij,kj->ik", x, y),
    "tensordot": lambda x, y: np.tensordot(x, y, axes=([0, 1], [0, 1])),
    "select": lambda x, y: select(x > y, x * y, y),
    "masked": lambda x, y: np.where(np.eye(3, 4, dtype=bool), x, y),
}


def arithmetic(dtype: str) -> Arithmetic:
    return Arithmetic(dtype, dtype, dtype, exp_ulps=2.0)


def operands(
    seed: int, dtype: str, low: float, count: int, slack: float
) -> tuple[list[Inexact], list[np.ndarray]]:
    """Inexact arrays [3, 4], and numbers of the format that lie within their errors."""
    rng = np.random.default_rng(seed)
    known, near = [], []
    for _ in range(count):
        value = rng.uniform(low, 8.0, size=(3, 4)).astype(KINDS[dtype]).astype(np.float64)
        moved = value * (1 + rng.uniform(-slack, slack, size=value.shape))
        close = np.maximum(moved, low).astype(KINDS[dtype])
        error = np.abs(close.astype(np.float64) - value)
        known.append(Inexact(value, error, arithmetic(dtype)))
        near.append(close)
    return known, near


def worst(got: np.ndarray, want: Inexact) -> float:
    gap = np.abs(got.astype(np.float64) - want.value)
    with np.errstate(all="ignore"):
        return float(np.max(np.where(gap == 0, 0.0, gap / want.error)))


seeds = st.integers(0, 2**32 - 1)
each_kind = pytest.mark.parametrize("dtype", KINDS)


@pytest.mark.parametrize("name", UNARY)
@each_kind
@given(seed=seeds, slack=st.sampled_from([0.0, 0.01, 0.1]))
@settings(max_examples=30)
def test_a_rule_of_one_operand_holds(name: str, dtype: str, seed: int, slack: float) -> None:
    rule, low = UNARY[name]
    (known,), (near,) = operands(seed, dtype, low, 1, slack)
    with np.errstate(all="ignore"):
        assert worst(rule(near), rule(known)) <= 1


@pytest.mark.parametrize("name", BINARY)
@each_kind
@given(seed=seeds, slack=st.sampled_from([0.0, 0.01, 0.1]))
@settings(max_examples=30)
def test_a_rule_of_two_operands_holds(name: str, dtype: str, seed: int, slack: float) -> None:
    if (name, dtype) == ("einsum", "bfloat16"):
        return  # numpy's einsum knows no bfloat16
    known, near = operands(seed, dtype, -8.0, 2, slack)
    with np.errstate(all="ignore"):
        assert worst(BINARY[name](*near), BINARY[name](*known)) <= 1


@pytest.mark.parametrize("name", [n for n in UNARY if n not in ("negative", "absolute")])
def test_the_errors_are_not_slack(name: str) -> None:
    rule, low = UNARY[name]
    (known,), _ = operands(1, "float32", low, 1, 0.0)
    got = rule(known.value * 1.001)
    assert worst(np.asarray(got), rule(known)) > 1


def test_inputs_are_exact_and_stay_exact_while_they_are_moved() -> None:
    bound = running_bound(
        lambda a: {
            "moved": np.flip(a["x"], 0)[:2],
            "negative": -a["x"],
            "zero": a["x"] * 0.0,
            "chosen": np.where(a["mask"], a["x"], 0),
            "count": a["mask"].sum(),
            "added": a["x"] + 1.0,
        },
        {"x": np.array([0.1, 2.0, -3.0]), "mask": np.array([True, False, True])},
        Arithmetic(),
    )
    assert all((bound[n] == 0).all() for n in ("moved", "negative", "zero", "chosen", "count"))
    assert (bound["added"] > 0).all()


def test_a_constant_that_is_not_dyadic_is_rounded() -> None:
    three = Inexact(np.full(1, 3.0), 0.0, Arithmetic())
    assert (three * 0.5).error[0] < 1.5 * 2.0**-24 * 1.1
    assert (three * 0.1).error[0] > 0.3 * 2.0**-24 * 1.9
    assert np.einsum("i,i->i", three, np.array([0.1])).error[0] > 0.3 * 2.0**-24 * 1.9


def test_what_may_overflow_has_no_bound() -> None:
    big = Inexact(np.array([2e19, 1.0]), 0.0, Arithmetic())
    assert np.isinf((big * big).error).tolist() == [True, False]
    assert np.isinf(np.sum(big[:1] * np.full(2, 1e19)).error)
    half = Arithmetic("float16", "float32", "float32")
    bound = running_bound(lambda a: {"y": a["x"] * a["x"]}, {"x": np.array([300.0])}, half)
    assert np.isinf(bound["y"]).all()


def test_what_may_underflow_is_off_by_the_smallest_number() -> None:
    small = Inexact(np.array([1e-30, 0.0]), 0.0, Arithmetic())
    assert (small * small).error.tolist() == [2.0**-149 + (1e-60 * 2.0**-24), 0.0]
    flushed = Inexact(np.array([1e-30]), 0.0, Arithmetic(flush=True))
    assert (flushed * flushed).error[0] >= 2.0**-126


def test_a_division_by_what_may_be_zero_has_no_bound() -> None:
    x = Inexact(np.array([1.0, 1.0]), 0.0, Arithmetic())
    y = Inexact(np.array([1e-9, 1.0]), 1e-8, Arithmetic())
    assert np.isinf((x / y).error).tolist() == [True, False]


def test_an_unsure_condition_admits_either_branch() -> None:
    x = Inexact(np.array([-1e-9, 1.0]), 1e-8, Arithmetic())
    condition: Any = x > 0
    assert Uncertain in type(condition).__mro__
    assert condition.sure.tolist() == [False, True]
    step: Any = np.where(condition, 1.0, 0.0)
    assert step.error.tolist() == [1.0, 0.0]
    opposite: Any = np.where(~condition, 1.0, 0.0)
    assert opposite.value.tolist() == [1.0, 0.0]
    nowhere = condition & np.array([False, False])
    assert nowhere.sure.all()
    assert (condition | np.array([True, True])).sure.all()
    with pytest.raises(TypeError, match="uncertain condition"):
        np.any(condition, axis=0)


def test_a_sure_condition_is_a_plain_mask() -> None:
    x = Inexact(np.array([-1.0, 1.0]), 1e-8, Arithmetic())
    assert isinstance(x > 0, np.ndarray)
    assert (x * (x > 0)).error.tolist() == [0.0, 1e-8]


def test_a_stored_intermediate_costs_a_rounding_of_its_format() -> None:
    plain = Arithmetic("bfloat16", "float32", "float32")
    stored = Arithmetic("bfloat16", "float32", "bfloat16")
    x = np.array([1.1, 2.2])
    errors = [(Inexact(x, 0.0, a) * Inexact(x, 0.0, a)).error for a in (plain, stored)]
    assert (errors[1] > 1000 * errors[0]).all()


def test_what_has_no_rule_is_refused() -> None:
    x = Inexact(np.ones(2), 0.0, Arithmetic())
    for call in (np.arctan, np.linalg.norm, np.sort, np.asarray, lambda v: v**0.5):
        with pytest.raises(TypeError, match=r"no error rule|no array of floats"):
            call(x)
    with pytest.raises(TypeError, match="two operands"):
        np.einsum("i,i,i->i", x, x, x)


def test_the_widest_of_several_bounds_is_taken_by_element() -> None:
    both = widest({"y": np.array([1.0, 4.0])}, {"y": np.array([2.0, 3.0])})
    assert both["y"].tolist() == [2.0, 4.0]
