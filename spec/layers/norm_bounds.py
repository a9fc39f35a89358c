"""Error bounds of layer, group and batch normalisation: |computed - exact| <= bound, for a variance
taken in two passes or by Welford's updates, and for affine maps that are folded.

Notation: m, v are the mean and the variance of a slice of n entries, s = 1 / sqrt(v + eps), z =
(x - m) s; r = u + u_mid; E bounds the error of the mean. A variance taken as mean x^2 - m^2 is not
covered: for a mean that is large against the deviation it is not sound.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from assay.spec.arithmetic import Arithmetic, gamma
from assay.spec.inexact import Inexact, stored
from assay.spec.layers.slices import Features, NormGradients, Slices
from assay.spec.layers.standardize import mean
from assay.spec.scalars import Array, total


class _Standardized(NamedTuple):
    """Of rows [..., n]: z and s with their errors, and what folded forms add.

    folded  (|x| + |m|) s, the magnitudes that cancel in x s - m s; 0 in constant rows
    """

    z: Any
    rate: Any
    folded: Array


def mean_error(x: Array, arithmetic: Arithmetic) -> Array:
    """Bound E on the error of the mean of each row [..., n], by a sum in any order or by updates.

    A sum and a division: gamma_{n+1} mean|x|. Updates m' = m + (x - m) k / K, singly or of two
    parts of which the one merged in has k of the K entries: each rounds m' once and the step three
    times, and its error counts K / n in the result. The first part sums to u mean|x| for each of at
    most n updates that an entry passes through. The second is 3 r sum k / n (|x| + |m|) <= 3 r d
    (mean|x| + max|x|), where d <= 1 + log2 n is how often an entry is merged in. A single entry is
    its own mean. Source: T. Chan, G. Golub and R. LeVeque (1983) for the updates.
    """
    n = x.shape[-1]
    size = np.abs(x).astype(np.float64)
    middle, largest = mean(size), np.max(size, axis=-1, keepdims=True, initial=0.0)
    r = arithmetic.u_acc + arithmetic.u_mid
    error = (gamma(n + 1, arithmetic.u_acc) + 2.0 * arithmetic.u_mid) * middle
    error = error + gamma(3.0 * (1.0 + np.log2(max(n, 1))), r) * (middle + largest)
    error = error + (n + 2) * arithmetic.tau_acc
    unknown = total(size) * 1.01 >= arithmetic.largest
    return np.where(unknown, np.inf, error) if n > 1 else np.zeros_like(middle)


def _variance_error(away: Array, error: Array, arithmetic: Arithmetic) -> Array:
    """Bound on the error of the variance, from the deviations [..., n] and the bound E [..., 1].

    Two passes: the mean of (x - m - e)^2 is v + e^2, since the deviations sum to 0. Merged parts:
    the sum of squares gains w d^2 with d the difference of two means, off by at most 2 E, and w the
    harmonic sum of their sizes; sum w d^2 = n v and sum w <= n L with L = 1 + log2 n, so that v is
    off by 4 E sqrt(v L) + 4 E^2 L. All terms are at least 0: the n + 8 roundings of sums, squares,
    factors are relative.
    """
    n = away.shape[-1]
    square = away * away
    v, merges = mean(square).astype(np.float64), 1.0 + np.log2(max(n, 1))
    moved = 4.0 * error * np.sqrt(v * merges) + 4.0 * error**2 * merges
    own = gamma(n + 8, arithmetic.u_acc) + 4.0 * arithmetic.u_mid
    bound = moved + own * (v + moved) + 2.0 * arithmetic.tau_acc
    unknown = n * (v + moved) * 1.01 >= arithmetic.largest
    return np.where(unknown, np.inf, bound)


def _standardized(x: Array, eps: float, arithmetic: Arithmetic) -> _Standardized:
    """z and s by the rules of running analysis, from a mean and a variance with their errors.

    In a constant row x - m = 0, and what is computed is the error e of the mean, everywhere: z is
    off by e / sqrt(e^2 + eps) <= min(1, E / sqrt(eps)), and s lies between 1 / sqrt(E^2 + eps) and
    1 / sqrt(eps), each with 8 roundings. An eps below the normal numbers is off by a share d = tau
    / eps, by which 1 / sqrt(eps (1 - d)) is off by at most d, for d <= 1/2; beyond that, or where
    the root overflows, nothing is known. Folded forms leave that range: they are not covered there.
    """
    error = mean_error(x, arithmetic)
    middle = mean(x)
    away = Inexact(x, 0.0, arithmetic) - Inexact(middle, error, arithmetic)
    exact = x - middle
    variance = Inexact(mean(exact * exact), _variance_error(exact, error, arithmetic), arithmetic)
    rate: Any = 1 / np.sqrt(variance + eps)
    z: Any = away * rate
    folded = (np.abs(x) + np.abs(middle) + error) * (rate.value + rate.error)
    constant = (x == x[..., :1]).all(axis=-1, keepdims=True)
    if not constant.any():
        return _Standardized(z, rate, folded)
    spread = np.where(np.isfinite(error), error, np.nan) / np.sqrt(eps)
    own = 8.0 * (arithmetic.u_acc + arithmetic.u_mid) + _lost(eps, arithmetic)
    slower = 1.0 - 1.0 / np.sqrt(1.0 + spread**2)
    rate = rate.of(rate.value, np.where(constant, rate.value * (slower + own), rate.error))
    off = np.minimum(1.0, spread) * (1.0 + own)
    z = z.of(np.where(constant, 0.0, z.value), np.where(constant, off, z.error))
    return _Standardized(z, rate, np.where(constant, 0.0, folded))


def _lost(eps: float, arithmetic: Arithmetic) -> float:
    """Share of 1 / sqrt(eps) that an eps below the normal numbers loses; NaN for all of it."""
    share = arithmetic.tau_acc / eps if 0 < eps < arithmetic.smallest else 0.0
    known = eps > 0 and share <= 0.5 and eps**-0.5 < arithmetic.largest
    return share if known else np.nan


def normalize_bound(
    x: Array,
    weight: Features | None,
    bias: Features | None,
    eps: float,
    slices: Slices,
    arithmetic: Arithmetic,
) -> Array:
    """Bound on |computed - exact| for ``normalize``, in the shape of x.

    z weight + bias by the rules. Folded, it is x a + c with a = s weight and c = bias - m a: six
    roundings of (|x| + |m|) s |weight| + |bias| more, where the slice is not constant.
    """
    with np.errstate(all="ignore"):
        rows = _standardized(slices.cut(x), eps, arithmetic)
        z: Any = slices.join(rows.z)
        folded = slices.join(rows.folded)
        scale = np.ones(1) if weight is None else slices.spread(weight)
        shift = np.zeros(1) if bias is None else slices.spread(bias)
        y: Any = z * _exact(scale, arithmetic) + _exact(shift, arithmetic)
        rounding = 6.0 * y.unit * (folded * np.abs(scale) + np.abs(shift) * (folded > 0))
        return stored(y.of(y.value, y.error + rounding))


def _exact(x: Array, arithmetic: Arithmetic) -> Inexact:
    return Inexact(x, 0.0, arithmetic)


def normalize_backward_bound(
    x: Array,
    weight: Features | None,
    cotangent: Array,
    eps: float,
    slices: Slices,
    arithmetic: Arithmetic,
) -> NormGradients:
    """Bounds on |computed - exact| for ``normalize_backward``.

    With h = g weight and t = mean(h z), dx = (h - mean h - z t) s by the rules. In use are as well:
    t as (sum h x - m sum h) s / n, whose sums of n terms round (|x| + |m|) s |h|; dx as a g + b x +
    c with a = s weight, b = -t s^2 and c = -b m - s mean h, whose 8 roundings are relative to s
    (|h| + |mean h| + |t| (|x| + |m|) s). dw = sum g z by the rules, or with z as x s - m s, or as
    (sum g x - m sum g) s: its sums round (|x| + |m|) s |g|.
    """
    with np.errstate(all="ignore"):
        rows, u = _standardized(slices.cut(x), eps, arithmetic), arithmetic.u_acc
        g: Any = _exact(cotangent, arithmetic)
        z: Any = slices.join(rows.z)
        h: Any = g if weight is None else g * _exact(slices.spread(weight), arithmetic)
        h, n = slices.cut(h), rows.z.shape[-1]
        into: Any = mean(h * rows.z)
        sums = gamma(n + 8, u) + 3.0 * arithmetic.u_mid
        into = into.of(into.value, into.error + sums * mean(np.abs(h.value) * rows.folded))
        middle: Any = mean(h)
        dx: Any = (h - middle - rows.z * into) * rows.rate
        parts = h.reach + middle.reach + into.reach * (rows.z.reach + rows.folded)
        dx = slices.join(dx.of(dx.value, dx.error + 8.0 * dx.unit * parts * rows.rate.reach))
        dw: Any = slices.gather(g * z)
        db: Any = slices.gather(g)
        sums = gamma(cotangent.size // max(len(dw), 1) + 8, u) + 3.0 * arithmetic.u_mid
        cancelled = slices.gather(np.abs(cotangent) * slices.join(rows.folded))
        dw = dw.of(dw.value, dw.error + sums * cancelled)
        return NormGradients(stored(dx), stored(dw), stored(db))
