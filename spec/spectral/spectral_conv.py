"""Spectral convolution: y = Re IDFT(mask * (DFT(x) W)), one matrix W_k for each frequency."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np
from jaxtyping import Shaped

from assay.spec.scalars import Array, select
from assay.spec.spatial.windows import PerAxis
from assay.spec.spectral.bands import band_mask
from assay.spec.spectral.dft import Pair, dft, idft

X = Shaped[np.ndarray, "B *n w"]
Weight = Shaped[np.ndarray, "N w w"]


class SpectralGradients(NamedTuple):
    """Cotangents of the three inputs, each in its input's shape."""

    x: X
    re: Weight
    im: Weight


def product(a: Pair, b: Pair) -> Pair:
    """Complex matrix product; each part is one sum: re = [a.re, -a.im] [b.re; b.im].

    >>> i = Pair(np.array([[0.0]]), np.array([[1.0]]))
    >>> [part.tolist() for part in product(i, i)]
    [[[-1.0]], [[0.0]]]
    """
    re = np.matmul(_beside(a.re, -a.im), np.concatenate([b.re, b.im], axis=-2))
    im = np.matmul(_beside(a.re, a.im), np.concatenate([b.im, b.re], axis=-2))
    return Pair(re, im)


def adjoint(a: Pair) -> Pair:
    """Transposed and conjugated."""
    return Pair(np.swapaxes(a.re, -1, -2), -np.swapaxes(a.im, -1, -2))


def _beside(a: Array, b: Array) -> Array:
    return np.concatenate([a, b], axis=-1)


def by_frequency(x: X) -> Shaped[np.ndarray, "N B w"]:
    """Frequencies first and flat, so that one matrix product serves each.

    >>> by_frequency(np.zeros((5, 2, 3, 4))).shape
    (6, 5, 4)
    """
    return np.swapaxes(x.reshape(x.shape[0], prod(x.shape[1:-1]), x.shape[-1]), 0, 1)


def on_grid(x: Shaped[np.ndarray, "N B w"], shape: Sequence[int]) -> X:
    """The inverse of ``by_frequency``, onto [B, *n, w]."""
    return np.swapaxes(x, 0, 1).reshape(*shape[:-1], x.shape[-1])


def check(x: X, re: Weight, im: Weight, frequencies: int, most: str = "") -> None:
    """ValueError unless the weights have one square matrix for each frequency."""
    if x.ndim < 3:
        raise ValueError(
            f"x has shape {x.shape}; it must be [batch, n1, ..., width] with at least one "
            "spatial axis"
        )
    wanted = (frequencies, x.shape[-1], x.shape[-1])
    if re.shape != wanted or im.shape != wanted:
        raise ValueError(
            f"re and im have shapes {re.shape} and {im.shape}; for x of shape {x.shape} both must "
            f"be {wanted}: [frequencies{most}, width, width]"
        )


def _spectrum(x: X) -> Pair:
    return Pair(*(by_frequency(p) for p in dft(x, None, range(1, x.ndim - 1))))


def _real(spectrum: Pair, shape: Sequence[int]) -> X:
    """Re IDFT, on the grid."""
    grid = Pair(*(on_grid(p, shape) for p in spectrum))
    return idft(grid.re, grid.im, range(1, len(shape) - 1)).re


def _in_band(spectrum: Pair, spatial: Sequence[int], modes: PerAxis | None) -> Pair:
    kept = band_mask(spatial, modes)[:, None, None]
    return Pair(*(select(kept, p, 0) for p in spectrum))


def spectral_conv(x: X, re: Weight, im: Weight, *, modes: PerAxis | None = None) -> X:
    """Each frequency's channels times its own matrix, frequencies outside the band dropped.

    x [B, *n, w] real, re and im [N, w, w] with N = product of n frequencies in row-major order,
    ``modes`` one number or one for each axis (None: all). The band -m .. m - 1 is not symmetric and
    the weights need not be, so the inverse transform is complex and its imaginary part is dropped.
    Matrices of dropped frequencies have no influence. Source: Z. Li et al., "Fourier neural
    operator for parametric partial differential equations" (2020), definition 3 and equation 5.

    >>> x, one = np.array([[[1.0], [3.0]]]), np.ones((2, 1, 1))
    >>> spectral_conv(x, one, 0 * one).ravel().tolist()
    [1.0, 3.0]
    >>> spectral_conv(x, one, 0 * one, modes=0).ravel().tolist()
    [0.0, 0.0]
    """
    check(x, re, im, prod(x.shape[1:-1]))
    y = product(_spectrum(x), Pair(re, im))
    return _real(_in_band(y, x.shape[1:-1], modes), x.shape)


def spectral_conv_backward(
    x: X, re: Weight, im: Weight, cotangent: X, *, modes: PerAxis | None = None
) -> SpectralGradients:
    """Gradients of sum(y * cotangent), with dY = mask * DFT(cotangent) / N the one of the spectrum:
    dW = DFT(x)* dY and dx = N Re IDFT(dY W*), where * transposes and conjugates.

    Matrices of dropped frequencies get exactly 0. Uses that DFT* = N IDFT and IDFT* = DFT / N.
    """
    count = prod(x.shape[1:-1])
    check(x, re, im, count)
    dy = _in_band(_spectrum(cotangent / max(count, 1)), x.shape[1:-1], modes)
    dweight = product(adjoint(_spectrum(x)), dy)
    # Dropped again: a matrix that is not finite times a gradient of 0 would not be 0.
    behind = _in_band(product(dy, adjoint(Pair(re, im))), x.shape[1:-1], modes)
    dx = _real(behind, x.shape) * count
    return SpectralGradients(dx, *dweight)
