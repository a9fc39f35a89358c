"""Ops on images as layers: convolution, patches to tokens, means and rows."""

from __future__ import annotations

import numpy as np

from assay.spec.layers.layer import Gradients, Layer, Params, pointwise
from assay.spec.scalars import Array
from assay.spec.spatial.convolution import convolution, convolution_backward
from assay.spec.spatial.patches import patch_embedding, patch_embedding_backward
from assay.spec.spatial.pooling import global_mean, global_mean_backward

GLOBAL_MEAN = pointwise(global_mean, global_mean_backward)
"""x [B, C, *n] -> mean over the grid [B, C]."""


def convolution_layer(path: str, padding: tuple[int, ...]) -> Layer:
    """A convolution of stride 1 stored under ``path``."""
    weight, bias = f"{path}.weight", f"{path}.bias"

    def forward(params: Params, x: Array) -> Array:
        return convolution(x, params[weight], params[bias], padding=padding)

    def backward(params: Params, x: Array, cotangent: Array) -> tuple[Array, Gradients]:
        found = convolution_backward(x, params[weight], cotangent, padding=padding)
        return found.x, {weight: found.weight, bias: found.bias}

    return Layer((weight, bias), forward, backward)


def patch_layer(
    path: str, class_token: str | None, stride: tuple[int, ...], padding: tuple[int, ...]
) -> Layer:
    """x [B, Cin, *n] -> tokens [B, N (+ 1), D], behind the class token where there is one."""
    weight, bias = f"{path}.weight", f"{path}.bias"

    def token(params: Params) -> Array | None:
        return None if class_token is None else params[class_token]

    def forward(params: Params, x: Array) -> Array:
        w, b = params[weight], params[bias]
        return patch_embedding(x, w, b, token(params), stride=stride, padding=padding)

    def backward(params: Params, x: Array, cotangent: Array) -> tuple[Array, Gradients]:
        found = patch_embedding_backward(
            x, params[weight], cotangent, token(params), stride=stride, padding=padding
        )
        gradients = {weight: found.weight, bias: found.bias}
        if class_token is not None and found.class_token is not None:
            gradients[class_token] = found.class_token
        return found.x, gradients

    names = (weight, bias) if class_token is None else (weight, bias, class_token)
    return Layer(names, forward, backward)


def _mean(x: Array) -> Array:
    return np.sum(x, axis=1) / x.shape[1]


def _mean_backward(x: Array, cotangent: Array) -> Array:
    return np.broadcast_to((cotangent / x.shape[1])[:, None], x.shape)


def _first_backward(x: Array, cotangent: Array) -> Array:
    others = np.zeros_like(x[:, 1:])
    return np.concatenate([cotangent[:, None], others], axis=1)


MEAN_TOKEN = pointwise(_mean, _mean_backward)
"""x [B, N, D] -> mean over the tokens [B, D]."""

FIRST_TOKEN = pointwise(lambda x: x[:, 0], _first_backward)
"""x [B, N, D] -> row 0 [B, D]."""
