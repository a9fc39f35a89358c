"""Norms, losses and activations reproduce values whose origin is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assay.spec.layers.activations import relu
from assay.spec.layers.cross_entropy import cross_entropy
from assay.spec.layers.layer_norm import layer_norm, layer_norm_backward
from assay.spec.layers.log_softmax import log_softmax
from assay.spec.layers.standardize import standardize

ENTRIES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "golden" / "layers.json").read_text()
)


def entries(kind: str) -> pytest.MarkDecorator:
    chosen = [pytest.param(e, id=e["name"]) for e in ENTRIES if e["kind"] == kind]
    return pytest.mark.parametrize("entry", chosen)


def check(entry: dict[str, Any], got: Any, name: str | None = None) -> None:
    expected = entry["expected"] if name is None else entry["expected"][name]
    want = np.array(expected, dtype=np.float64)
    assert np.shape(got) == want.shape
    gap = np.where(np.isnan(want) & np.isnan(got), 0.0, np.abs(got - want))
    assert np.max(gap) <= entry["error"]


@entries("layer_norm")
def test_layer_norm_equals_worked_example(entry: dict[str, Any]) -> None:
    x, weight, bias = (np.array(entry[n]) for n in ("x", "weight", "bias"))
    check(entry, layer_norm(x, weight, bias, eps=entry["eps"]), "out")
    grads = layer_norm_backward(x, weight, np.ones(x.shape), eps=entry["eps"])
    check(entry, grads.x, "x")
    check(entry, grads.weight, "weight")


@entries("rate")
def test_eps_is_added_to_the_variance_inside_the_root(entry: dict[str, Any]) -> None:
    rate = standardize(np.full(3, entry["variance"]), entry["eps"]).rate
    check(entry, entry["away"] * rate[0])


@entries("log_softmax")
def test_log_softmax_equals_worked_example(entry: dict[str, Any]) -> None:
    check(entry, log_softmax(np.array(entry["x"])))


@entries("uniform_loss")
def test_equal_logits_cost_the_logarithm_of_the_classes(entry: dict[str, Any]) -> None:
    check(entry, cross_entropy(np.full((3, entry["classes"]), 0.5), np.array([0, 1, 2])))


@entries("all_ignored")
def test_no_row_that_counts_gives_what_the_policy_says(entry: dict[str, Any]) -> None:
    x, targets = np.zeros((2, entry["classes"])), np.array([-100, -100])
    check(entry, cross_entropy(x, targets, reduction="sum"), "sum")
    check(entry, cross_entropy(x, targets, all_ignored="zero"), "zero")
    check(entry, cross_entropy(x, targets, all_ignored="nan"), "nan")


@entries("ignored_row")
def test_a_row_counts_only_where_it_is_active(entry: dict[str, Any]) -> None:
    # ln(1 + exp(x)) = loss for x = ln(exp(loss) - 1).
    x = np.array([[0.0, np.log(np.expm1(entry["loss"]))]])
    check(entry, cross_entropy(x, np.array([0]), reduction="none")[0], "active")
    check(entry, cross_entropy(x, np.array([-100]), reduction="none")[0], "inactive")


@entries("residual_relu")
def test_residual_rectifier_equals_worked_example(entry: dict[str, Any]) -> None:
    x = np.array(entry["x"])
    check(entry, x + relu(x))


def test_every_entry_says_where_it_comes_from() -> None:
    assert len(ENTRIES) >= 9
    assert all(len(entry["origin"]) > 20 for entry in ENTRIES)
