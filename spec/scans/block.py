"""Selective block: out = (y * silu(x W_z)) W_out, where y is the selective scan of u = silu(conv(x
W_x)) with delta = softplus(u W_dt + bias), b = u W_b and c = u W_c.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Shaped

from assay.spec.layers.activations import silu, silu_backward, softplus, softplus_backward
from assay.spec.scalars import Array, exp
from assay.spec.scans.causal_conv import causal_conv1d, causal_conv1d_backward
from assay.spec.scans.projection import (
    check_projection,
    joint_backward,
    project,
    project_backward,
)
from assay.spec.scans.selective import (
    Lose,
    lost,
    selective_scan,
    selective_scan_backward,
)

X = Shaped[np.ndarray, "B T I"]
Out = Shaped[np.ndarray, "B T O"]


class BlockState(NamedTuple):
    """What streaming carries on: the state of the scan, and the inputs that the taps still see."""

    h: Shaped[np.ndarray, "B E Ns"]
    history: Shaped[np.ndarray, "B Kt-1 E"]


class BlockParameters(NamedTuple):
    """The block's eleven tensors; ``a`` is the rate of decay itself."""

    x_proj: Shaped[np.ndarray, "I E"]
    z_proj: Shaped[np.ndarray, "I E"]
    kernel: Shaped[np.ndarray, "Kt E"]
    conv_bias: Shaped[np.ndarray, "E"]
    dt_proj: Shaped[np.ndarray, "E E"]
    dt_bias: Shaped[np.ndarray, "E"]
    a: Shaped[np.ndarray, "E Ns"]
    b_proj: Shaped[np.ndarray, "E Ns"]
    c_proj: Shaped[np.ndarray, "E Ns"]
    d_skip: Shaped[np.ndarray, "E"]
    out_proj: Shaped[np.ndarray, "E O"]


class MambaParameters(NamedTuple):
    """The layer's eleven tensors, in the order in which state is stored: a = exp(log_a)."""

    x_proj: Shaped[np.ndarray, "I E"]
    z_proj: Shaped[np.ndarray, "I E"]
    kernel: Shaped[np.ndarray, "Kt E"]
    conv_bias: Shaped[np.ndarray, "E"]
    dt_proj: Shaped[np.ndarray, "E E"]
    dt_bias: Shaped[np.ndarray, "E"]
    log_a: Shaped[np.ndarray, "E Ns"]
    b_proj: Shaped[np.ndarray, "E Ns"]
    c_proj: Shaped[np.ndarray, "E Ns"]
    d_skip: Shaped[np.ndarray, "E"]
    out_proj: Shaped[np.ndarray, "E O"]


class BlockGradients(NamedTuple):
    """Cotangents of x, of every parameter, and of the state before the first step."""

    x: X
    parameters: BlockParameters
    state: BlockState


class MambaGradients(NamedTuple):
    """Cotangents of x, of every parameter, and of the state before the first step."""

    x: X
    parameters: MambaParameters
    state: BlockState


class Forms(NamedTuple):
    """How two parts are evaluated: equal over the reals, not in floats (see ``bounds``)."""

    softplus: Callable[[Array], Array] = softplus
    lose: Lose = lost


STABLE = Forms()
"""The forms that lose the least."""


class _Pass(NamedTuple):
    """Everything that a forward pass makes on its way."""

    inner: Array
    gate: Array
    conv: Array
    u: Array
    raw_delta: Array
    delta: Array
    b: Array
    c: Array
    y: Array
    state: BlockState


def _check(x: X, p: BlockParameters) -> None:
    if x.ndim != 3:
        raise ValueError(f"x must have 3 axes [batch, time, features], got shape {x.shape}")
    if p.a.ndim != 2:
        raise ValueError(f"a must have 2 axes [channels, states], got shape {p.a.shape}")
    channels, states = p.a.shape
    check_projection("x_proj", p.x_proj, x.shape[2], channels)
    check_projection("z_proj", p.z_proj, x.shape[2], channels)
    check_projection("dt_proj", p.dt_proj, channels, channels)
    check_projection("b_proj", p.b_proj, channels, states)
    check_projection("c_proj", p.c_proj, channels, states)
    check_projection("out_proj", p.out_proj, channels)
    for name in ("conv_bias", "dt_bias", "d_skip"):
        if getattr(p, name).shape != (channels,):
            raise ValueError(f"shape of {name} {getattr(p, name).shape} must be ({channels},)")


def _forward(x: X, p: BlockParameters, state: BlockState | None, forms: Forms) -> _Pass:
    _check(x, p)
    h0, past = (None, None) if state is None else state
    inner, gate = project(x, p.x_proj), project(x, p.z_proj)
    conv, history = causal_conv1d(inner, p.kernel, p.conv_bias, past)
    u = silu(conv)
    raw_delta = project(u, p.dt_proj, p.dt_bias)
    delta, b, c = forms.softplus(raw_delta), project(u, p.b_proj), project(u, p.c_proj)
    y, h = selective_scan(u, delta, p.a, b, c, p.d_skip, h0)
    return _Pass(inner, gate, conv, u, raw_delta, delta, b, c, y, BlockState(h, history))


def selective_block(
    x: X,
    parameters: BlockParameters,
    state: BlockState | None = None,
    *,
    forms: Forms = STABLE,
) -> tuple[Out, BlockState]:
    """The outputs, and the state from which the next chunk continues.

    x [B, T, I]; parameters with E channels, Ns states and Kt taps; state: h [B, E, Ns] and the
    convolution's history [B, Kt-1, E] (None: zeros). Both belong to the state: a chunk that starts
    without the history differs. Source: A. Gu and T. Dao, "Mamba" (2023), section 3.4 and figure 3,
    with a square projection of delta.
    """
    done = _forward(x, parameters, state, forms)
    return project(done.y * silu(done.gate), parameters.out_proj), done.state


def selective_block_backward(
    x: X,
    parameters: BlockParameters,
    state: BlockState | None,
    cotangent: Out,
    state_cotangent: BlockState | None = None,
    *,
    forms: Forms = STABLE,
) -> BlockGradients:
    """Gradients of sum(out * cotangent) + sum(state after * state_cotangent)."""
    p, done = parameters, _forward(x, parameters, state, forms)
    h0, past = (None, None) if state is None else state
    dh, dpast = (None, None) if state_cotangent is None else state_cotangent
    gate = silu(done.gate)
    dgated, dout_proj = project_backward(done.y * gate, p.out_proj, cotangent)
    dz = silu_backward(done.gate, dgated * done.y)
    scan = selective_scan_backward(
        done.u, done.delta, p.a, done.b, done.c, p.d_skip, h0, dgated * gate, dh,
        lose=forms.lose,
    )  # fmt: skip
    draw = softplus_backward(done.raw_delta, scan.delta)
    through, (ddt_proj, db_proj, dc_proj) = joint_backward(
        done.u, (p.dt_proj, p.b_proj, p.c_proj), (draw, scan.b, scan.c)
    )
    du = scan.u + through
    conv = causal_conv1d_backward(
        done.inner, p.kernel, p.conv_bias, past, silu_backward(done.conv, du), dpast
    )
    dx, (dx_proj, dz_proj) = joint_backward(x, (p.x_proj, p.z_proj), (conv.x, dz))
    gradients = BlockParameters(
        dx_proj, dz_proj, conv.weight, conv.bias, ddt_proj, draw.sum(axis=(0, 1)), scan.a,
        db_proj, dc_proj, scan.d, dout_proj,
    )  # fmt: skip
    return BlockGradients(dx, gradients, BlockState(scan.h0, conv.history))


def _block(parameters: MambaParameters) -> BlockParameters:
    named = parameters._asdict()
    return BlockParameters(a=exp(named.pop("log_a")), **named)


def mamba_layer(
    x: X,
    parameters: MambaParameters,
    state: BlockState | None = None,
    *,
    forms: Forms = STABLE,
) -> tuple[Out, BlockState]:
    """``selective_block`` with rates a = exp(log_a), which are positive whatever is learned."""
    return selective_block(x, _block(parameters), state, forms=forms)


def mamba_layer_backward(
    x: X,
    parameters: MambaParameters,
    state: BlockState | None,
    cotangent: Out,
    state_cotangent: BlockState | None = None,
    *,
    forms: Forms = STABLE,
) -> MambaGradients:
    """Gradients as in ``selective_block_backward``; into log_a it is a times the one into a."""
    block = _block(parameters)
    dx, grads, dstate = selective_block_backward(
        x, block, state, cotangent, state_cotangent, forms=forms
    )
    named = grads._asdict()
    into_log = block.a * named.pop("a")
    return MambaGradients(dx, MambaParameters(log_a=into_log, **named), dstate)
