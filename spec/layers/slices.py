"""Normalisation over slices: y = (x - mean) / sqrt(var + eps) * weight + bias, with one mean and
one variance for each slice, and one weight and one bias for each feature.

    layer norm   a slice is one row of the last axis, and its entries are the features
    group norm   a slice is a group of channels of one sample, at all positions
    batch norm   a slice is one channel, in all samples and at all positions
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Shaped

from assay.spec.layers.standardize import check_eps, standardize, standardize_backward
from assay.spec.scalars import Array

Features = Shaped[np.ndarray, "C"]


class NormGradients(NamedTuple):
    """Cotangents of x, weight and bias, each in its input's shape."""

    x: Array
    weight: Features
    bias: Features


@dataclass(frozen=True)
class Slices:
    """How an array is cut into slices: the axes are ordered so, then reshaped so.

    shape     of the array
    order     its axes, those within a slice last
    rows      shape of the slices, each one a row of the last axis
    features  the axis of the array along which weight and bias lie
    """

    shape: tuple[int, ...]
    order: tuple[int, ...]
    rows: tuple[int, ...]
    features: int

    def cut(self, x: Array) -> Array:
        """The array as rows: [*shape] to [*rows]."""
        return x.transpose(self.order).reshape(*self.rows)

    def join(self, rows: Array) -> Array:
        """Inverse of ``cut``."""
        ordered = rows.reshape(*(self.shape[axis] for axis in self.order))
        return ordered.transpose(tuple(int(axis) for axis in np.argsort(self.order)))

    def spread(self, by_feature: Features) -> Array:
        """One number a feature, broadcastable to the array."""
        after = len(self.shape) - self.features - 1
        return by_feature.reshape(self.shape[self.features], *(1,) * after)

    def gather(self, x: Array) -> Features:
        """Sum over everything but the features."""
        return x.sum(axis=tuple(a for a in range(len(self.shape)) if a != self.features))


def by_row(x: Array) -> Slices:
    """Each row of the last axis is a slice: x [..., C]."""
    if x.ndim < 1:
        raise ValueError("x has no axis; valid: [..., features]")
    return Slices(x.shape, tuple(range(x.ndim)), x.shape, x.ndim - 1)


def by_group(x: Array, groups: int) -> Slices:
    """Each group of neighbouring channels of a sample is a slice: x [B, C, ...]."""
    if x.ndim < 2:
        raise ValueError(f"x {x.shape} must have at least 2 axes [batch, channels, ...]")
    channels = x.shape[1]
    if groups < 1 or channels % groups:
        raise ValueError(f"groups={groups} must divide the channels of x, {channels}")
    size = channels // groups * math.prod(x.shape[2:])
    return Slices(x.shape, tuple(range(x.ndim)), (x.shape[0], groups, size), 1)


def by_channel(x: Array) -> Slices:
    """Each channel, over samples and positions, is a slice: x [B, C, ...]."""
    if x.ndim < 2:
        raise ValueError(f"x {x.shape} must have at least 2 axes [batch, channels, ...]")
    size = x.shape[0] * math.prod(x.shape[2:])
    return Slices(x.shape, (1, 0, *range(2, x.ndim)), (x.shape[1], size), 1)


def check_features(slices: Slices, weight: Features | None, bias: Features | None) -> None:
    """ValueError unless weight and bias have one entry a feature."""
    wanted = (slices.shape[slices.features],)
    for name, given in (("weight", weight), ("bias", bias)):
        if given is not None and given.shape != wanted:
            raise ValueError(f"{name} {given.shape} must have one entry a feature: {wanted}")


def normalize(
    x: Array, weight: Features | None, bias: Features | None, eps: float, slices: Slices
) -> Array:
    """Each slice standardised, then an affine map by feature.

    >>> normalize(np.array([[1.0, 3.0]]), None, np.ones(2), 0.0, by_row(np.ones((1, 2)))).tolist()
    [[0.0, 2.0]]
    """
    check_features(slices, weight, bias)
    check_eps(eps)
    y = slices.join(standardize(slices.cut(x), eps).z)
    y = y if weight is None else y * slices.spread(weight)
    return y if bias is None else y + slices.spread(bias)


def normalize_backward(
    x: Array, weight: Features | None, cotangent: Array, eps: float, slices: Slices
) -> NormGradients:
    """Gradients of sum(y * cotangent): db = sum g and dw = sum g z over all but the features, and
    dx that of ``standardize`` for g weight.
    """
    check_features(slices, weight, None)
    check_eps(eps)
    rows = standardize(slices.cut(x), eps)
    into_z = cotangent if weight is None else cotangent * slices.spread(weight)
    dx = slices.join(standardize_backward(rows, slices.cut(into_z)))
    dw = slices.gather(cotangent * slices.join(rows.z))
    return NormGradients(dx, dw, slices.gather(cotangent))
