"""Convolution: y[b, o, i] = bias[o] + sum over c, j of weight[o, c, j] x[b, c, s i + d j - p]."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np
from jaxtyping import Shaped

from assay.spec.contraction import product_plus
from assay.spec.scalars import Array
from assay.spec.spatial.windows import (
    PerAxis,
    Windows,
    check_grid,
    extent,
    flat_windows,
    same_padding,
)

__all__ = [
    "ConvolutionGradients",
    "convolution",
    "convolution_backward",
    "extent",
    "same_padding",
]

X = Shaped[np.ndarray, "B Cin *n"]
Weight = Shaped[np.ndarray, "Cout Cin/G *k"]
Bias = Shaped[np.ndarray, "Cout"]
Y = Shaped[np.ndarray, "B Cout *m"]


class ConvolutionGradients(NamedTuple):
    """Cotangents of the three inputs, each in its input's shape."""

    x: X
    weight: Weight
    bias: Bias


def _check(x: X, weight: Weight, bias: Bias | None, groups: int) -> None:
    check_grid(x)
    if weight.ndim != x.ndim:
        raise ValueError(
            f"weight has shape {weight.shape}; it must have as many axes as x {x.shape}: "
            "[channels out, channels in / groups, k1, ...]"
        )
    if groups < 1 or x.shape[1] % groups or weight.shape[0] % groups:
        raise ValueError(
            f"groups={groups!r} must be at least 1 and divide the channels of x ({x.shape[1]}) "
            f"and of the output ({weight.shape[0]})"
        )
    if weight.shape[1] * groups != x.shape[1]:
        raise ValueError(
            f"weight reads {weight.shape[1]} channels in each of groups={groups!r}; "
            f"x has {x.shape[1]} channels and must have {weight.shape[1] * groups}"
        )
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(f"bias has shape {bias.shape}; it must be {weight.shape[:1]}")


def _rows(windows: Shaped[np.ndarray, "B C M K"], groups: int) -> Shaped[np.ndarray, "B G M CK/G"]:
    """Channels and taps of one group on the last axis: what one output is a sum over."""
    batch, channels, outputs, taps = windows.shape
    grouped = windows.reshape(batch, groups, channels // groups, outputs, taps)
    return np.swapaxes(grouped, 2, 3).reshape(batch, groups, outputs, channels // groups * taps)


def convolution(
    x: X,
    weight: Weight,
    bias: Bias | None = None,
    *,
    stride: PerAxis = 1,
    padding: PerAxis = 0,
    dilation: PerAxis = 1,
    groups: int = 1,
) -> Y:
    """Sliding products of the kernel with zero-padded inputs, over any number of spatial axes.

    x [B, Cin, *n], weight [Cout, Cin/groups, *k], bias [Cout]; ``stride``, ``padding`` (on both
    sides) and ``dilation`` are one integer or one for each axis. Output extents are those of
    ``extent``: what lies beyond the last window is not read, and no window gives an empty axis. The
    kernel is not flipped. Output channel o reads the input channels of group o // (Cout/groups).
    Source: V. Dumoulin, F. Visin, "A guide to convolution arithmetic for deep learning" (2016).

    >>> x = np.array([[[1.0, 2.0, 3.0]]])
    >>> convolution(x, np.array([[[10.0, 1.0]]]), np.array([0.5]), padding=1).tolist()
    [[[1.5, 12.5, 23.5, 30.5]]]
    """
    _check(x, weight, bias, groups)
    windows = Windows.over(x.shape[2:], weight.shape[2:], stride, padding, dilation)
    out = weight.shape[0]
    rows = _rows(flat_windows(x, windows.seen()), groups)
    kernels = weight.reshape(groups, out // groups, rows.shape[-1])
    parts = () if bias is None else (bias.reshape(groups, 1, out // groups),)
    sums = product_plus(rows, np.swapaxes(kernels, 1, 2), *parts)
    return np.swapaxes(sums, 2, 3).reshape(x.shape[0], out, *windows.extents)


def convolution_backward(
    x: X,
    weight: Weight,
    cotangent: Y,
    *,
    stride: PerAxis = 1,
    padding: PerAxis = 0,
    dilation: PerAxis = 1,
    groups: int = 1,
) -> ConvolutionGradients:
    """Gradients of sum(y * cotangent): dx sums over the outputs that see an input, dweight over
    batch and outputs, dbias too.

    An input that no window reads gets exactly 0.
    """
    _check(x, weight, None, groups)
    windows = Windows.over(x.shape[2:], weight.shape[2:], stride, padding, dilation)
    (batch, channels), out = x.shape[:2], weight.shape[0]
    inside, taps = channels // groups, windows.taps

    seers = _rows(flat_windows(cotangent, windows.seers()), groups)
    kernels = weight.reshape(groups, out // groups, inside, taps)
    across = np.swapaxes(kernels, 2, 3).reshape(groups, out // groups * taps, inside)
    dx = np.swapaxes(np.matmul(seers, across), 2, 3).reshape(x.shape)

    rows, outputs = _rows(flat_windows(x, windows.seen()), groups), prod(windows.extents)
    seen = np.swapaxes(rows, 0, 1).reshape(groups, batch * outputs, inside * taps)
    grouped = cotangent.reshape(batch, groups, out // groups, outputs)
    slopes = np.moveaxis(grouped, 0, 2).reshape(groups, out // groups, batch * outputs)
    dweight = np.matmul(slopes, seen).reshape(weight.shape)

    return ConvolutionGradients(dx, dweight, _over_positions(cotangent))


def _over_positions(x: Shaped[np.ndarray, "B C *n"]) -> Array:
    """Sum over the batch and the grid, one number for each channel."""
    return np.sum(x, axis=(0, *range(2, x.ndim)))
