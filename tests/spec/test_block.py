"""Transformer layers: gradients by differences, worked cases, and agreement with torch's layers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from assay.properties.case import Case, Materials
from assay.properties.recipe import GIVEN
from assay.properties.recipes import RECIPES
from assay.properties.variants_blocks import block_variants
from assay.spec.ops import op

NAMES = ("encoder_layer", "decoder_layer")
DIMS = {"B": 2, "T": 4, "S": 3, "F": 6, "M": 5}
each_layer = pytest.mark.parametrize("name", NAMES)


def _inputs(name: str, *given: str) -> dict[str, np.ndarray]:
    case = Case(name, "float64", "default", 1, DIMS, {}, {}, extra={GIVEN: list(given)})
    return RECIPES[name].inputs(case, Materials(case))


def _given(name: str) -> tuple[str, ...]:
    return tuple(i.name for i in op(name).inputs if i.optional)


@each_layer
@pytest.mark.parametrize("norm_first", [False, True])
def test_gradients_are_the_differences_of_the_output(name: str, norm_first: bool) -> None:
    inputs = _inputs(name, *_given(name))
    attributes = {"heads": 2, "causal": True, "norm_first": norm_first, "activation": "gelu"}
    rng, step = np.random.default_rng(0), 1e-6
    cotangent = rng.standard_normal(inputs["x"].shape)
    slopes = op(name).backward(inputs, {"out": cotangent}, attributes)

    assert set(slopes) == set(op(name).differentiable)
    for n, slope in slopes.items():
        way = rng.standard_normal(inputs[n].shape)
        ends = [
            op(name).forward({**inputs, n: inputs[n] + sign * step * way}, attributes)["out"]
            for sign in (1, -1)
        ]
        difference = ((ends[0] - ends[1]) * cotangent).sum() / (2 * step)
        assert (slope * way).sum() == pytest.approx(difference, rel=1e-6, abs=1e-6), n


def test_branches_that_add_nothing_leave_a_normalised_input() -> None:
    inputs = _inputs("encoder_layer")
    for n in ("out_proj", "out_proj_bias", "down", "down_bias", "norm1_bias", "norm2_bias"):
        inputs[n] = np.zeros_like(inputs[n])
    inputs["norm1"] = inputs["norm2"] = np.ones(6)
    x = inputs["x"]

    first = op("encoder_layer").forward(inputs, {"norm_first": True})["out"]
    after = op("encoder_layer").forward(inputs, {})["out"]

    assert (first == x).all()
    away = x - x.mean(-1, keepdims=True)
    assert after == pytest.approx(away / x.std(-1, keepdims=True), rel=1e-4)


def test_a_decoder_without_values_of_its_memory_is_an_encoder_with_one_more_norm() -> None:
    inputs = _inputs("decoder_layer")
    inputs["cross_proj"] = np.zeros((6, 6))
    inputs["cross_proj_bias"] = np.zeros(6)
    encoder = {n: inputs[n] for n in op("encoder_layer").required}
    encoder |= {"norm2": inputs["norm3"], "norm2_bias": inputs["norm3_bias"]}
    attributes = {"heads": 3, "causal": True, "norm_first": True}

    decoded = op("decoder_layer").forward(inputs, attributes)["out"]

    assert decoded == pytest.approx(op("encoder_layer").forward(encoder, attributes)["out"])


@each_layer
def test_each_variant_differs_from_what_is_due(name: str) -> None:
    inputs = _inputs(name, *_given(name))
    for keys in _given(name):
        inputs[keys][:, -1] = False
    attributes: dict[str, Any] = {"heads": 2, "causal": True, "activation": "gelu"}
    due = op(name).forward(inputs, attributes)["out"]
    found = list(block_variants(name, inputs, attributes))

    assert len(found) == 3 + len(_given(name))
    assert all(not np.allclose(run(), due) for _, run in found)


@each_layer
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("padded", [False, True])
def test_torchs_layer_agrees_in_output_and_every_gradient(
    name: str, norm_first: bool, padded: bool
) -> None:
    torch = pytest.importorskip("torch")
    from assay.impl.backends.torch_encoder import TorchDecoderLayer, TorchEncoderLayer

    backend = TorchEncoderLayer() if name == "encoder_layer" else TorchDecoderLayer()
    backend.mode = "train"
    inputs = _inputs(name, *(_given(name) if padded else ()))
    attributes = {"heads": 2, "norm_first": norm_first, "activation": "gelu", "causal": padded}
    tensors = {n: torch.from_numpy(x.copy()) for n, x in inputs.items()}
    leaves = [tensors[n].requires_grad_() for n in op(name).differentiable]
    optional = {n: tensors[n] for n in _given(name) if n in tensors}
    method = backend.operations()[name].method
    out = method(*[tensors[n] for n in op(name).required], **optional, **attributes)
    cotangent = np.random.default_rng(2).standard_normal(out.shape)
    slopes = torch.autograd.grad(out, leaves, torch.from_numpy(cotangent))

    assert out.detach().numpy() == pytest.approx(op(name).forward(inputs, attributes)["out"])
    due = op(name).backward(inputs, {"out": cotangent}, attributes)
    for n, slope in zip(op(name).differentiable, slopes, strict=True):
        assert slope.numpy() == pytest.approx(due[n], abs=1e-10), n
