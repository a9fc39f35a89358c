"""Sound convolutions that transform their operands first: Winograd's tiles, and fast convolution.
Their error is small beside the norms of a grid, not beside each element.
"""

from __future__ import annotations

from math import ceil, log2, prod
from typing import Any

import numpy as np

from assay.zoo.sound_grids import Array, Sliding, TapConvolution, on_grids, padded


def dense(rules: Sliding) -> bool:
    """Whether windows neither jump nor have holes; libraries transform no others."""
    return set(rules.stride) | set(rules.dilation) <= {1}


def cut(y: Array, extents: tuple[int, ...]) -> Array:
    """The first outputs along each axis."""
    place: Any = (..., *(slice(m) for m in extents))
    return np.asarray(y[place])


class TransformedConvolution(TapConvolution):
    """Values by ``transformed`` where it applies, else tap by tap, as gradients always are."""

    contract = on_grids("zoo.transformed", accuracy="normwise")

    def forward(self, x: Array, weight: Array, bias: Array | None, rules: Sliding) -> Array:
        """The bias last."""
        extents = rules.extents(x.shape[2:])
        size = x.size * weight.size * prod(extents)
        if not size or not self.applies(rules):
            return super().forward(x, weight, bias, rules)
        y = self.transformed(padded(x, rules), weight.astype(np.float32), rules, extents)
        if bias is not None:
            y = y + bias.astype(np.float32).reshape(-1, *(1 for _ in extents))
        return y.astype(x.dtype)

    def applies(self, rules: Sliding) -> bool:
        """Whether these windows can be computed so."""
        return dense(rules)

    def transformed(
        self, wide: Array, weight: Array, rules: Sliding, extents: tuple[int, ...]
    ) -> Array:
        """Output [B, Cout, *m] in float32, without a bias."""
        raise NotImplementedError


class FastConvolution(TransformedConvolution):
    """One product of spectra in float32, over axes padded to powers of two."""

    contract = on_grids("zoo.fast-convolution", accuracy="normwise")

    def transformed(
        self, wide: Array, weight: Array, rules: Sliding, extents: tuple[int, ...]
    ) -> Array:
        """The conjugate of the kernel's spectrum, since a kernel is not flipped."""
        points = tuple(2 ** ceil(log2(max(n, 2))) for n in wide.shape[2:])
        axes = tuple(range(2, wide.ndim))
        x, w = np.fft.rfftn(wide, points, axes), np.fft.rfftn(weight, points, axes).conj()
        bins = x.shape[2:]
        x = x.reshape(len(x), rules.groups, -1, prod(bins))
        w = w.reshape(rules.groups, -1, x.shape[2], prod(bins))
        p = np.einsum("bgck,gock->bgok", x, w).reshape(len(x), -1, *bins)
        y = np.fft.irfftn(p, points, axes)
        return cut(y, extents)


A = np.array([[1, 1, 1, 0], [0, 1, -1, -1]], np.float32)
B = np.array([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]], np.float32)
G = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]], np.float32)


def along(matrix: Array, array: Array, axes: int) -> Array:
    """The matrix applied along each of the last axes."""
    for axis in range(array.ndim - axes, array.ndim):
        array = np.moveaxis(np.tensordot(array, matrix, ([axis], [1])), -1, axis)
    return array


class WinogradConvolution(TransformedConvolution):
    """F(2, 3) along every axis: four products in place of six."""

    contract = on_grids("zoo.winograd", accuracy="normwise")

    def applies(self, rules: Sliding) -> bool:
        """Three taps along each axis."""
        return dense(rules) and set(rules.kernel) == {3}

    def transformed(
        self, wide: Array, weight: Array, rules: Sliding, extents: tuple[int, ...]
    ) -> Array:
        """Tiles of two outputs; odd extents are made even, and cut."""
        axes, groups = len(extents), rules.groups
        rim = [(0, m % 2) for m in extents]
        even = np.pad(wide, [(0, 0), (0, 0), *rim])
        seen = np.lib.stride_tricks.sliding_window_view(
            even, (4,) * axes, tuple(range(2, wide.ndim))
        )[(slice(None), slice(None), *(slice(None, None, 2),) * axes)]
        tiles = seen.shape[2 : 2 + axes]
        inside = weight.shape[1]
        v = along(B, seen, axes).reshape(len(wide), groups, inside, prod(tiles), 4**axes)
        u = self.kernels(along(G, weight, axes)).reshape(groups, -1, inside, 4**axes)
        m = self.products(np.einsum("bgctk,gock->bgotk", v, u))
        y = along(A, m.reshape(len(wide), len(weight), *tiles, *(4,) * axes), axes)
        order = [0, 1, *(i for a in range(axes) for i in (2 + a, 2 + axes + a))]
        joined = y.transpose(order).reshape(len(wide), len(weight), *(2 * t for t in tiles))
        return cut(joined, extents)

    def kernels(self, transformed: Array) -> Array:
        """Kernels [Cout, Cin/G, 4, ...] as they are multiplied."""
        return transformed

    def products(self, summed: Array) -> Array:
        """Products [B, G, Cout/G, tiles, 4^d], summed over the channels."""
        return summed
