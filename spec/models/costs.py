"""Costs of a forward and a training pass: 2 m k n operations for each product of m x k with k x n.

A model lists its steps: each array that one forward pass writes, and the multiplications and
additions of its contraction. Elementwise work counts 0, as in most FLOP counters. Nothing is
allocated.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from assay.spec.models.layout import Size, product

Kind = Literal["matrix", "attention", "convolution", "transform", "spectral", "scan", "elementwise"]


@dataclass(frozen=True)
class Step:
    """One array that the forward pass writes.

    writes    its shape, the batch included
    flops     multiplications and additions of one forward pass
    backward  how many contractions of the same cost the backward pass adds: one for each operand
              that needs a gradient, so 2, or 1 where the other operand is data or constant
    repeat    how many layers do the same
    """

    name: str
    writes: tuple[Size, ...]
    kind: Kind = "elementwise"
    flops: Size = 0
    backward: int = 2
    repeat: Size = 1

    @property
    def forward_flops(self) -> Size:
        """Of one forward pass, all layers."""
        return self.repeat * self.flops

    @property
    def training_flops(self) -> Size:
        """Of one forward and backward pass, all layers."""
        return self.repeat * self.flops * (1 + self.backward)


Steps = tuple[Step, ...]


def matrix(
    name: str,
    lead: tuple[Size, ...],
    fan_in: Size,
    fan_out: Size,
    *,
    backward: int = 2,
    repeat: Size = 1,
) -> Step:
    """A linear map of the last axis at every leading index.

    >>> matrix("head", (2, 3), 4, 5).flops
    240
    """
    flops = 2 * product(lead) * fan_in * fan_out
    return Step(name, (*lead, fan_out), "matrix", flops, backward, repeat)


def forward_flops(steps: Iterable[Step], *kinds: Kind) -> Size:
    """Operations of one forward pass, of the given kinds or of all."""
    return sum(s.forward_flops for s in steps if not kinds or s.kind in kinds)


def training_flops(steps: Iterable[Step], *kinds: Kind) -> Size:
    """Operations of one forward and backward pass, of the given kinds or of all.

    >>> training_flops((matrix("head", (2, 3), 4, 5),))
    720
    """
    return sum(s.training_flops for s in steps if not kinds or s.kind in kinds)


def transformer_training_flops(weights: Size, layers: Size, length: Size, width: Size) -> Size:
    """6 N + 12 L T d per token, where N counts the weights of matrix products.

    Source: Kaplan and coauthors, "Scaling laws for neural language models" (2020), section 2.1, and
    Chowdhery and coauthors, "PaLM" (2022), appendix B.

    >>> transformer_training_flops(851_968, 4, 64, 128) * 4 * 64
    1409286144
    """
    return 6 * weights + 12 * layers * length * width


def activation_scalars(steps: Iterable[Step]) -> Size:
    """Entries of every array that one forward pass writes: what a backward pass could keep.

    >>> activation_scalars((Step("norm", (2, 3), repeat=4),))
    24
    """
    return sum(s.repeat * product(s.writes) for s in steps)


def cache_scalars(layers: Size, batch: Size, length: Size, width: Size) -> Size:
    """2 L B T D: keys and values of every layer, batch row, position and channel.

    >>> cache_scalars(4, 1, 128, 128) * 4
    524288
    """
    return 2 * layers * batch * length * width


def transform_flops(spatial: tuple[int, ...]) -> dict[str, int]:
    """One real-to-complex transform of one channel on a grid, by each way to compute it.

    dense     two products with a full N x N cosine and sine matrix: 4 N^2
    per_axis  each axis with its own matrices, 8 N n_a; 4 N n_a on the first, whose input is real
    fft       5 N log2 N, the usual estimate of a complex radix-2 transform
    The inverse, of which only the real part is wanted, costs the same. Source: Cooley and Tukey
    (1965) for the last.

    >>> transform_flops((8, 8))
    {'dense': 16384, 'per_axis': 6144, 'fft': 1920}
    """
    n = product(spatial)
    return {
        "dense": 4 * n * n,
        "per_axis": 8 * n * sum(spatial) - 4 * n * spatial[0],
        "fft": round(n * Fraction(5 * math.log2(n))),  # n may be beyond a float
    }
