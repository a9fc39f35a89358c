"""Linear maps and embedding: values and gradients, exact on fractions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.spec.arithmetic import Arithmetic
from assay.spec.layers.embedding import embedding, embedding_backward
from assay.spec.layers.linear import linear, linear_backward
from assay.spec.ops import op
from tests.spec.agreement import (
    assert_agrees_with_torch,
    assert_encloses,
    assert_notices,
    assert_rounded_within_bounds,
)

Inputs = dict[str, np.ndarray]
SIZES = st.sampled_from([0, 1, 2, 3, 5, 7, 16])
DTYPES = st.sampled_from(["float32", "float64"])
fraction: Any = np.frompyfunc(lambda x: Fraction(int(x), 3), 1, 1)


def by_torch_linear(tensors: dict[str, Any], rules: Any) -> dict[str, Any]:
    return {"out": F.linear(tensors["x"], tensors["weight"], tensors.get("bias"))}


def by_torch_embedding(tensors: dict[str, Any], rules: Any) -> dict[str, Any]:
    return {"out": F.embedding(tensors["ids"], tensors["table"], **rules)}


@st.composite
def maps(draw: st.DrawFn) -> Inputs:
    leading = draw(st.lists(SIZES, max_size=2))
    inputs, outputs = draw(SIZES), draw(SIZES)
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    made = {"x": rng.normal(size=(*leading, inputs)), "weight": rng.normal(size=(outputs, inputs))}
    return {**made, "bias": rng.normal(size=outputs)} if draw(st.booleans()) else made


@st.composite
def lookups(draw: st.DrawFn) -> tuple[Inputs, dict[str, Any]]:
    leading, rows, width = draw(st.lists(SIZES, max_size=2)), draw(SIZES.filter(bool)), draw(SIZES)
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    padding = draw(st.none() | st.integers(0, rows - 1))
    ids = rng.integers(0, rows, size=leading)
    return {"ids": ids, "table": rng.normal(size=(rows, width))}, {"padding_idx": padding}


@settings(max_examples=200)
@given(inputs=maps(), dtype=DTYPES)
def test_linear_map_and_its_gradients_agree_with_torch(inputs: Inputs, dtype: str) -> None:
    assert_agrees_with_torch("linear", inputs, {}, by_torch_linear, dtype)


@settings(max_examples=200)
@given(case=lookups(), dtype=DTYPES)
def test_embedding_and_its_gradient_agree_with_torch(
    case: tuple[Inputs, dict[str, Any]], dtype: str
) -> None:
    assert_agrees_with_torch("embedding", *case, by_torch_embedding, dtype)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@settings(max_examples=20)
@given(inputs=maps(), case=lookups())
def test_rounding_at_every_operation_stays_within_the_bounds(
    dtype: str, inputs: Inputs, case: tuple[Inputs, dict[str, Any]]
) -> None:
    assert_rounded_within_bounds("linear", inputs, {}, dtype)
    assert_rounded_within_bounds("embedding", *case, dtype)


def test_an_error_of_a_ten_thousandth_in_one_input_is_noticed() -> None:
    rng = np.random.default_rng(0)
    inputs = {"x": rng.normal(size=(4, 16)), "weight": rng.normal(size=(8, 16)), "bias": np.ones(8)}
    for name in inputs:
        wrong = {n: a.copy() for n, a in inputs.items()}
        wrong[name].flat[3] += 1e-4
        assert_notices("linear", inputs, {}, wrong)
    table = {"ids": np.array([1, 2]), "table": rng.normal(size=(4, 2))}
    assert_notices("embedding", table, {}, {**table, "table": table["table"] * (1 + 1e-7)})


def test_linear_map_and_embedding_run_on_balls() -> None:
    rng = np.random.default_rng(1)
    inputs = {"x": rng.normal(size=(2, 3)), "weight": rng.normal(size=(4, 3))}
    assert_encloses("linear", inputs, {})
    assert_encloses("linear", {**inputs, "bias": rng.normal(size=4)}, {})
    lookup = {"ids": np.array([[1, 0, 1]]), "table": rng.normal(size=(3, 2))}
    assert_encloses("embedding", lookup, {"padding_idx": 0})


def test_linear_map_is_exact_on_fractions() -> None:
    x, weight, bias = (
        fraction(a) for a in (np.arange(6).reshape(2, 3), np.ones((1, 3)), np.ones(1))
    )
    assert linear(x, weight, bias).tolist() == [[Fraction(2, 3)], [Fraction(5, 3)]]
    grads = linear_backward(x, weight, fraction(np.array([[3], [6]])))
    assert grads.x.tolist() == [[Fraction(1, 3)] * 3, [Fraction(2, 3)] * 3]
    assert grads.weight.tolist() == [[Fraction(2), Fraction(3), Fraction(4)]]
    assert grads.bias.tolist() == [Fraction(3)]


def test_embedding_is_exact_on_fractions_and_sums_repeated_rows() -> None:
    table, ids = fraction(np.arange(6).reshape(3, 2)), np.array([2, 0, 2])
    assert embedding(ids, table).tolist() == table[[2, 0, 2]].tolist()
    gradient = embedding_backward(ids, table, fraction(np.arange(6).reshape(3, 2)))
    assert gradient.tolist() == fraction(np.array([[2, 3], [0, 0], [4, 6]])).tolist()


def test_padding_and_unused_rows_get_no_gradient_even_beside_a_cotangent_that_is_not_finite() -> (
    None
):
    table, ids = np.zeros((4, 1)), np.array([0, 1, 2])
    cotangent = np.array([[np.nan], [np.inf], [1.0]])
    gradient = embedding_backward(ids, table, cotangent, padding_idx=0)
    assert gradient.ravel().tolist() == [0.0, np.inf, 1.0, 0.0]


def test_rows_far_down_a_large_table_are_found_bit_for_bit() -> None:
    table = np.random.default_rng(0).normal(size=(60_000, 2)).astype(np.float32)
    ids = np.array([59_999, 0, 40_000, 59_999])
    assert (embedding(ids, table) == table[ids]).all()
    gradient = embedding_backward(ids, table, np.ones((4, 2), np.float32))
    assert gradient[59_999].tolist() == [2.0, 2.0]
    assert gradient.sum() == 8


def test_a_row_looked_up_once_is_copied_and_its_bound_is_zero() -> None:
    inputs = {"ids": np.array([0, 1, 1, 1]), "table": np.ones((3, 1))}
    entry = op("embedding")
    assert not entry.bound(inputs, {}, Arithmetic())["out"].any()
    bound = entry.backward_bound(inputs, {"out": np.ones((4, 1))}, {}, Arithmetic())[
        "table"
    ].ravel()
    assert bound[0] == bound[2] == 0
    assert 3 * 3 * 2.0**-24 <= bound[1] < 4 * 3 * 2.0**-24


def test_inputs_that_do_not_fit_are_named() -> None:
    with pytest.raises(ValueError, match=r"x \(2, 3\) and weight \(4, 5\) do not fit"):
        linear(np.ones((2, 3)), np.ones((4, 5)))
    with pytest.raises(ValueError, match=r"bias \(3,\) must have the shape \(4,\)"):
        linear(np.ones((2, 3)), np.ones((4, 3)), np.ones(3))
    with pytest.raises(ValueError, match="ids holds 3; valid: 0 to 2"):
        embedding(np.array([0, 3]), np.ones((3, 1)))
    with pytest.raises(ValueError, match="ids holds -1; valid: 0 to 2"):
        embedding(np.array([0, -1]), np.ones((3, 1)))
    with pytest.raises(ValueError, match="ids of dtype float64 must be integers"):
        embedding(np.ones(1), np.ones((3, 1)))
    with pytest.raises(ValueError, match="padding_idx=3 is not a row; valid: 0 to 2"):
        embedding(np.array([0]), np.ones((3, 1)), padding_idx=3)
    with pytest.raises(ValueError, match=r"table \(3,\) must have 2 axes"):
        embedding(np.array([0]), np.ones(3))
