"""Pooling: y[b, c, i] = mean or max over taps j of x[b, c, s i + j - p]."""

from __future__ import annotations

from math import prod
from typing import Literal

import numpy as np
from jaxtyping import Shaped

from assay.spec.scalars import Array, at_most, is_symbolic, row_max, select
from assay.spec.spatial.windows import PerAxis, Windows, check_grid, flat_windows, gather

X = Shaped[np.ndarray, "B C *n"]
Y = Shaped[np.ndarray, "B C *m"]
Kind = Literal["mean", "max"]


def _windows(x: X, window: PerAxis | None, stride: PerAxis | None, padding: PerAxis) -> Windows:
    """Whole extents where no window is given; windows side by side where no stride is."""
    check_grid(x)
    if window is None:
        window = tuple(x.shape[2:])
    windows = Windows.over(x.shape[2:], window, window if stride is None else stride, padding)
    if any(2 * p > k for p, k in zip(windows.padding, windows.kernel, strict=True)):
        raise ValueError(
            f"padding={padding!r} must be at most half of window={window!r}: "
            "no window may lie in the padding alone"
        )
    return windows


def mean_pool(
    x: X, *, window: PerAxis | None = None, stride: PerAxis | None = None, padding: PerAxis = 0
) -> Y:
    """Mean over each window; padding counts as zeros.

    x [B, C, *n]; ``window`` None is the whole extent, ``stride`` None the window. The sum is
    divided by the size of the window, at the rim too.

    >>> mean_pool(np.array([[[1.0, 3.0, 5.0]]]), window=2, stride=1, padding=1).tolist()
    [[[0.5, 2.0, 4.0, 2.5]]]
    """
    windows = _windows(x, window, stride, padding)
    sums = np.sum(flat_windows(x, windows.seen()), axis=-1)
    return (sums / windows.taps).reshape(*x.shape[:2], *windows.extents)


def mean_pool_backward(
    x: X,
    cotangent: Y,
    *,
    window: PerAxis | None = None,
    stride: PerAxis | None = None,
    padding: PerAxis = 0,
) -> X:
    """Gradient of sum(y * cotangent): each input gets an equal share of every window it is in."""
    windows = _windows(x, window, stride, padding)
    shares = np.sum(flat_windows(cotangent, windows.seers()), axis=-1)
    return (shares / windows.taps).reshape(x.shape)


def _inside(windows: Windows) -> Shaped[np.ndarray, "1 1 M K"]:
    """Which taps of each window look at an input and not at padding."""
    everywhere = np.ones((1, 1, *windows.sizes), dtype=bool)
    return flat_windows(everywhere, windows.seen())


def max_pool(
    x: X, *, window: PerAxis | None = None, stride: PerAxis | None = None, padding: PerAxis = 0
) -> Y:
    """Largest input of each window; padding is never chosen.

    x [B, C, *n]; ``window`` None is the whole extent, ``stride`` None the window.

    >>> max_pool(np.array([[[-1.0, -3.0, -5.0]]]), window=2, stride=1, padding=1).tolist()
    [[[-1.0, -1.0, -3.0, -5.0]]]
    """
    windows = _windows(x, window, stride, padding)
    top = _largest(flat_windows(x, windows.seen()), _inside(windows))
    return top.reshape(*x.shape[:2], *windows.extents)


def _largest(rows: Array, inside: Array) -> Array:
    """Largest entry of each row that lies inside; every row has one."""
    if not is_symbolic(rows):
        return row_max(rows, inside)
    top, seen = rows[..., :1], np.broadcast_to(inside[..., :1], (*rows.shape[:-1], 1))
    for j in range(1, rows.shape[-1]):
        here, ok = rows[..., j : j + 1], inside[..., j : j + 1]
        better = select(at_most(here, top), top, here)
        top = select(ok, select(seen, better, here), top)
        seen = seen | ok
    return top


def _to_first_largest(rows: Array, inside: Array, cotangent: Array) -> Array:
    """``cotangent`` [..., 1] at the first largest entry of each row inside, 0 elsewhere."""
    largest = at_most(_largest(rows, inside), rows) & inside
    shares, taken = [], np.zeros((*rows.shape[:-1], 1), dtype=bool)
    for j in range(rows.shape[-1]):
        here = largest[..., j : j + 1]
        shares.append(select(taken, 0, select(here, cotangent, 0)))
        taken = taken | here
    return np.concatenate(shares, axis=-1)


def max_pool_backward(
    x: X,
    cotangent: Y,
    *,
    window: PerAxis | None = None,
    stride: PerAxis | None = None,
    padding: PerAxis = 0,
) -> X:
    """Gradient of sum(y * cotangent): all of it to the first largest input of each window.

    First in row-major order. Where inputs are tied the maximum has no derivative, and this is one
    of its subgradients.
    """
    windows = _windows(x, window, stride, padding)
    rows = flat_windows(x, windows.seen())
    behind = cotangent.reshape(*rows.shape[:3], 1)
    spread = _to_first_largest(rows, _inside(windows), behind)
    # Outputs and taps of one axis side by side: entry (output, tap) lies at output * k + tap.
    axes, lead = len(windows.sizes), x.shape[:2]
    pairs = spread.reshape(*lead, *windows.extents, *windows.kernel)
    order = [a + side * axes for a in range(axes) for side in (0, 1)]
    pairs = np.transpose(pairs, (0, 1, *(2 + a for a in order)))
    lengths = [m * k for m, k in zip(windows.extents, windows.kernel, strict=True)]
    at = [s * k + np.arange(k) for s, k in zip(windows.seers(), windows.kernel, strict=True)]
    at = [np.minimum(a, end) for a, end in zip(at, lengths, strict=True)]
    met = gather(pairs.reshape(*lead, *lengths), at)
    return np.sum(met.reshape(*x.shape, windows.taps), axis=-1)


def global_mean(x: X) -> Shaped[np.ndarray, "B C"]:
    """Mean over all spatial axes; ValueError where they are empty.

    >>> global_mean(np.arange(6.0).reshape(1, 2, 3)).tolist()
    [[1.0, 4.0]]
    """
    count = _positions(x)
    return np.sum(x.reshape(*x.shape[:2], count), axis=-1) / count


def global_mean_backward(x: X, cotangent: Shaped[np.ndarray, "B C"]) -> X:
    """Gradient of sum(y * cotangent): an equal share to every position."""
    share = cotangent / _positions(x)
    return np.broadcast_to(share.reshape(*share.shape, *(1 for _ in x.shape[2:])), x.shape)


def _positions(x: X) -> int:
    check_grid(x)
    count = prod(x.shape[2:])
    if not count:
        raise ValueError(f"x has shape {x.shape}: there is no mean over an empty grid")
    return count
