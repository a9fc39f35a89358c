"""Patch embedding: which patch becomes which token, and where the class token stands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.spec.ops import op
from assay.spec.spatial.patches import patch_embedding, patch_embedding_backward
from tests.spec.agreement import (
    arithmetic_of,
    assert_agrees_with_torch,
    assert_encloses,
    assert_notices,
    assert_rounded_within_bounds,
)

Case = tuple[dict[str, np.ndarray], dict[str, Any]]


@st.composite
def embeddings(draw: st.DrawFn, most: int = 7) -> Case:
    """Images of 1 to 3 axes, of unequal extents, with and without class token and bias."""
    axes = draw(st.integers(1, 3))
    kernel = draw(st.tuples(*[st.integers(1, 3)] * axes))
    stride = draw(st.none() | st.tuples(*[st.integers(1, 4)] * axes))
    padding = draw(st.tuples(*[st.integers(0, 1)] * axes))
    sizes = [draw(st.integers(k, max(k, most - axes))) for k in kernel]
    batch, channels, width = (draw(st.integers(1, 3)) for _ in range(3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    inputs = {
        "x": rng.normal(size=(batch, channels, *sizes)),
        "weight": rng.normal(size=(width, channels, *kernel)),
        "bias": rng.normal(size=width),
        "class_token": rng.normal(size=(1, width)),
    }
    for name in ("bias", "class_token"):
        if draw(st.booleans()):
            del inputs[name]
    return inputs, {"stride": stride, "padding": padding}


def torch_patches(given: dict[str, Any], attributes: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    x, weight = given["x"], given["weight"]
    function = (torch.conv1d, torch.conv2d, torch.conv3d)[x.ndim - 3]
    stride = attributes["stride"] or tuple(weight.shape[2:])
    grid = function(x, weight, given.get("bias"), stride=stride, padding=attributes["padding"])
    tokens = grid.flatten(2).transpose(1, 2)
    if "class_token" in given:
        first = given["class_token"].expand(x.shape[0], 1, -1)
        tokens = torch.cat([first, tokens], dim=1)
    return {"tokens": tokens}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@given(embeddings())
@settings(max_examples=100)
def test_patch_embedding_and_its_gradients_agree_with_torch(dtype: str, case: Case) -> None:
    assert_agrees_with_torch("patch_embedding", *case, torch_patches, dtype)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@given(embeddings())
@settings(max_examples=15)
def test_rounded_patch_embedding_stays_within_its_bounds(dtype: str, case: Case) -> None:
    assert_rounded_within_bounds("patch_embedding", *case, dtype)


@given(embeddings(most=3))
@settings(max_examples=10)
def test_balls_enclose_patch_embedding(case: Case) -> None:
    assert_encloses("patch_embedding", *case)


def test_tokens_follow_the_grid_row_by_row_on_an_image_wider_than_high() -> None:
    x = np.arange(24.0).reshape(1, 1, 4, 6)
    corner = np.zeros((1, 1, 2, 2))
    corner[..., 0, 0] = 1.0
    assert patch_embedding(x, corner).ravel().tolist() == [0.0, 2.0, 4.0, 12.0, 14.0, 16.0]


def test_tokens_are_rows_where_there_are_as_many_tokens_as_features() -> None:
    x = np.arange(4.0).reshape(1, 1, 4)
    scale = np.array([1.0, 10.0, 100.0, 1000.0]).reshape(4, 1, 1)
    tokens = patch_embedding(x, scale)[0]
    assert tokens.shape == (4, 4)
    assert tokens[3].tolist() == [3.0, 30.0, 300.0, 3000.0]
    assert tokens[:, 3].tolist() == [0.0, 1000.0, 2000.0, 3000.0]


def test_class_token_stands_first_and_is_exact() -> None:
    rng = np.random.default_rng(0)
    x, weight = rng.normal(size=(2, 1, 4)), rng.normal(size=(3, 1, 2))
    token = np.array([[7.0, 8.0, 9.0]])
    tokens = patch_embedding(x, weight, None, token)
    assert tokens.shape == (2, 3, 3)
    assert tokens[:, 0].tolist() == [[7.0, 8.0, 9.0]] * 2
    assert (tokens[:, 1:] == patch_embedding(x, weight)).all()
    inputs = {"x": x, "weight": weight, "bias": np.ones(3), "class_token": token}
    bound = op("patch_embedding").bound(inputs, {}, arithmetic_of("float32"))["tokens"]
    assert not bound[:, 0].any()
    assert bound[:, 1:].all()


def test_what_remains_beyond_the_last_patch_is_dropped() -> None:
    x = np.ones((1, 1, 5, 7))
    spoilt = x.copy()
    spoilt[:, :, 4:] = np.nan
    spoilt[:, :, :, 6:] = np.nan
    weight = np.ones((1, 1, 2, 3))
    tokens = patch_embedding(spoilt, weight)
    assert tokens.shape == (1, 4, 1)
    assert (tokens == 6.0).all()
    grads = patch_embedding_backward(x, weight, np.ones((1, 4, 1)))
    assert not grads.x[:, :, 4:].any()
    assert not grads.x[:, :, :, 6:].any()
    assert grads.class_token is None


def test_an_error_of_one_in_a_thousand_in_the_class_token_is_noticed() -> None:
    rng = np.random.default_rng(0)
    inputs = {
        "x": rng.normal(size=(2, 3, 4, 6)).astype(np.float32),
        "weight": rng.normal(size=(5, 3, 2, 2)).astype(np.float32),
        "class_token": rng.normal(size=(1, 5)).astype(np.float32),
    }
    for name in inputs:
        wrong = inputs[name].copy()
        wrong.flat[1] *= np.float32(1 + 1e-4)
        assert_notices("patch_embedding", inputs, {}, {**inputs, name: wrong})


@pytest.mark.parametrize("shape", [(5,), (2, 5), (1, 4)])
def test_a_class_token_of_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"class_token has shape .* it must be \(1, 5\)"):
        patch_embedding(np.ones((2, 1, 4)), np.ones((5, 1, 2)), None, np.ones(shape))
