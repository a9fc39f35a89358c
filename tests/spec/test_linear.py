"""Linear maps and embedding: values and gradients, exact on fractions."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.spec.arithmetic import Arithmetic
from assay.spec.inexact import running_bound
from assay.spec.layers.embedding import embedding, embedding_backward
from assay.spec.layers.layer import sequential
from assay.spec.layers.leaves import linear_layer
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


def started(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, order: str) -> np.ndarray:
    """x W^T + bias, one product at a time, with the bias before all, amid or behind them."""
    products = [x[..., i, None] * weight[:, i] for i in range(x.shape[-1])]
    at = {"first": 0, "amid": len(products) // 2, "last": len(products)}[order]
    total = np.zeros((), x.dtype)
    for term in (*products[:at], bias, *products[at:]):
        total = total + term
    return total


def dominated() -> Inputs:
    """Products that are far below the bias: each addition to it rounds more than they do."""
    rng = np.random.default_rng(0)
    x, weight = 1e-3 * rng.normal(size=(1, 200, 3)), rng.normal(size=(40, 3))
    inputs = {"x": x, "weight": weight, "bias": 1.0 + rng.random(40)}
    return {n: a.astype(np.float32) for n, a in inputs.items()}


def widened(inputs: Inputs) -> Inputs:
    return {n: a.astype(np.float64) for n, a in inputs.items()}


def bound_of(function: Callable[[Any], np.ndarray], inputs: Inputs) -> np.ndarray:
    return running_bound(lambda a: {"y": function(a)}, widened(inputs), Arithmetic())["y"]


@pytest.mark.parametrize("order", ["first", "amid", "last"])
def test_bound_holds_wherever_the_bias_enters_the_sum(order: str) -> None:
    inputs = dominated()
    error = np.abs(started(**inputs, order=order) - linear(**widened(inputs)))
    assert (error <= op("linear").bound(widened(inputs), {}, Arithmetic())["out"]).all()


@pytest.mark.parametrize("order", ["first", "last"])
def test_bound_of_two_layers_in_a_row_holds_wherever_the_bias_enters(order: str) -> None:
    inputs = {**dominated(), "second": np.full((40, 40), 2.0**-12, np.float32)}
    block = sequential(linear_layer("weight", "bias"), linear_layer("second", "bias"))
    hidden = started(inputs["x"], inputs["weight"], inputs["bias"], order)
    got = started(hidden, inputs["second"], inputs["bias"], order)
    error = np.abs(got - block.forward(widened(inputs), widened(inputs)["x"]))
    assert (error <= bound_of(lambda a: block.forward(a, a["x"]), inputs)).all()


def test_the_rules_of_product_and_sum_alone_hold_for_a_bias_that_is_added_last_only() -> None:
    inputs = dominated()
    last = bound_of(lambda a: np.matmul(a["x"], a["weight"].T) + a["bias"], inputs)
    error = {
        order: np.abs(started(**inputs, order=order) - linear(**widened(inputs)))
        for order in ("first", "last")
    }
    assert (error["last"] <= last).all()
    assert (error["first"] > last).any()


def test_a_product_that_is_stored_before_the_bias_is_added_is_covered() -> None:
    def stored(x: np.ndarray) -> np.ndarray:
        return x.astype(ml_dtypes.bfloat16).astype(np.float64)

    rng = np.random.default_rng(0)
    shapes = {"x": (1, 200, 3), "weight": (40, 3), "bias": (40,)}
    inputs = {n: stored(rng.normal(size=shape)) for n, shape in shapes.items()}
    got = stored(stored(inputs["x"] @ inputs["weight"].T) + inputs["bias"])
    error = np.abs(got - linear(**inputs))
    for intermediate, covers in (("bfloat16", True), ("float32", False)):
        arithmetic = Arithmetic("bfloat16", "float32", intermediate)
        assert (error <= op("linear").bound(inputs, {}, arithmetic)["out"]).all() == covers


def test_a_bias_without_products_and_products_without_a_bias_keep_their_bounds() -> None:
    arithmetic, bias = Arithmetic("float64", "float64", "float64"), np.array([0.1, 0.0])
    for x in (np.zeros((1, 1, 3)), np.zeros((1, 1, 0))):
        inputs = {"x": x, "weight": np.ones((2, x.shape[-1])), "bias": bias}
        assert not op("linear").bound(inputs, {}, arithmetic)["out"].any()
    product = {"x": np.ones((1, 1, 3)), "weight": np.ones((2, 3))}
    alone = op("linear").bound(product, {}, arithmetic)["out"]
    beside = op("linear").bound({**product, "bias": bias}, {}, arithmetic)["out"]
    assert beside[0, 0, 1] == alone[0, 0, 1] > 0


def test_a_partial_sum_that_overflows_beside_its_bias_has_no_bound() -> None:
    for bias, finite in ((1e38, True), (3e38, False)):
        weight = np.array([[1e38, -1e38]])
        inputs = {"x": np.ones((1, 1, 2)), "weight": weight, "bias": np.array([bias])}
        assert np.isfinite(op("linear").bound(inputs, {}, Arithmetic())["out"]).all() == finite
