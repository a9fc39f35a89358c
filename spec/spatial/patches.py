"""Patches: tokens = [class token; a convolution's grid read row by row], shape [B, N (+ 1), D]."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np
from jaxtyping import Shaped

from assay.spec.spatial.convolution import convolution, convolution_backward
from assay.spec.spatial.windows import PerAxis, Windows

X = Shaped[np.ndarray, "B Cin *n"]
Weight = Shaped[np.ndarray, "D Cin *k"]
Bias = Shaped[np.ndarray, "D"]
Token = Shaped[np.ndarray, "1 D"]
Tokens = Shaped[np.ndarray, "B N D"]


class PatchGradients(NamedTuple):
    """Cotangents of the inputs, each in its input's shape; None for a class token not given."""

    x: X
    weight: Weight
    bias: Bias
    class_token: Token | None


def _stride(weight: Weight, stride: PerAxis | None) -> PerAxis:
    return tuple(weight.shape[2:]) if stride is None else stride


def _check(weight: Weight, class_token: Token | None) -> None:
    if class_token is not None and class_token.shape != (1, weight.shape[0]):
        raise ValueError(
            f"class_token has shape {class_token.shape}; it must be (1, {weight.shape[0]}): "
            "one row of the patches' width"
        )


def patch_embedding(
    x: X,
    weight: Weight,
    bias: Bias | None = None,
    class_token: Token | None = None,
    *,
    stride: PerAxis | None = None,
    padding: PerAxis = 0,
) -> Tokens:
    """One token for each patch, in row-major order of the grid, behind the class token if given.

    x [B, Cin, *n], weight [D, Cin, *k], bias [D], class_token [1, D]; ``stride`` None is the
    kernel: patches side by side, and what remains at the end of an axis is not read. Row 0 is the
    class token, the same for every image; it comes first, it is not appended. Source: A.
    Dosovitskiy et al., "An image is worth 16x16 words" (2020), equation 1, without the positions.

    >>> x = np.arange(6.0).reshape(1, 1, 2, 3)
    >>> tokens = patch_embedding(x, np.ones((1, 1, 1, 1)), None, np.array([[9.0]]))
    >>> tokens.ravel().tolist()
    [9.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    """
    _check(weight, class_token)
    grid = convolution(x, weight, bias, stride=_stride(weight, stride), padding=padding)
    batch, width = grid.shape[:2]
    patches = np.swapaxes(grid.reshape(batch, width, prod(grid.shape[2:])), 1, 2)
    if class_token is None:
        return patches
    return np.concatenate([np.broadcast_to(class_token, (batch, 1, width)), patches], axis=1)


def patch_embedding_backward(
    x: X,
    weight: Weight,
    cotangent: Tokens,
    class_token: Token | None = None,
    *,
    stride: PerAxis | None = None,
    padding: PerAxis = 0,
) -> PatchGradients:
    """Gradients of sum(tokens * cotangent): the class token sums row 0 over the batch, the rest is
    the convolution's.
    """
    _check(weight, class_token)
    stride = _stride(weight, stride)
    grid = Windows.over(x.shape[2:], weight.shape[2:], stride, padding).extents
    first = 0 if class_token is None else 1
    behind = np.swapaxes(cotangent[:, first:], 1, 2).reshape(x.shape[0], weight.shape[0], *grid)
    dx, dweight, dbias = convolution_backward(x, weight, behind, stride=stride, padding=padding)
    dtoken = None if class_token is None else np.sum(cotangent[:, :1], axis=0)
    return PatchGradients(dx, dweight, dbias, dtoken)
