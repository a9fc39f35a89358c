"""Sound convolutions, patches and pools whose windows are walked in other ways, in numpy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from assay.impl.protocol import implements
from assay.zoo.sound_grids import (
    Array,
    PerAxis,
    Sliding,
    Tap,
    TapConvolution,
    TapPatches,
    TapPooling,
    each,
    on_grids,
    padded,
)


class Backwards(Sliding):
    """From the last tap to the first."""

    def taps(self) -> Iterator[Tap]:
        """Every tap, the last row first."""
        return product(*(range(k)[::-1] for k in self.kernel))


class TapsBackwards(TapConvolution):
    """From the last tap to the first."""

    contract = on_grids("zoo.taps-backwards")

    def rules(
        self,
        x: Array,
        weight: Array,
        bias: Array | None,
        stride_padding_dilation: tuple[PerAxis, PerAxis, PerAxis],
        groups: int,
    ) -> Sliding:
        """The same numbers in the other order."""
        found = super().rules(x, weight, bias, stride_padding_dilation, groups)
        return Backwards(**{f.name: getattr(found, f.name) for f in fields(found)})


class ChannelsLast(TapConvolution):
    """Channels are the fast axis in memory, and the rows of every product."""

    contract = on_grids("zoo.taps-channels-last")

    def mixed(self, seen: Array, matrix: Array, groups: int) -> Array:
        """[B, *m, C] times [C, Cout], group by group."""
        rows = np.ascontiguousarray(np.moveaxis(seen, 1, -1))
        out, inside = matrix.shape[0] // groups, matrix.shape[1]
        kernels = matrix.astype(np.float32).reshape(groups, out, inside)
        parts = [
            rows[..., g * inside : (g + 1) * inside] @ kernel.T for g, kernel in enumerate(kernels)
        ]
        return np.moveaxis(np.concatenate(parts, axis=-1), -1, 1)


class EinsumTaps(TapConvolution):
    """Channels are mixed by the plain loops of einsum."""

    contract = on_grids("zoo.taps-einsum")

    def mixed(self, seen: Array, matrix: Array, groups: int) -> Array:
        """Each group by itself."""
        out, inside = matrix.shape
        split = seen.reshape(seen.shape[0], groups, inside, prod(seen.shape[2:]))
        kernels = matrix.astype(np.float32).reshape(groups, out // groups, inside)
        y = np.einsum("bgcm,goc->bgom", split, kernels)
        return y.reshape(seen.shape[0], out, *seen.shape[2:])


class ColumnsOfWindows(TapConvolution):
    """Windows as columns of one matrix, and one product (im2col)."""

    contract = on_grids("zoo.columns")

    def forward(self, x: Array, weight: Array, bias: Array | None, rules: Sliding) -> Array:
        """[G, Cout / G, C K] times [B, G, C K, M]."""
        wide, extents = padded(x, rules), rules.extents(x.shape[2:])
        if not prod(extents):
            return super().forward(x, weight, bias, rules)
        taps = [wide[rules.places(tap, extents)] for tap in rules.taps()]
        columns = np.stack(taps, axis=2)
        depth = weight.shape[1] * len(taps)
        rows = columns.reshape(x.shape[0], rules.groups, depth, prod(extents))
        kernels = weight.astype(np.float32).reshape(
            rules.groups, weight.shape[0] // rules.groups, depth
        )
        y = (kernels @ rows).reshape(x.shape[0], weight.shape[0], *extents)
        if bias is not None:
            y = y + bias.astype(np.float32).reshape(-1, *(1 for _ in extents))
        return y.astype(x.dtype)


class WideSums(TapConvolution):
    """Products and sums in float64."""

    contract = on_grids("zoo.taps-double")

    def mixed(self, seen: Array, matrix: Array, groups: int) -> Array:
        """Wide, so that the accumulator becomes wide."""
        return super().mixed(seen.astype(np.float64), matrix, groups)


class ReshapedPatches(TapPatches):
    """Patches side by side are rows of a reshaped image; others go tap by tap."""

    contract = on_grids("zoo.patches-reshaped")

    @implements("patch_embedding")
    def patch_embedding(
        self,
        x: Array,
        weight: Array,
        *,
        bias: Array | None = None,
        class_token: Array | None = None,
        stride: PerAxis | None = None,
        padding: PerAxis = 0,
    ) -> Array:
        """Tokens [B, N, D]."""
        kernel, axes = tuple(weight.shape[2:]), x.ndim - 2
        beside = stride is None or each(stride, axes) == kernel
        if not beside or any(each(padding, axes)) or not weight.size:
            return super().patch_embedding(
                x, weight, bias=bias, class_token=class_token, stride=stride, padding=padding
            )
        rules = self.grid.rules(x, weight, bias, (kernel, 0, 1), 1)
        if class_token is not None and class_token.shape != (1, weight.shape[0]):
            raise ValueError(f"class_token {class_token.shape} is not {(1, weight.shape[0])}")
        rows = _side_by_side(x, kernel, rules.extents(x.shape[2:])).astype(np.float32)
        tokens = rows @ weight.reshape(weight.shape[0], -1).T.astype(np.float32)
        tokens = tokens if bias is None else tokens + bias.astype(np.float32)
        return self.joined(tokens.astype(x.dtype), class_token)


def _side_by_side(x: Array, kernel: tuple[int, ...], counts: tuple[int, ...]) -> Array:
    """Patches as rows [B, N, C K]; what is left of the image at its ends belongs to none."""
    within: Any = (..., *(slice(m * k) for m, k in zip(counts, kernel, strict=True)))
    whole = x[within]
    split = [n for pair in zip(counts, kernel, strict=True) for n in pair]
    axes = len(kernel)
    order = (0, *range(2, 2 + 2 * axes, 2), 1, *range(3, 3 + 2 * axes, 2))
    turned = whole.reshape(*x.shape[:2], *split).transpose(order)
    return turned.reshape(x.shape[0], prod(counts), x.shape[1] * prod(kernel))


class AxisPooling(TapPooling):
    """Pools axis by axis: maxima of maxima, sums of sums."""

    contract = on_grids("zoo.pooling-axes", gradients=False)

    def pooled(self, wide: Array, kind: str, rules: Sliding, shape: tuple[int, ...]) -> Array:
        """One axis after the other."""
        y = wide
        for axis, (k, s) in enumerate(zip(rules.kernel, rules.stride, strict=True), 2):
            seen = sliding_window_view(y, k, axis=axis)
            seen = seen[(slice(None),) * axis + (slice(None, None, s),)]
            y = seen.sum(axis=-1) if kind == "mean" else seen.max(axis=-1)
        return y / np.float32(prod(rules.kernel)) if kind == "mean" else y
