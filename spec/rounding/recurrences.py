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

The gradient into a factor is l_t h_{t-1}, with l the reverse scan. A gradient through a tree is not
the product of these two but a sum of products of their parts. Its monomials are the same, those of
l_t times those of h_{t-1}; each has the roundings of its two parts, one product more, and the
additions that join the products of parts: at most one for each use of the factor's node, and a tree
uses a node four times a level or less. So with e the errors of both scans and S their magnitudes

    S_l e_h + S_h e_l + e_l e_h + (4 ceil(log2 T) + 6) r S_l S_h
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from assay.spec.arithmetic import gamma
from assay.spec.rounding import elementwise
from assay.spec.rounding.carried import Carried
from assay.spec.scalars import Array
from assay.spec.scans import affine
from assay.spec.scans.runner import run
from assay.spec.scans.shapes import before


class _Sums(NamedTuple):
    """What the error of a state is made of (see the head of this file).

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


class _Inputs(NamedTuple):
    """One step's a and v: values, errors, largest magnitudes, and 0 where |a| is exactly 1."""

    a: Array
    a_error: Array
    factor: Array
    rounds: Array
    v: Array
    v_error: Array
    added: Array


def _start(start: Carried, shape: tuple[int, ...]) -> _Sums:
    h, error, size = (np.broadcast_to(x, shape) for x in (start.value, start.error, start.reach))
    zero = np.zeros(shape)
    return _Sums(h, error, size, zero, (size > 0).astype(np.float64), size, zero + 1.0)


def _inputs(a: Carried, v: Carried) -> _Inputs:
    rounds = ~((np.abs(a.value) == 1) & a.exact)
    parts = (a.value, a.error, a.reach, rounds)
    value, error, reach, rounds = (np.broadcast_to(x, v.value.shape) for x in parts)
    return _Inputs(value, error, reach, rounds, v.value, v.error, v.reach)


def _step(s: _Sums, x: _Inputs) -> tuple[_Sums, _Sums]:
    size = x.factor * s.size + x.added
    after = _Sums(
        x.a * s.h + x.v,
        x.factor * s.inherited + np.abs(s.h) * x.a_error + x.v_error,
        size,
        x.factor * (s.products + x.rounds * s.size),
        s.leaves * (x.factor != 0) + (x.added > 0),
        np.maximum(s.top, size),
        s.growth * np.maximum(x.factor, 1.0),
    )
    return after, after


def recurrence(a: Carried, v: Carried, start: Carried) -> Carried:
    """All states, time first: a and v [T, ...], start [...]."""
    if not len(v.value):
        return v
    inputs = _inputs(a, v)
    sums, _ = run(_step, _start(start, v.value.shape[1:]), list(map(_Inputs, *inputs)))
    s = _Sums(*map(np.stack, zip(*sums, strict=True)))
    steps = np.arange(1, len(v.value) + 1).reshape(-1, *[1] * (v.value.ndim - 1))
    most = 2 * steps * v.unit
    own = np.expm1(most) / most * v.unit * (s.products + s.size * np.maximum(s.leaves - 1, 0))
    tau = v.arithmetic.tau_acc * steps * (1.0 + s.top) * s.growth
    error = s.inherited + own + np.where(s.leaves > 0, tau, 0.0)
    overflows = (np.maximum(s.top + error, s.growth) >= v.largest) & ~np.isinf(s.h)
    return v.of(s.h, np.where(overflows, np.inf, error))


def decay(z: Carried, v: Carried, start: Carried) -> Carried:
    """``recurrence`` with a = exp(-z); sums of exponents may stand for products of factors."""
    a = elementwise.exp(z.of(-z.value, z.error))
    result = recurrence(a, v, start)
    if not len(v.value):
        return v
    slack: Any = gamma(len(v.value), v.unit)
    exponent = np.broadcast_to(z.reach, v.value.shape)
    factor = np.broadcast_to(a.reach, v.value.shape) * np.exp(slack * exponent)

    def step(now: tuple[Array, Array], x: tuple[Array, Array, Array]) -> Any:
        sums, size = now
        d, away, added = x
        sums = d * (sums + away * size)
        return (sums, d * size + added), sums

    size = np.broadcast_to(start.reach, v.value.shape[1:])
    inputs = list(zip(factor, exponent, v.reach, strict=True))
    sums, _ = run(step, (np.zeros_like(size), size), inputs)
    return result.of(result.value, result.error + slack * np.stack(sums))


def into_factors(
    a: Carried, v: Carried, start: Carried, read: Carried, earlier: Carried, slopes: Carried
) -> Carried:
    """slopes * earlier, as gradients of the factors of ``recurrence``, whatever its bracketing.

    earlier and slopes are the states before each step and the gradients into those after it; read
    is what the slopes add.
    """
    factor = np.broadcast_to(a.reach, v.value.shape)
    states = affine.recurrence(factor, v.reach, np.broadcast_to(start.reach, v.value.shape[1:]))
    size, slope = before(start.reach, states), affine.reverse(factor, read.reach)
    joins = 4 * math.ceil(math.log2(max(len(v.value), 1))) + 6
    result = elementwise.multiply(slopes, earlier)
    error = slope * earlier.error + size * slopes.error + slopes.error * earlier.error
    return result.of(result.value, result.error + error + joins * v.unit * size * slope)
