"""Compact Mamba block: out = (y * sigmoid(x W_gate)) W_out, where y_t = c h_t + d u_t, h_t = a
h_{t-1} + b u_t and u = x W_in. Nothing in it is selective: a and b are constants.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Shaped

from assay.spec.layers.activations import sigmoid, sigmoid_backward
from assay.spec.scalars import Array
from assay.spec.scans.diagonal import (
    Channel,
    Out,
    State,
    X,
    check_channels,
    diagonal_core,
    diagonal_core_backward,
)
from assay.spec.scans.projection import (
    check_projection,
    joint_backward,
    project,
    project_backward,
)


class CompactGradients(NamedTuple):
    """Cotangents of the nine inputs, each in its input's shape."""

    x: X
    a: Channel
    b: Channel
    c: Channel
    d: Channel
    in_proj: Shaped[np.ndarray, "I E"]
    gate_proj: Shaped[np.ndarray, "I E"]
    out_proj: Shaped[np.ndarray, "E O"]
    h0: State


def _check(x: X, in_proj: Array, gate_proj: Array, out_proj: Array, **channels: Channel) -> None:
    check_channels(x, in_proj, **channels)
    check_projection("gate_proj", gate_proj, x.shape[2], in_proj.shape[1])
    check_projection("out_proj", out_proj, in_proj.shape[1])


def compact_ssm(
    x: X,
    a: Channel,
    b: Channel,
    c: Channel,
    d: Channel,
    in_proj: Shaped[np.ndarray, "I E"],
    gate_proj: Shaped[np.ndarray, "I E"],
    out_proj: Shaped[np.ndarray, "E O"],
    h0: State | None = None,
) -> tuple[Out, State]:
    """The outputs and the state after the last step; the state is updated, then read.

    x [B, T, I]; a, b, c, d [E]; in_proj and gate_proj [I, E]; out_proj [E, O]; h0 [B, E] (None:
    zeros). Source: the gated block of A. Gu and T. Dao, "Mamba" (2023), figure 3, reduced to a
    constant diagonal recurrence.

    >>> one, x = np.ones(1), np.array([2.0, 4.0]).reshape(1, 2, 1)
    >>> eye, shut = np.ones((1, 1)), np.zeros((1, 1))
    >>> compact_ssm(x, one, one, one, 0 * one, eye, shut, eye)[0].ravel().tolist()
    [1.0, 3.0]
    """
    _check(x, in_proj, gate_proj, out_proj, a=a, b=b, c=c, d=d)
    y, state = diagonal_core(project(x, in_proj), a, b, c, d, h0)
    return project(y * sigmoid(project(x, gate_proj)), out_proj), state


def compact_ssm_backward(
    x: X,
    a: Channel,
    b: Channel,
    c: Channel,
    d: Channel,
    in_proj: Array,
    gate_proj: Array,
    out_proj: Array,
    h0: State | None,
    cotangent: Out,
    state_cotangent: State | None = None,
) -> CompactGradients:
    """Gradients of sum(out * cotangent) + sum(last state * state_cotangent)."""
    _check(x, in_proj, gate_proj, out_proj, a=a, b=b, c=c, d=d)
    u, z = project(x, in_proj), project(x, gate_proj)
    y, _ = diagonal_core(u, a, b, c, d, h0)
    gate = sigmoid(z)
    dgated, dout_proj = project_backward(y * gate, out_proj, cotangent)
    core = diagonal_core_backward(u, a, b, c, d, h0, dgated * gate, state_cotangent)
    dz = sigmoid_backward(z, dgated * y)
    dx, (din_proj, dgate_proj) = joint_backward(x, (in_proj, gate_proj), (core.u, dz))
    return CompactGradients(
        dx, core.a, core.b, core.c, core.d, din_proj, dgate_proj, dout_proj, core.h0
    )
