"""Affine scan: h_t = a_t h_{t-1} + b_t x_t, with all states returned."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Shaped

from assay.spec.scalars import Array, exp
from assay.spec.scans.algebra import AffineMap, apply, composed
from assay.spec.scans.runner import run, run_chunked, scan_tree
from assay.spec.scans.shapes import after, before, summed_to, time_back, time_first

X = Shaped[np.ndarray, "*b T E"]
H = Shaped[np.ndarray, "*b E"]


class AffineGradients(NamedTuple):
    """Cotangents of the four inputs, each in its input's shape."""

    a: Array
    b: Array
    x: X
    h0: H


def _step(h: Array, f: AffineMap) -> tuple[Array, Array]:
    h = apply(f, h)
    return h, h


def _stacked(states: list[Array], like: Array) -> Array:
    return np.stack(states) if states else like


def recurrence(a: Array, v: Array, start: Array) -> Array:
    """h_t = a_t h_{t-1} + v_t: all states, for a and v [T, ...] and start [...] (time first).

    >>> recurrence(np.full(3, 0.5), np.ones(3), np.array(0.0)).tolist()
    [1.0, 1.5, 1.75]
    """
    # An array that is more than its floats (see ``inexact``) knows how a scan may be arranged.
    own = getattr(v, "recurrence", None)
    if own is not None:
        return own(a, start)
    states, _ = run(_step, start, [AffineMap(*f) for f in zip(a, v, strict=True)])
    return _stacked(states, v)


def decay(z: Array, v: Array, start: Array) -> Array:
    """``recurrence`` with a_t = exp(-z_t).

    >>> decay(np.zeros(3), np.ones(3), np.array(0.0)).tolist()
    [1.0, 2.0, 3.0]
    """
    own = getattr(v, "decay", None)
    if own is not None:
        return own(z, start)
    return recurrence(exp(-z), v, start)


def _check(a: Array, b: Array, x: X, h0: H | None) -> None:
    if x.ndim < 2:
        raise ValueError(f"x must have at least 2 axes [time, channels], got shape {x.shape}")
    for name, given in (("a", a), ("b", b)):
        ahead = (1,) * (x.ndim - given.ndim) + tuple(given.shape)
        if given.ndim > x.ndim or any(n not in (1, m) for n, m in zip(ahead, x.shape, strict=True)):
            raise ValueError(f"shape of {name} {given.shape} must broadcast to that of x {x.shape}")
    state = (*x.shape[:-2], x.shape[-1])
    if h0 is not None and h0.shape != state:
        raise ValueError(f"shape of h0 {h0.shape} must be that of x without its time axis {state}")


def _setup(a: Array, b: Array, x: X, h0: H | None) -> tuple[Array, Array, Array, Array]:
    """a, b and x time first, and the start."""
    _check(a, b, x, h0)
    start = np.zeros_like(x[..., :1, :].sum(axis=-2)) if h0 is None else h0
    a, b = (time_first(np.broadcast_to(p, x.shape)) for p in (a, b))
    return a, b, time_first(x), start


def affine_scan(a: Array, b: Array, x: X, h0: H | None = None) -> X:
    """All states h_1 .. h_T, each channel by itself.

    x [..., T, E]; a and b broadcastable to it: [E] are shared by all steps, [..., T, E] are given
    for each; h0 [..., E] is the state before the first step (None: zeros). T = 0 gives no states.
    An a of exactly 0 starts a new sequence. Source: G. Blelloch, "Prefix sums and their
    applications" (1990), section 1.4, where it is the first-order recurrence.

    >>> affine_scan(np.array([0.5]), np.ones(1), np.array([[2.0], [4.0]]), np.ones(1)).tolist()
    [[2.5], [5.25]]
    """
    a, b, x, start = _setup(a, b, x, h0)
    return time_back(recurrence(a, b * x, start))


def affine_scan_tree(a: Array, b: Array, x: X, h0: H | None = None) -> X:
    """``affine_scan`` by a tree of composed maps: equal to it over the reals, not in floats.

    >>> half, x = np.array([0.5]), np.arange(4.0).reshape(4, 1)
    >>> bool((affine_scan_tree(half, half, x) == affine_scan(half, half, x)).all())
    True
    """
    a, b, x, start = _setup(a, b, x, h0)
    prefixes = scan_tree(composed, [AffineMap(*f) for f in zip(a, b * x, strict=True)])
    return time_back(_stacked([apply(f, start) for f in prefixes], x))


def affine_scan_chunked(a: Array, b: Array, x: X, h0: H | None = None, *, chunk: int) -> X:
    """``affine_scan``, ``chunk`` steps at a time, each from the last state of the one before."""
    a, b, x, start = _setup(a, b, x, h0)
    maps = [AffineMap(*f) for f in zip(a, b * x, strict=True)]
    states, _ = run_chunked(_step, start, maps, chunk)
    return time_back(_stacked(states, x))


def affine_scan_backward(a: Array, b: Array, x: X, h0: H | None, cotangent: X) -> AffineGradients:
    """Gradients of sum(h * cotangent): l_t = g_t + a_{t+1} l_{t+1} is the gradient into h_t, and
    da_t = l_t h_{t-1}, db_t = l_t x_t, dx_t = l_t b_t, dh0 = a_1 l_1.

    A shared a or b gets the sum over all that shared it. The reverse recurrence is an affine scan
    again.
    """
    shapes = a.shape, b.shape
    a, b, x, start = _setup(a, b, x, h0)
    v, read = b * x, time_first(cotangent)
    states, slopes = recurrence(a, v, start), reverse(a, read)
    factors = into_factors(a, v, start, read, states, slopes)
    da, db = (
        summed_to(time_back(flow), shape)
        for flow, shape in zip((factors, slopes * x), shapes, strict=True)
    )
    return AffineGradients(da, db, time_back(slopes * b), into_start(a * slopes, start))


def into_factors(
    a: Array, v: Array, start: Array, read: Array, states: Array, slopes: Array
) -> Array:
    """l_t h_{t-1}: gradients into the factors of ``recurrence``; time first.

    a, v and start are what the states come from, a and read (the cotangents of the states) what the
    slopes l come from.
    """
    earlier = before(start, states)
    # A gradient through a tree has other partial sums than this product of two.
    own = getattr(v, "into_factors", None)
    if own is not None:
        return own(a, start, read, earlier, slopes)
    return slopes * earlier


def reverse(a: Array, cotangent: Array) -> Array:
    """l_t = g_t + a_{t+1} l_{t+1}: gradients into the states of ``recurrence``; time first."""
    backwards = np.flip(cotangent, axis=0)
    start = np.zeros_like(cotangent.sum(axis=0))
    return np.flip(recurrence(np.flip(after(a), axis=0), backwards, start), axis=0)


def into_start(moved: Array, start: Array) -> Array:
    """Gradient into the start from a_t l_t: its first entry, and 0 where there was no step."""
    return moved[0] if len(moved) else np.zeros_like(start)
