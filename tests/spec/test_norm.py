"""Layer, root mean square, group and batch normalisation: values, gradients, laws, findings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import flint
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.spec.arithmetic import Arithmetic
from assay.spec.layers.batch_norm import batch_norm, batch_norm_backward
from assay.spec.layers.group_norm import group_norm, group_norm_backward
from assay.spec.layers.layer_norm import layer_norm, layer_norm_backward
from assay.spec.layers.rms_norm import rms_norm, rms_norm_backward
from assay.spec.ops import op
from tests.spec.agreement import (
    assert_agrees_with_torch,
    assert_encloses,
    assert_notices,
    assert_rounded_within_bounds,
    balls,
)

NAMES = ("layer_norm", "rms_norm", "group_norm", "batch_norm")
FORWARD: dict[str, Callable[..., Any]] = {
    "layer_norm": layer_norm,
    "rms_norm": rms_norm,
    "group_norm": group_norm,
    "batch_norm": batch_norm,
}
BACKWARD: dict[str, Callable[..., Any]] = {
    "layer_norm": layer_norm_backward,
    "rms_norm": rms_norm_backward,
    "group_norm": group_norm_backward,
    "batch_norm": batch_norm_backward,
}
each = pytest.mark.parametrize("name", NAMES)
centred = pytest.mark.parametrize("name", ["layer_norm", "group_norm", "batch_norm"])


class Case(NamedTuple):
    """One call of a norm."""

    name: str
    inputs: dict[str, np.ndarray]
    attributes: dict[str, Any]


def torch_norm(name: str, x: Any, weight: Any, bias: Any, rules: Any) -> torch.Tensor:
    eps = rules.get("eps", 1e-5)
    if name == "layer_norm":
        return F.layer_norm(x, x.shape[-1:], weight, bias, eps)
    if name == "rms_norm":
        return F.rms_norm(x, x.shape[-1:], weight, eps)
    if name == "group_norm":
        return F.group_norm(x, rules.get("groups", 1), weight, bias, eps)
    return F.batch_norm(x, None, None, weight, bias, training=True, eps=eps)


def by_torch(name: str) -> Any:
    def function(tensors: dict[str, Any], rules: Any) -> dict[str, Any]:
        x, weight, bias = (tensors.get(n) for n in ("x", "weight", "bias"))
        return {"out": torch_norm(name, x, weight, bias, rules)}

    return function


def made(
    name: str,
    shape: tuple[int, ...],
    seed: int,
    offset: float = 0.0,
    affine: bool = True,
    **rules: Any,
) -> Case:
    rng = np.random.default_rng(seed)
    features = shape[-1] if name in ("layer_norm", "rms_norm") else shape[1]
    inputs = {"x": rng.normal(size=shape) + offset}
    if affine:
        inputs["weight"] = rng.normal(size=features)
    if affine and name != "rms_norm":
        inputs["bias"] = rng.normal(size=features)
    return Case(name, inputs, rules)


@st.composite
def cases(draw: st.DrawFn, name: str) -> Case:
    sizes = st.sampled_from([1, 2, 3, 5, 7, 8])
    groups = draw(st.sampled_from([1, 2, 3]))
    # A slice of a single entry is looked at on its own, below.
    least = {"layer_norm": 2, "rms_norm": 1, "group_norm": 2, "batch_norm": 1}[name]
    middle, last = (
        draw(sizes),
        draw(st.sampled_from([n for n in (1, 2, 3, 5, 13, 17) if n >= least])),
    )
    batch = draw(sizes) + (1 if name == "batch_norm" else 0)
    shape = (batch, middle * groups if name == "group_norm" else middle, last)
    rules: dict[str, Any] = {"groups": groups} if name == "group_norm" else {}
    if draw(st.booleans()):
        rules["eps"] = draw(st.sampled_from([1e-5, 1e-3, 1e-6, 0.5]))
    offset = draw(st.sampled_from([0.0, 1.0, -30.0]))
    return made(name, shape, draw(st.integers(0, 10**6)), offset, draw(st.booleans()), **rules)


@each
@settings(max_examples=200)
@given(data=st.data(), dtype=st.sampled_from(["float32", "float64"]))
def test_norm_and_its_gradients_agree_with_torch(
    name: str, data: st.DataObject, dtype: str
) -> None:
    case = data.draw(cases(name))
    assert_agrees_with_torch(name, case.inputs, case.attributes, by_torch(name), dtype)


@each
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@settings(max_examples=10)
@given(data=st.data())
def test_norm_rounded_at_every_operation_stays_within_its_bounds(
    name: str, dtype: str, data: st.DataObject
) -> None:
    case = data.draw(cases(name))
    assert_rounded_within_bounds(name, case.inputs, case.attributes, dtype)


@each
def test_an_error_of_a_thousandth_in_one_input_is_noticed(name: str) -> None:
    rules: dict[str, Any] = {"groups": 2} if name == "group_norm" else {}
    case = made(name, (3, 4, 16), 0, **rules)
    for spoilt in case.inputs:
        wrong = {n: a.copy() for n, a in case.inputs.items()}
        wrong[spoilt].flat[1] += 1e-3
        assert_notices(name, case.inputs, case.attributes, wrong)


@each
def test_norm_runs_on_balls(name: str) -> None:
    rules: dict[str, Any] = {"groups": 2} if name == "group_norm" else {}
    case = made(name, (2, 4, 3), 1, **rules)
    assert_encloses(name, case.inputs, case.attributes)
    assert_encloses(name, {"x": case.inputs["x"]}, case.attributes)


@each
@pytest.mark.parametrize("shape", [(0, 4, 3), (2, 4, 0), (2, 0, 3), (0, 0, 0)])
def test_empty_axes_give_empty_results_and_zero_gradients(
    name: str, shape: tuple[int, ...]
) -> None:
    case = made(name, shape, 0)
    entry = op(name)
    out = entry.forward(case.inputs, {})
    grads = entry.backward(case.inputs, out, {})
    bounds = entry.backward_bound(case.inputs, out, {}, Arithmetic())
    assert out["out"].shape == entry.bound(case.inputs, {}, Arithmetic())["out"].shape == shape
    for n, rules in case.inputs.items():
        assert grads[n].shape == bounds[n].shape == rules.shape
        assert not grads[n].any()


@centred
@pytest.mark.parametrize("value", [1.0, 1e3, -1e6, 1e7, 2.0**-140])
def test_a_constant_slice_gives_exactly_the_bias(name: str, value: float) -> None:
    inputs = balls({"x": np.full((2, 4, 3), value), "weight": np.full(4, 2.0)})
    bias = balls({"b": np.arange(4.0)})["b"]
    rules = {"groups": 2} if name == "group_norm" else {}
    if name == "layer_norm":
        inputs["weight"], bias = inputs["weight"][:3], bias[:3]
    out = FORWARD[name](inputs["x"], inputs["weight"], bias, **rules)
    shape = (3,) if name == "layer_norm" else (4, 1)
    wanted = np.broadcast_to(bias.reshape(shape), out.shape)
    assert all(a == b for a, b in zip(out.flat, wanted.flat, strict=True))


@centred
def test_shifting_a_slice_changes_nothing_and_scaling_scales_eps(name: str) -> None:
    case = made(name, (2, 4, 5), 3)
    x, weight, bias = (case.inputs[n] for n in ("x", "weight", "bias"))
    rules = {"groups": 2} if name == "group_norm" else {}
    plain = FORWARD[name](x, weight, bias, **rules)
    shifted = FORWARD[name](x + 3.0, weight, bias, **rules)
    scaled = FORWARD[name](8.0 * x, weight, bias, eps=64.0 * 1e-5, **rules)
    assert np.abs(shifted - plain).max() < 1e-13
    assert np.abs(scaled - plain).max() < 1e-15
    gradient = BACKWARD[name](x, None, plain, **rules).x
    rows = {"layer_norm": (2,), "batch_norm": (0, 2), "group_norm": ()}[name]
    sums = gradient.reshape(2, 2, 10).sum(-1) if name == "group_norm" else gradient.sum(axis=rows)
    assert np.abs(sums).max() < 1e-13


def test_root_mean_square_norm_keeps_the_mean_and_scales_with_eps() -> None:
    x = np.random.default_rng(0).normal(size=(2, 5)) + 1.0
    assert np.allclose(rms_norm(4.0 * x, eps=16e-5), rms_norm(x), rtol=1e-14, atol=0)
    assert not np.allclose(rms_norm(x), layer_norm(x), atol=0.1)
    centred = x - x.mean(axis=-1, keepdims=True)
    assert np.allclose(rms_norm(centred), layer_norm(x), rtol=1e-13, atol=1e-14)


def test_one_group_of_one_position_is_layer_norm_and_each_channel_its_own_group_batch_norm() -> (
    None
):
    x = np.random.default_rng(1).normal(size=(3, 4))
    assert np.allclose(group_norm(x, groups=1), layer_norm(x), atol=1e-15)
    alone = np.random.default_rng(2).normal(size=(1, 4, 6))
    assert np.allclose(group_norm(alone, groups=4), batch_norm(alone), atol=1e-15)


def test_eps_stands_inside_the_root() -> None:
    """At zero variance the deviation is sqrt(eps), not eps: 2 / sqrt(1e-5) = 632.45553203."""
    x = np.array([[2.0, -2.0]])
    inside = layer_norm(x, eps=1e-5)[0, 0]
    assert inside == 2.0 / np.sqrt(4.0 + 1e-5)
    assert layer_norm(np.zeros((1, 2)), eps=1e-5).tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("value", [1.0, 1e3, 1e6, 1e7])
def test_over_one_feature_the_bias_comes_out_and_no_gradient_goes_in(value: float) -> None:
    x, weight, bias, one = balls(
        {
            "x": np.full((1, 1), value),
            "w": np.full(1, 2.0),
            "b": np.full(1, 3.0),
            "g": np.ones((1, 1)),
        }
    ).values()
    assert layer_norm(x, weight, bias)[0, 0] == 3
    grads = layer_norm_backward(x, weight, one)
    assert grads.x[0, 0] == 0
    assert grads.weight[0] == 0
    assert grads.bias[0] == 1


def test_torch_gives_one_feature_a_weight_gradient() -> None:
    """Finding: torch takes dw from x s - m s, whose roundings do not cancel. Exact: 0."""
    x = torch.tensor([[1e6]])
    weight = torch.tensor([2.0], requires_grad=True)
    F.layer_norm(x, (1,), weight, torch.tensor([3.0]), 1e-5).sum().backward()
    assert weight.grad is not None
    assert abs(float(weight.grad)) > 1
    inputs = {"x": np.full((1, 1), 1e6), "weight": np.full(1, 2.0), "bias": np.full(1, 3.0)}
    bound = op("layer_norm").backward_bound(inputs, {"out": np.ones((1, 1))}, {}, Arithmetic())
    assert bound["weight"][0] == 0


@pytest.mark.parametrize(("name", "value"), [("group_norm", 1e6), ("batch_norm", 1e7)])
def test_torch_moves_a_large_constant_slice_away_from_the_bias(name: str, value: float) -> None:
    """Finding: torch folds the map to x a + c, and rounds x a before it cancels. Exact: the bias,
    as the balls above show; no mean that is off by its rounding error moves z by more than 1.
    """
    x = np.full((1, 4, 8, 8), value, dtype=np.float32)
    weight, bias = np.full(4, 2.0), np.full(4, 3.0)
    rules: dict[str, Any] = {"groups": 2} if name == "group_norm" else {}
    images, scale, shift = (torch.tensor(v.astype(np.float32)) for v in (x, weight, bias))
    got = torch_norm(name, images, scale, shift, rules).numpy()
    inputs = {"x": x.reshape(1, 4, 64).astype(np.float64), "weight": weight, "bias": bias}
    bound = op(name).bound(inputs, rules, Arithmetic())["out"]
    assert bound.max() <= 2.01
    assert np.abs(got - 3.0).max() > 10


@each
def test_inputs_that_do_not_fit_are_named(name: str) -> None:
    case = made(name, (2, 4, 3), 0)
    with pytest.raises(ValueError, match=r"weight \(9,\) must have one entry a feature"):
        FORWARD[name](case.inputs["x"], np.ones(9), **({"groups": 2} if "group" in name else {}))
    with pytest.raises(ValueError, match=r"eps=-1.0 must be at least 0"):
        FORWARD[name](case.inputs["x"], eps=-1.0, **({"groups": 2} if "group" in name else {}))


def test_shapes_and_groups_that_do_not_fit_are_named() -> None:
    with pytest.raises(ValueError, match=r"groups=3 must divide the channels of x, 4"):
        group_norm(np.ones((1, 4, 2)), groups=3)
    with pytest.raises(ValueError, match=r"groups=0 must divide"):
        group_norm(np.ones((1, 4, 2)), groups=0)
    for function in (batch_norm, lambda x: group_norm(x, groups=1)):
        with pytest.raises(ValueError, match=r"at least 2 axes \[batch, channels, ...\]"):
            function(np.ones(3))
    with pytest.raises(ValueError, match="x has no axis"):
        layer_norm(np.array(1.0))


def test_balls_are_exact_where_the_test_says_so() -> None:
    assert (flint.arb(1e6) - flint.arb(1e6)).is_exact()
