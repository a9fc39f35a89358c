"""Selective scan: h_t = exp(-delta_t a) h_{t-1} + delta_t u_t b_t, y_t = c_t . h_t + d u_t."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Shaped

from assay.spec.scalars import Array, exp, total
from assay.spec.scans.affine import decay
from assay.spec.scans.shapes import after, before, with_last

U = Shaped[np.ndarray, "B T E"]
Rate = Shaped[np.ndarray, "E Ns"]
Mix = Shaped[np.ndarray, "B T Ns"]
Skip = Shaped[np.ndarray, "E"]
State = Shaped[np.ndarray, "B E Ns"]


class Flow(NamedTuple):
    """What gradients into the decay are made of, [T, B, E, Ns]: the factors kept, the added terms,
    the states, the cotangents that are read from them, the gradients into them; start [B, E, Ns].
    """

    kept: Array
    added: Array
    start: State
    states: Array
    read: Array
    slopes: Array


Lose = Callable[[Flow], Array]
"""A form of ``lost``."""


class SelectiveGradients(NamedTuple):
    """Cotangents of the seven inputs, each in its input's shape."""

    u: U
    delta: U
    a: Rate
    b: Mix
    c: Mix
    d: Skip
    h0: State


def _check(u: U, delta: U, a: Rate, b: Mix, c: Mix, d: Skip | None, h0: State | None) -> None:
    if u.ndim != 3 or a.ndim != 2:
        raise ValueError(
            f"u must have 3 axes [batch, time, channels] and a 2 axes [channels, states], "
            f"got shapes {u.shape}, {a.shape}"
        )
    (batch, steps, channels), states = u.shape, a.shape[1]
    wanted = {
        "delta": (delta, u.shape),
        "a": (a, (channels, states)),
        "b": (b, (batch, steps, states)),
        "c": (c, (batch, steps, states)),
        "d": (d, (channels,)),
        "h0": (h0, (batch, channels, states)),
    }
    for name, (given, shape) in wanted.items():
        if given is not None and given.shape != shape:
            raise ValueError(
                f"shape of {name} {given.shape} must be {shape}, as u {u.shape} and a {a.shape} say"
            )


class _Scan(NamedTuple):
    """Exponents, added terms and states [T, B, E, Ns], and the state before them [B, E, Ns]."""

    exponents: Array
    added: Array
    states: Array
    start: State


def _scan(u: U, delta: U, a: Rate, b: Mix, h0: State | None) -> _Scan:
    exponents = np.moveaxis(delta[..., None] * a, 1, 0)
    added = np.moveaxis((delta * u)[..., None] * b[:, :, None, :], 1, 0)
    start = np.zeros_like(added.sum(axis=0)) if h0 is None else h0
    return _Scan(exponents, added, decay(exponents, added, start), start)


def selective_scan(
    u: U,
    delta: U,
    a: Rate,
    b: Mix,
    c: Mix,
    d: Skip | None = None,
    h0: State | None = None,
) -> tuple[U, State]:
    """The outputs and the state after the last step; the state is updated, then read.

    u, delta [B, T, E]; a [E, Ns], rates of decay: positive in a model, so that no factor exceeds
    1; b, c [B, T, Ns]; d [E] (None: no skip); h0 [B, E, Ns] (None: zeros). The decay is the exact
    exponential, the added term is delta b, of first order in delta. T = 0 gives no outputs and the
    state that was given. Source: A. Gu and T. Dao, "Mamba" (2023), algorithm 2, whose A is -a.

    >>> one = np.ones((1, 2, 1))
    >>> y, h = selective_scan(one, one, np.zeros((1, 1)), one, one)
    >>> y.ravel().tolist(), h.tolist()
    ([1.0, 2.0], [[[2.0]]])
    """
    _check(u, delta, a, b, c, d, h0)
    scan = _scan(u, delta, a, b, h0)
    terms = np.moveaxis(scan.states, 0, 1) * c[:, :, None, :]
    if d is not None:
        terms = np.concatenate([terms, (d * u)[..., None]], axis=-1)
    return total(terms)[..., 0], scan.states[-1] if len(scan.states) else scan.start


def lost(flow: Flow) -> Array:
    """l_t k_t: what an exponent that grows takes from the result."""
    return flow.slopes * (flow.kept * before(flow.start, flow.states))


def _slopes(scan: _Scan, read: Array) -> Array:
    """Gradients into the states: l_t = read_t + exp(-z_{t+1}) l_{t+1}; time first."""
    exponents = np.flip(after(scan.exponents), axis=0)
    start = np.zeros_like(scan.start)
    return np.flip(decay(exponents, np.flip(read, axis=0), start), axis=0)


def selective_scan_backward(
    u: U,
    delta: U,
    a: Rate,
    b: Mix,
    c: Mix,
    d: Skip | None,
    h0: State | None,
    cotangent: U,
    state_cotangent: State | None = None,
    *,
    lose: Lose = lost,
) -> SelectiveGradients:
    """Gradients of sum(y * cotangent) + sum(last state * state_cotangent).

    With l the gradients into the states (a reverse scan) and k_t = exp(-delta_t a) h_{t-1} what is
    carried over: du = sum_n l b delta + d g, ddelta = sum_n (l b u - l k a), da = - sum l k delta,
    db = sum_e l delta u, dc = sum_e g h, dd = sum g u, dh0 = exp(-delta_1 a) l_1. A missing d or h0
    gets the gradient that it would have as zeros. ``lose`` is the form in which l k is evaluated.
    """
    _check(u, delta, a, b, c, d, h0)
    scan = _scan(u, delta, a, b, h0)
    read = np.moveaxis(cotangent[..., None] * c[:, :, None, :], 1, 0)
    read = with_last(read, state_cotangent)
    kept, slopes = exp(-scan.exponents), _slopes(scan, read)
    gone = lose(Flow(kept, scan.added, scan.start, scan.states, read, slopes))
    if len(slopes):
        dh0 = (kept * slopes)[0]
    else:
        dh0 = np.zeros_like(scan.start) if state_cotangent is None else state_cotangent
    slopes, gone, states = (np.moveaxis(x, 0, 1) for x in (slopes, gone, scan.states))
    into_b = slopes * b[:, :, None, :]
    terms = into_b * delta[..., None]
    if d is not None:
        terms = np.concatenate([terms, (d * cotangent)[..., None]], axis=-1)
    return SelectiveGradients(
        u=total(terms)[..., 0],
        delta=total(np.concatenate([into_b * u[..., None], -(gone * a)], axis=-1))[..., 0],
        a=-(gone * delta[..., None]).sum(axis=(0, 1)),
        b=(slopes * (delta * u)[..., None]).sum(axis=2),
        c=(cotangent[..., None] * states).sum(axis=2),
        d=(cotangent * u).sum(axis=(0, 1)),
        h0=dh0,
    )
