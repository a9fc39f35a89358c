"""Error rules of h_t = a_t h_{t-1} + v_t, for every bracketing of the scan.

The step is a composition of affine maps, which is associative: a kernel may go step by step, in
chunks, or as a tree of any shape, and a chunk may be one matrix product. Whatever it does, h_t is a
sum over s <= t of P_ts v_s with P_ts = a_{s+1} ... a_t (v_{-1} = h_{-1}, the start), and

    inherited   I_t = (|a_t| + e_a) I_{t-1} + e_a |h_{t-1}| + e_v: what the errors of a, v and the
                start alone make, the same for every bracketing
    products    each factor joins the term of v_s by one multiplication, t - s in all; factors of
                exactly 1 or -1 cost nothing
    sums        a tree with n leaves that are not 0 lets a term pass at most n - 1 additions

With w_s the magnitudes of the terms, m_s their roundings and r the roundoff of one operation, what
is added to I_t is at most sum_s ((1 + r)^{m_s} - 1) w_s <= phi r sum_s m_s w_s, where phi =
(e^x - 1)/x at x = 2 (t + 1) r, the most roundings of any term. Both sums are scans: S_t = |a_t|
S_{t-1} + |v_t| holds the magnitudes, M_t = |a_t| (M_{t-1} + S_{t-1}) the magnitudes times their
products. An operation that underflows adds tau times what it is still multiplied with: at most (1 +
largest S) times the product of all |a| above 1.

Where a_t = exp(-z_t), a factor P_ts may also be exp of minus the sum of the exponents in between,
in any order: its exponent X_ts is off by gamma_T X_ts, so the term by gamma_T X_ts P_ts |v_s|, a
scan again. Not covered is exp of a difference of two running sums of all exponents: its error
follows the whole decay since the start and not the decay in between, which is not sound.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from assay.spec.arithmetic import gamma
from assay.spec.rounding import elementwise
from assay.spec.rounding.carried import Carried
from assay.spec.rounding.elementwise import times
from assay.spec.scalars import Array


class _Sums(NamedTuple):
    """What the error of one state is made of (see the head of this file).

    h the state, inherited I, size S, products M, leaves n, top the largest S, growth the product
    of all |a| above 1.
    """

    h: Array
    inherited: Array
    size: Array
    products: Array
    leaves: Array
    top: Array
    growth: Array


def _start(start: Carried) -> _Sums:
    size = start.reach
    zero = np.zeros_like(size)
    leaves = (size > 0).astype(np.float64)
    return _Sums(start.value, start.error, size, zero, leaves, size, np.ones_like(size))


def _step(s: _Sums, a: Carried, v: Carried) -> _Sums:
    factor, added = a.reach, v.reach
    rounded = np.where((np.abs(a.value) == 1) & a.exact, 0.0, s.size)
    size = times(factor, s.size) + added
    return _Sums(
        a.value * s.h + v.value,
        times(factor, s.inherited) + times(np.abs(s.h), a.error) + v.error,
        size,
        times(factor, s.products + rounded),
        np.where(factor == 0, 0.0, s.leaves) + (added > 0),
        np.maximum(s.top, size),
        s.growth * np.maximum(factor, 1.0),
    )


def _state(s: _Sums, t: int, like: Carried) -> Carried:
    most = 2 * (t + 1) * like.unit
    phi = np.expm1(most) / most
    sums = np.maximum(s.leaves - 1, 0)
    own = phi * like.unit * (s.products + times(s.size, sums))
    tau = like.arithmetic.tau_acc * (t + 1) * (1.0 + s.top) * s.growth
    error = s.inherited + own + np.where(s.leaves > 0, tau, 0.0)
    overflows = np.maximum(s.top + error, s.growth) >= like.largest
    return like.of(s.h, np.where(overflows & ~np.isinf(s.h), np.inf, error))


def _spread(x: Carried, shape: tuple[int, ...]) -> Carried:
    return x.moved(lambda part: np.broadcast_to(part, shape))


def recurrence(a: Carried, v: Carried, start: Carried) -> Carried:
    """All states, time first: a and v [T, ...], start [...]."""
    sums, states = _start(_spread(start, v.value.shape[1:])), []
    a = _spread(a, v.value.shape)
    for t in range(len(v.value)):
        sums = _step(sums, a.moved(itemgetter(t)), v.moved(itemgetter(t)))
        states.append(_state(sums, t, v))
    if not states:
        return v
    return v.of(np.stack([x.value for x in states]), np.stack([x.error for x in states]))


def decay(z: Carried, v: Carried, start: Carried) -> Carried:
    """``recurrence`` with a = exp(-z); sums of exponents may stand for products of factors."""
    a = _spread(elementwise.exp(z.of(-z.value, z.error)), v.value.shape)
    result = recurrence(a, v, start)
    slack: Any = gamma(len(v.value), v.unit)
    exponent = np.broadcast_to(z.reach, v.value.shape)
    factor = times(a.reach, np.exp(slack * exponent))
    size, extra = np.broadcast_to(start.reach, v.value.shape[1:]), []
    sums = np.zeros_like(size)
    for d, x, added in zip(factor, exponent, v.reach, strict=True):
        sums = times(d, sums + times(size, x))
        size = times(d, size) + added
        extra.append(slack * sums)
    return result.of(result.value, result.error + np.stack(extra)) if extra else result
