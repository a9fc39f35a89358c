"""Diagonal state-space block: h_t = a h_{t-1} + b u_t, y_t = (c h_t + d u_t) W_out, u = x W_in."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Shaped

from assay.spec.scalars import Array
from assay.spec.scans.affine import affine_scan, affine_scan_backward
from assay.spec.scans.projection import check_projection, project, project_backward
from assay.spec.scans.shapes import time_back, time_first, with_last

X = Shaped[np.ndarray, "B T I"]
Out = Shaped[np.ndarray, "B T O"]
Channel = Shaped[np.ndarray, "E"]
State = Shaped[np.ndarray, "B E"]


class DiagonalGradients(NamedTuple):
    """Cotangents of the eight inputs, each in its input's shape."""

    x: X
    a: Channel
    b: Channel
    c: Channel
    d: Channel
    in_proj: Shaped[np.ndarray, "I E"]
    readout: Shaped[np.ndarray, "E O"]
    h0: State


class CoreGradients(NamedTuple):
    """Cotangents of what ``diagonal_core`` takes."""

    u: Array
    a: Channel
    b: Channel
    c: Channel
    d: Channel
    h0: State


def check_channels(x: X, in_proj: Array, **channels: Channel) -> None:
    """ValueError unless x is [B, T, I], in_proj [I, E] and each of ``channels`` [E]."""
    if x.ndim != 3:
        raise ValueError(f"x must have 3 axes [batch, time, features], got shape {x.shape}")
    check_projection("in_proj", in_proj, x.shape[2])
    for name, given in channels.items():
        if given.shape != (in_proj.shape[1],):
            raise ValueError(f"shape of {name} {given.shape} must be ({in_proj.shape[1]},)")


def diagonal_core(
    u: Shaped[np.ndarray, "B T E"], a: Channel, b: Channel, c: Channel, d: Channel, h0: State | None
) -> tuple[Shaped[np.ndarray, "B T E"], State]:
    """y_t = c h_t + d u_t for the states of h_t = a h_{t-1} + b u_t, and the last state."""
    start = np.zeros_like(u.sum(axis=1)) if h0 is None else h0
    states = affine_scan(a, b, u, start)
    last = states[:, -1] if u.shape[1] else start
    return c * states + d * u, last


def diagonal_core_backward(
    u: Shaped[np.ndarray, "B T E"],
    a: Channel,
    b: Channel,
    c: Channel,
    d: Channel,
    h0: State | None,
    cotangent: Shaped[np.ndarray, "B T E"],
    last: State | None,
) -> CoreGradients:
    """Gradients of sum(y * cotangent) + sum(last state * last)."""
    states = affine_scan(a, b, u, h0)
    into = time_back(with_last(time_first(c * cotangent), last))
    scan = affine_scan_backward(a, b, u, h0, into)
    dh0 = scan.h0 if u.shape[1] or last is None else last
    return CoreGradients(
        u=scan.x + d * cotangent,
        a=scan.a,
        b=scan.b,
        c=(states * cotangent).sum(axis=(0, 1)),
        d=(u * cotangent).sum(axis=(0, 1)),
        h0=dh0,
    )


def diagonal_ssm(
    x: X,
    a: Channel,
    b: Channel,
    c: Channel,
    d: Channel,
    in_proj: Shaped[np.ndarray, "I E"],
    readout: Shaped[np.ndarray, "E O"],
    h0: State | None = None,
) -> tuple[Out, State]:
    """The outputs and the state after the last step; the state is updated, then read.

    x [B, T, I]; a, b, c, d [E], the same at every step; in_proj [I, E]; readout [E, O]; h0 [B, E]
    (None: zeros). Source: A. Gu, K. Goel, A. Gupta and C. Ré, "On the parameterization and
    initialization of diagonal state space models" (2022), equation 2, discretised and real.

    >>> one, eye = np.ones(1), np.ones((1, 1))
    >>> x = np.array([1.0, 2.0, 5.0]).reshape(1, 3, 1)
    >>> diagonal_ssm(x, one, one, one, 0 * one, eye, eye)[0].ravel().tolist()
    [1.0, 3.0, 8.0]
    """
    check_channels(x, in_proj, a=a, b=b, c=c, d=d)
    check_projection("readout", readout, in_proj.shape[1])
    y, state = diagonal_core(project(x, in_proj), a, b, c, d, h0)
    return project(y, readout), state


def diagonal_ssm_backward(
    x: X,
    a: Channel,
    b: Channel,
    c: Channel,
    d: Channel,
    in_proj: Array,
    readout: Array,
    h0: State | None,
    cotangent: Out,
    state_cotangent: State | None = None,
) -> DiagonalGradients:
    """Gradients of sum(out * cotangent) + sum(last state * state_cotangent)."""
    check_channels(x, in_proj, a=a, b=b, c=c, d=d)
    check_projection("readout", readout, in_proj.shape[1])
    u = project(x, in_proj)
    y, _ = diagonal_core(u, a, b, c, d, h0)
    dy, dreadout = project_backward(y, readout, cotangent)
    core = diagonal_core_backward(u, a, b, c, d, h0, dy, state_cotangent)
    dx, din_proj = project_backward(x, in_proj, core.u)
    return DiagonalGradients(dx, core.a, core.b, core.c, core.d, din_proj, dreadout, core.h0)
