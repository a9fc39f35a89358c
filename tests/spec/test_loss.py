"""Log-softmax and cross-entropy: values, gradients, ignored rows, smoothing, extreme logits."""

from __future__ import annotations

from typing import Any

import flint
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.spec.arithmetic import Arithmetic
from assay.spec.layers.cross_entropy import cross_entropy, cross_entropy_backward
from assay.spec.layers.log_softmax import log_softmax, log_softmax_backward
from assay.spec.layers.loss_bounds import log_softmax_bound
from assay.spec.ops import op
from tests.spec.agreement import (
    assert_agrees_with_torch,
    assert_encloses,
    assert_notices,
    assert_rounded_within_bounds,
    balls,
)

DTYPES = st.sampled_from(["float32", "float64"])
REDUCTIONS = ("none", "mean", "sum")


def by_torch_log_softmax(tensors: dict[str, Any], rules: Any) -> dict[str, Any]:
    return {"out": F.log_softmax(tensors["x"], -1)}


def by_torch(tensors: dict[str, Any], rules: Any) -> dict[str, Any]:
    return {"loss": F.cross_entropy(tensors["logits"], tensors["targets"], **rules)}


@st.composite
def logits(draw: st.DrawFn, least: int = 0) -> np.ndarray:
    sizes = st.sampled_from([n for n in (0, 1, 2, 3, 7, 17) if n >= least])
    shape = (draw(sizes), draw(sizes))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    scale, shift = draw(st.sampled_from([0.1, 1.0, 8.0])), draw(st.sampled_from([0.0, 50.0]))
    return rng.normal(size=shape) * scale + shift


@st.composite
def cases(draw: st.DrawFn) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    x = draw(logits(least=1))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    targets = rng.integers(0, x.shape[1], size=x.shape[0])
    ignored = draw(st.sampled_from([-100, 0, -1]))
    rules: dict[str, Any] = {
        "reduction": draw(st.sampled_from(REDUCTIONS)),
        "label_smoothing": draw(st.sampled_from([0.0, 0.1, 0.5, 1.0])),
        "ignore_index": ignored,
    }
    targets[rng.random(x.shape[0]) < 0.3] = ignored
    if (targets == ignored).all():
        rules["reduction"] = "sum"
    return {"logits": x, "targets": targets}, rules


@settings(max_examples=200)
@given(x=logits(), dtype=DTYPES)
def test_log_softmax_and_its_gradient_agree_with_torch(x: np.ndarray, dtype: str) -> None:
    assert_agrees_with_torch("log_softmax", {"x": x}, {}, by_torch_log_softmax, dtype)


@settings(max_examples=200)
@given(case=cases(), dtype=DTYPES)
def test_cross_entropy_and_its_gradient_agree_with_torch(case: Any, dtype: str) -> None:
    inputs, rules = case
    assert_agrees_with_torch("cross_entropy", inputs, rules, by_torch, dtype)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@settings(max_examples=15)
@given(case=cases())
def test_rounding_at_every_operation_stays_within_the_bounds(dtype: str, case: Any) -> None:
    inputs, rules = case
    assert_rounded_within_bounds("cross_entropy", inputs, rules, dtype)
    assert_rounded_within_bounds("log_softmax", {"x": inputs["logits"]}, {}, dtype)


def test_an_error_of_a_thousandth_in_one_logit_is_noticed() -> None:
    x = np.random.default_rng(0).normal(size=(4, 16))
    wrong = x.copy()
    wrong[1, 2] += 1e-3
    assert_notices("log_softmax", {"x": x}, {}, {"x": wrong})
    targets = np.array([0, 2, -100, 5])
    for reduction in REDUCTIONS:
        rules = {"reduction": reduction, "label_smoothing": 0.1}
        pair = ({"logits": x, "targets": targets}, {"logits": wrong, "targets": targets})
        assert_notices("cross_entropy", pair[0], rules, pair[1])


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("smoothing", [0.0, 0.25])
def test_losses_run_on_balls(reduction: str, smoothing: float) -> None:
    x = np.random.default_rng(0).normal(size=(3, 4))
    inputs = {"logits": x, "targets": np.array([1, -100, 3])}
    assert_encloses("cross_entropy", inputs, {"reduction": reduction, "label_smoothing": smoothing})
    assert_encloses("log_softmax", {"x": x}, {})


def test_logits_far_apart_give_their_differences() -> None:
    x = np.array([[-800.0, -1600.0, 0.0]])
    assert log_softmax(x).tolist() == [[-800.0, -1600.0, 0.0]]
    with np.errstate(divide="ignore"):
        assert np.isneginf(np.log(np.exp(x) / np.exp(x).sum())[0, :2]).all()
    for target, loss in enumerate((800.0, 1600.0, 0.0)):
        assert float(cross_entropy(x, np.array([target]))) == loss
    assert cross_entropy_backward(x, np.array([1]), np.array(1.0)).tolist() == [[0.0, -1.0, 1.0]]
    before, flint.ctx.prec = flint.ctx.prec, 1300
    try:
        ball = log_softmax(balls({"x": x})["x"])
        assert abs(ball[0, 2]) < 1e-300
        assert abs(ball[0, 1] + 1600) < 1e-300
    finally:
        flint.ctx.prec = before


def test_a_probability_that_underflows_has_a_gradient_within_the_bounds() -> None:
    inputs = {"logits": np.array([[0.0, -760.0, -744.0]]), "targets": np.array([1])}
    for dtype in ("float32", "float64"):
        assert_agrees_with_torch("cross_entropy", inputs, {}, by_torch, dtype)
        assert_agrees_with_torch(
            "log_softmax", {"x": inputs["logits"]}, {}, by_torch_log_softmax, dtype
        )


def test_uniform_logits_give_the_logarithm_of_the_vocabulary() -> None:
    """ln 65 = 4.174387269895637, ln 10 = 2.302585092994046, ln 1000 = 6.907755278982137."""
    for size, wanted in (
        (65, 4.174387269895637),
        (10, 2.302585092994046),
        (1000, 6.907755278982137),
    ):
        loss = cross_entropy(np.full((2, size), 7.0), np.array([0, size - 1]))
        assert abs(float(loss) - wanted) < 1e-12


def test_a_large_vocabulary_is_summed_within_the_bound() -> None:
    x = np.random.default_rng(0).normal(size=(3, 50_000)).astype(np.float32)
    inputs = {"logits": x, "targets": np.array([0, 49_999, 7])}
    assert_agrees_with_torch("cross_entropy", inputs, {}, by_torch, "float32")
    wide = {**inputs, "logits": x.astype(np.float64)}
    bound = op("cross_entropy").bound(wide, {}, Arithmetic())["loss"]
    assert bound < 0.01


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("poison", [np.nan, np.inf, 1e308])
def test_an_ignored_row_has_no_influence_whatever_it_holds(reduction: str, poison: float) -> None:
    x, targets = np.array([[0.5, -1.0], [2.0, 3.0]]), np.array([1, -100])
    bad = x.copy()
    bad[1, 0] = poison
    g = np.array([1.0, 1.0]) if reduction == "none" else np.array(1.0)
    rules: dict[str, Any] = {"reduction": reduction, "label_smoothing": 0.1}
    with np.errstate(all="ignore"):
        losses = [cross_entropy(a, targets, **rules) for a in (x, bad)]
        grads = [cross_entropy_backward(a, targets, g, **rules) for a in (x, bad)]
    assert (losses[0] == losses[1]).all()
    assert (grads[0] == grads[1]).all()
    assert not grads[1][1].any()


def test_torch_gives_an_ignored_row_that_holds_infinity_a_gradient_of_nan() -> None:
    """Finding: torch multiplies the row's probabilities by 0 in place of leaving it out."""
    x = torch.tensor([[0.5, -1.0], [float("inf"), 3.0]], requires_grad=True)
    loss = F.cross_entropy(x, torch.tensor([1, -100]))
    loss.backward()
    assert torch.isfinite(loss)
    assert x.grad is not None
    assert torch.isnan(x.grad[1]).any()


def test_a_mean_of_no_rows_is_what_the_policy_says() -> None:
    x, targets = np.zeros((2, 3)), np.array([-100, -100])
    assert np.isnan(cross_entropy(x, targets))
    assert cross_entropy(x, targets, all_ignored="zero") == 0
    for policy in ("nan", "zero"):
        rules: dict[str, Any] = {"all_ignored": policy}
        assert cross_entropy(x, targets, reduction="sum", **rules) == 0
        assert not cross_entropy(x, targets, reduction="none", **rules).any()
        assert not cross_entropy_backward(x, targets, np.array(1.0), **rules).any()
    empty = np.zeros((0, 3)), np.zeros(0, dtype=int)
    assert np.isnan(cross_entropy(*empty))
    assert cross_entropy(*empty, all_ignored="zero") == 0
    exact = balls({"x": x})["x"]
    assert cross_entropy(exact, targets, all_ignored="zero").item() == 0
    assert flint.arb(cross_entropy(exact, targets).item()).is_nan()


def test_torch_has_the_policy_nan_and_sums_to_zero() -> None:
    """Finding: the mean over no row is NaN. Exact sum and count: 0 and 0."""
    x, targets = torch.zeros(2, 3), torch.tensor([-100, -100])
    assert torch.isnan(F.cross_entropy(x, targets))
    assert F.cross_entropy(x, targets, reduction="sum") == 0


def test_smoothing_mixes_the_loss_with_its_mean_over_the_classes() -> None:
    x = np.random.default_rng(0).normal(size=(2, 5))
    by_class = np.stack([cross_entropy(x, np.full(2, v), reduction="none") for v in range(5)])
    mixed = cross_entropy(x, np.array([3, 3]), label_smoothing=0.25, reduction="none")
    assert np.allclose(mixed, 0.75 * by_class[3] + 0.25 * by_class.mean(axis=0), rtol=1e-14)
    gradient = cross_entropy_backward(x, np.array([3, 0]), np.array(1.0), label_smoothing=0.25)
    assert np.abs(gradient.sum(axis=-1)).max() < 1e-15


def test_leading_axes_are_rows_and_reductions_fit_together() -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 4))
    targets = np.array([[0, 1, -100], [3, 2, 1]])
    each = cross_entropy(x, targets, reduction="none")
    assert each.shape == (2, 3)
    assert each[0, 2] == 0
    assert np.isclose(cross_entropy(x, targets, reduction="sum"), each.sum(), rtol=1e-15)
    assert np.isclose(cross_entropy(x, targets), each.sum() / 5, rtol=1e-15)
    flat = cross_entropy_backward(x.reshape(6, 4), targets.reshape(6), np.array(1.0))
    assert (cross_entropy_backward(x, targets, np.array(1.0)).reshape(6, 4) == flat).all()


def online_log_softmax(x: np.ndarray, block: int) -> np.ndarray:
    """Maximum and mass kept block by block, and rescaled when the maximum rises."""
    top, mass = np.full((len(x), 1), -np.inf, x.dtype), np.zeros((len(x), 1), x.dtype)
    for start in range(0, x.shape[1], block):
        part = x[:, start : start + block]
        higher = np.maximum(top, part.max(axis=-1, keepdims=True))
        mass = mass * np.exp(top - higher) + np.exp(part - higher).sum(axis=-1, keepdims=True)
        top = higher
    return x - (top + np.log(mass))


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("order", ["drawn", "rising"])
def test_a_mass_that_is_summed_in_blocks_stays_within_the_bounds(dtype: Any, order: str) -> None:
    x = np.random.default_rng(0).normal(size=(8, 40)) * 4
    x = (np.sort(x) if order == "rising" else x).astype(dtype)
    name = np.dtype(dtype).name
    bounds = [
        log_softmax_bound(x.astype(np.float64), Arithmetic(name, name, name, 4.0, block=block))
        for block in (0, 1)
    ]
    gap = np.abs(online_log_softmax(x, 1) - log_softmax(x.astype(np.longdouble)))
    assert (gap <= bounds[1]).all()
    assert (bounds[0] < bounds[1]).all()


def test_empty_classes_and_shifted_logits() -> None:
    assert log_softmax(np.zeros((2, 0))).shape == (2, 0)
    assert log_softmax_backward(np.zeros((2, 0)), np.zeros((2, 0))).shape == (2, 0)
    nothing = np.zeros((2, 0)), np.array([-100, -100])
    assert cross_entropy(*nothing, reduction="sum") == 0
    x = np.random.default_rng(0).normal(size=(2, 5))
    assert np.abs(log_softmax(x + 16.0) - log_softmax(x)).max() < 1e-14
    for row in (log_softmax(x), log_softmax(x - 1e3)):
        assert np.abs(np.exp(row).sum(axis=-1) - 1).max() < 1e-12


def test_inputs_that_do_not_fit_are_named() -> None:
    x = np.zeros((2, 3))
    with pytest.raises(ValueError, match="targets holds 3; valid: 0 to 2, and ignore_index=-100"):
        cross_entropy(x, np.array([0, 3]))
    with pytest.raises(ValueError, match=r"targets \(3,\) must have the shape of logits \(2, 3\)"):
        cross_entropy(x, np.array([0, 1, 2]))
    with pytest.raises(ValueError, match="targets of dtype float64 must be integers"):
        cross_entropy(x, np.zeros(2))
    with pytest.raises(ValueError, match=r"label_smoothing=2.0 must lie in \[0, 1\]"):
        cross_entropy(x, np.array([0, 1]), label_smoothing=2.0)
    with pytest.raises(ValueError, match="reduction='max' is unknown; valid: 'mean', 'none'"):
        cross_entropy(x, np.array([0, 1]), reduction="max")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="all_ignored='one' is unknown; valid: 'nan', 'zero'"):
        cross_entropy(x, np.array([0, 1]), all_ignored="one")  # type: ignore[arg-type]
