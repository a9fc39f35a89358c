"""Small numbers of known origin that belong to no single op's file."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from assay.spec.attention import attention, attention_backward, attention_weights
from assay.spec.inexact import running_bound
from assay.spec.layers.embedding import embedding
from assay.spec.layers.layer import map_leading, pointwise
from assay.spec.layers.linear import linear, linear_backward
from assay.spec.masks import causal_mask
from assay.spec.models.catalogue import model
from assay.spec.models.networks import fno
from assay.spec.scalars import select
from assay.spec.softmax import masked_softmax, penalty_softmax, sentinel_softmax
from tests.spec.agreement import arithmetic_of

FILE = Path(__file__).parents[1] / "golden" / "numbers.json"
ENTRIES: dict[str, dict[str, Any]] = {e["name"]: e for e in json.loads(FILE.read_text())}


def array(entry: dict[str, Any], name: str) -> np.ndarray:
    return np.array(entry[name], dtype=np.float64)


def test_a_finite_penalty_leaks_as_much_as_is_known() -> None:
    entry = ENTRIES["penalty_30_row"]
    allowed = array(entry, "allowed").astype(bool)
    weights = penalty_softmax(array(entry, "scores"), allowed, entry["penalty"])
    assert abs(weights[-1] / entry["expected"] - 1) <= entry["error"]
    assert masked_softmax(array(entry, "scores"), allowed)[-1] == 0


def test_a_sentinel_leaks_as_much_as_is_known_and_fills_an_empty_row() -> None:
    entry = ENTRIES["sentinel_leak"]
    scores, allowed = array(entry, "scores"), causal_mask(3, 3)
    leak = sentinel_softmax(scores, allowed, entry["sentinel"])[0, 2]
    assert abs(leak * 1e12 - entry["expected"]) <= entry["error"]
    assert sentinel_softmax(scores, allowed, -1e30)[0, 2] == 0
    nothing = np.zeros((1, 3), dtype=bool)
    assert np.allclose(sentinel_softmax(scores[:1], nothing, -1e30), 1 / 3, atol=1e-15)
    assert (masked_softmax(scores[:1], nothing) == 0).all()
    assert np.exp(-1000.0) == 0


def test_a_blocked_row_gives_zeros_and_takes_no_part_in_gradients() -> None:
    entry = ENTRIES["visible_and_blocked_rows"]
    q, k, v, g = (array(entry, n)[None, None] for n in ("q", "k", "v", "cotangent"))
    mask = array(entry, "allowed").astype(bool)
    assert (attention(q, k, v, mask=mask)[0, 0] == array(entry, "out")).all()
    assert (attention_weights(q, k, mask=mask)[0, 0] == array(entry, "weights")).all()
    found = attention_backward(q, k, v, g, mask=mask)
    for name, gradient in found._asdict().items():
        assert (gradient[0, 0] == array(entry, f"d{name}")).all()


def test_the_gradient_of_a_squared_error_moves_by_the_hessian() -> None:
    entry = ENTRIES["hessian_of_a_squared_error"]
    x = np.array([[Fraction(entry["x"])]], dtype=object)

    def slope(w: int, b: int) -> tuple[Any, Any]:
        weight = np.array([[Fraction(w)]], dtype=object)
        error = linear(x, weight, np.array([Fraction(b)], dtype=object))
        found = linear_backward(x, weight, 2 * error)
        return found.weight[0, 0], found.bias[0]

    here, there = slope(0, 0), slope(*entry["direction"])
    # The error is quadratic: the difference of two gradients is the Hessian times the step.
    assert [b - a for a, b in zip(here, there, strict=True)] == entry["expected"]


def test_a_bias_is_added_to_every_row() -> None:
    entry = ENTRIES["bias_of_row_sums"]
    x = array(entry, "x")
    assert (x.sum(axis=0) == entry["sums"]).all()
    assert (linear(x, np.eye(3), array(entry, "sums")) == array(entry, "expected")).all()


def test_float32_rounds_as_its_bits_say() -> None:
    total = np.float32(0.1) + np.float32(0.2)
    assert total.view(np.uint32) == ENTRIES["float_bits"]["expected"]
    bound = running_bound(
        lambda a: {"sum": a["x"] + a["y"]},
        {"x": np.array(np.float32(0.1), float), "y": np.array(np.float32(0.2), float)},
        arithmetic_of("float32"),
    )
    exact = float(np.float32(0.1)) + float(np.float32(0.2))
    assert 0 < abs(float(total) - exact) <= bound["sum"]


def test_a_row_of_a_batch_is_the_row_alone() -> None:
    entry = ENTRIES["batch_select"]
    square = map_leading(pointwise(lambda x: x * x, lambda x, g: 2 * x * g))
    assert square.forward({}, array(entry, "x"))[entry["row"]].tolist() == entry["expected"]


def test_an_id_beyond_the_vocabulary_is_refused() -> None:
    entry = ENTRIES["vocabulary_of_8"]
    table = np.eye(entry["vocabulary"])
    assert (embedding(np.array(entry["valid"]), table) == table[[0, 7]]).all()
    with pytest.raises(ValueError, match="8"):
        embedding(np.array(entry["invalid"]), table)


def test_a_sum_in_either_order_lies_within_the_bound() -> None:
    entry = ENTRIES["order_of_summation"]
    a, b, c = np.array(entry["terms"], dtype=np.float32)
    assert ((a + b) + c, a + (b + c)) == (entry["left"], entry["right"])
    terms = np.array([a, b, c], dtype=np.float64)
    bound = running_bound(lambda x: {"sum": x["x"].sum()}, {"x": terms}, arithmetic_of("float32"))
    assert bound["sum"] >= 1


def test_a_branch_that_is_not_taken_has_no_influence_where_torch_gives_nan() -> None:
    taken = np.array(False)
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient = np.array(1.0) / np.array(0.0)
        assert select(taken, quotient, 0.0) == 0
        assert np.isnan(quotient * taken)
    zero = torch.zeros((), requires_grad=True)
    torch.where(torch.tensor(False), 0 / zero, 0.0).backward()
    assert zero.grad is not None
    assert zero.grad.isnan()


def test_a_fourier_operator_keeps_the_shape_of_its_signals() -> None:
    entry = ENTRIES["fno_64_shapes"]
    wide = model("fno").preset("wide").config
    params = model("fno").initialise(wide, np.random.default_rng(0))
    x = np.ones((entry["batch"], entry["points"], 1))
    assert fno.forward(wide, params, x).shape == x.shape


def test_every_number_says_where_it_comes_from() -> None:
    assert all(len(entry["origin"]) > 20 for entry in ENTRIES.values())
