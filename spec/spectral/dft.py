"""Discrete Fourier transform: X_k = sum over x of v_x exp(-2 pi i sum_a k_a x_a / n_a), on pairs
(real part, imaginary part).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm, prod
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Shaped

from assay.spec.scalars import Array
from assay.spec.spectral.turns import turns

Values = Shaped[np.ndarray, "*n"]


class Pair(NamedTuple):
    """Real and imaginary parts of complex numbers."""

    re: Array
    im: Array


def _waves(n: int, like: Array) -> Pair:
    """cos and sin of 2 pi k x / n, [n, n]."""
    return Pair(*turns(np.outer(np.arange(n), np.arange(n)), n, like))


def _along(x: Values, axis: int, matrix: Shaped[np.ndarray, "n n"]) -> Values:
    """A symmetric matrix applied along one axis."""
    return np.moveaxis(np.matmul(np.moveaxis(x, axis, -1), matrix), -1, axis)


def _rotated(x: Pair, axis: int, waves: Pair, sign: int) -> Pair:
    """sum over the axis of (re + i im) (cos + i sign sin)."""
    re, im = (Pair(_along(part, axis, waves.re), sign * _along(part, axis, waves.im)) for part in x)
    return Pair(re.re - im.im, re.im + im.re)


def _transform(re: Values, im: Values | None, axes: Sequence[int], sign: int) -> Pair:
    x = Pair(re, np.zeros_like(re) if im is None else im)
    for axis in axes:
        x = _rotated(x, axis, _waves(re.shape[axis], re), sign)
    return x


def dft(re: Values, im: Values | None, axes: Sequence[int]) -> Pair:
    """Transform over ``axes``, one after the other, not scaled; ``im`` None is zero.

    Source: A. Oppenheim, R. Schafer, "Discrete-Time Signal Processing", section 8.5.

    >>> dft(np.array([1.0, 2.0, 3.0, 4.0]), None, (0,))
    Pair(re=array([10., -2., -2., -2.]), im=array([ 0.,  2.,  0., -2.]))
    """
    # An array that is more than its floats (see ``inexact``) knows its own transform.
    own: Any = getattr(re, "fourier", None)
    if own is not None:
        return Pair(*own(im, tuple(axes), inverse=False))
    return _transform(re, im, axes, -1)


def idft(re: Values, im: Values | None, axes: Sequence[int]) -> Pair:
    """Inverse transform over ``axes``: the phase turns the other way, divided by N = product of n.

    >>> idft(*dft(np.array([1.0, 2.0, 3.0, 4.0]), None, (0,)), (0,)).re.tolist()
    [1.0, 2.0, 3.0, 4.0]
    """
    own: Any = getattr(re, "fourier", None)
    if own is not None:
        return Pair(*own(im, tuple(axes), inverse=True))
    size = prod(re.shape[a] for a in axes)
    x = _transform(re, im, axes, 1)
    return Pair(x.re / size, x.im / size)


def dense_dft(re: Values, im: Values | None, axes: Sequence[int]) -> Pair:
    """``dft`` by one matrix over the whole grid, row-major: the definition, and not several steps.

    ``axes`` are neighbours, in order.

    >>> x = np.arange(6.0).reshape(2, 3)
    >>> bool(np.allclose(dense_dft(x, None, (0, 1)), dft(x, None, (0, 1))))
    True
    """
    sizes = [re.shape[a] for a in axes]
    turn, count = lcm(*sizes), prod(sizes)
    places: Any = np.indices(sizes).reshape(len(sizes), count)
    phase: Any = sum(np.outer(at, at) * (turn // n) for at, n in zip(places, sizes, strict=True))
    waves = Pair(*turns(phase, turn, re))
    first = axes[0]
    flat = (*re.shape[:first], count, *re.shape[first + len(sizes) :])
    parts = (re, np.zeros_like(re) if im is None else im)
    x = _rotated(Pair(*(p.reshape(flat) for p in parts)), first, waves, -1)
    return Pair(*(p.reshape(re.shape) for p in x))
