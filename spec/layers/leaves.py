"""Ops as layers: which of a model's parameters an op reads, by name."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int

from assay.spec.cache import padded_positions
from assay.spec.layers.activations import ACTIVATIONS
from assay.spec.layers.embedding import embedding, embedding_backward
from assay.spec.layers.layer import Gradients, Layer, Params, pointwise
from assay.spec.layers.layer_norm import layer_norm, layer_norm_backward
from assay.spec.layers.linear import linear, linear_backward
from assay.spec.scalars import Array


def _given(params: Params, name: str | None) -> Array | None:
    return None if name is None else params[name]


def linear_layer(weight: str, bias: str | None = None, *, in_by_out: bool = False) -> Layer:
    """x W^T + b with W [out, in]; x W + b with W [in, out] where ``in_by_out``.

    >>> params = {"w": np.array([[1.0, 2.0]])}
    >>> linear_layer("w").forward(params, np.ones((1, 2))).tolist()
    [[3.0]]
    >>> linear_layer("w", in_by_out=True).forward(params, np.ones((1, 1))).tolist()
    [[1.0, 2.0]]
    """

    def stored(matrix: Array) -> Array:
        return np.swapaxes(matrix, 0, 1) if in_by_out else matrix

    def forward(params: Params, x: Array) -> Array:
        return linear(x, stored(params[weight]), _given(params, bias))

    def backward(params: Params, x: Array, cotangent: Array) -> tuple[Array, Gradients]:
        found = linear_backward(x, stored(params[weight]), cotangent)
        gradients = {weight: stored(found.weight)}
        return found.x, gradients if bias is None else {**gradients, bias: found.bias}

    return Layer((weight,) if bias is None else (weight, bias), forward, backward)


def norm_layer(weight: str, bias: str | None = None, eps: float = 1e-5) -> Layer:
    """Layer normalisation over the last axis."""

    def forward(params: Params, x: Array) -> Array:
        return layer_norm(x, params[weight], _given(params, bias), eps=eps)

    def backward(params: Params, x: Array, cotangent: Array) -> tuple[Array, Gradients]:
        found = layer_norm_backward(x, params[weight], cotangent, eps=eps)
        gradients = {weight: found.weight}
        return found.x, gradients if bias is None else {**gradients, bias: found.bias}

    return Layer((weight,) if bias is None else (weight, bias), forward, backward)


def activation_layer(name: str) -> Layer:
    """One of ``ACTIVATIONS``; ValueError names them.

    >>> activation_layer("relu").forward({}, np.array([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    if name not in ACTIVATIONS:
        raise ValueError(
            f"activation={name!r} does not exist; valid: {', '.join(sorted(ACTIVATIONS))}"
        )
    chosen = ACTIVATIONS[name]
    return pointwise(chosen.forward, chosen.backward)


def embedding_layer(table: str) -> Layer:
    """Rows of a table, at integers; no gradient flows into these."""

    def forward(params: Params, ids: Array) -> Array:
        return embedding(ids, params[table])

    def backward(params: Params, ids: Array, cotangent: Array) -> tuple[None, Gradients]:
        return None, {table: embedding_backward(ids, params[table], cotangent)}

    return Layer((table,), forward, backward)


def position_layer(table: str, pads: Int[np.ndarray, " B"] | None = None) -> Layer:
    """x [B, T, D] + rows 0, 1, ... of a table [M, D]; T up to M.

    ``pads``: row b begins with pads[b] padding tokens, and is counted from its first real one.

    >>> table = {"p": np.array([[1.0], [2.0], [3.0]])}
    >>> position_layer("p").forward(table, np.zeros((1, 2, 1))).ravel().tolist()
    [1.0, 2.0]
    """

    def places(x: Array) -> Int[np.ndarray, "B T"]:
        none = np.zeros(x.shape[0], dtype=int)
        return padded_positions(none if pads is None else pads, x.shape[1])

    def forward(params: Params, x: Array) -> Array:
        if x.shape[1] > params[table].shape[0]:
            raise ValueError(
                f"length={x.shape[1]} exceeds the {params[table].shape[0]} positions of {table}"
            )
        return x + embedding(places(x), params[table])

    def backward(params: Params, x: Array, cotangent: Array) -> tuple[Array, Gradients]:
        return cotangent, {table: embedding_backward(places(x), params[table], cotangent)}

    return Layer((table,), forward, backward)
