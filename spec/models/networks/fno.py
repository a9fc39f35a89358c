"""Fourier neural operator: y = project(blocks(lift x)), block(v) = act(K v + v skip + bias) with K
a spectral convolution.
"""

from __future__ import annotations

from assay.spec.layers.layer import Gradients, Layer, Params, sequential
from assay.spec.layers.leaves import linear_layer
from assay.spec.models.fno import FNOConfig
from assay.spec.models.networks.passes import passes
from assay.spec.scalars import Array
from assay.spec.spectral.fno_block import fno_block, fno_block_backward


def block_layer(config: FNOConfig, path: str) -> Layer:
    """One block, on the whole spectrum or on its first half."""
    names = tuple(f"{path}.{n}" for n in ("spectral.real", "spectral.imaginary", "skip", "bias"))
    half = config.spectrum == "rfft"
    modes = None if half else config.modes

    def forward(params: Params, x: Array) -> Array:
        re, im, skip, bias = (params[n] for n in names)
        return fno_block(
            x, re, im, skip, bias, modes=modes, activation=config.nonlinearity, half=half
        )

    def backward(params: Params, x: Array, cotangent: Array) -> tuple[Array, Gradients]:
        re, im, skip, bias = (params[n] for n in names)
        dx, *found = fno_block_backward(
            x, re, im, skip, bias, cotangent,
            modes=modes, activation=config.nonlinearity, half=half,
        )  # fmt: skip
        return dx, dict(zip(names, found, strict=True))

    return Layer(names, forward, backward)


def network(config: FNOConfig) -> Layer:
    """x [B, *n, 1] -> y [B, *n, 1]; pointwise maps are in-by-out.

    How the transform is evaluated (per axis, or by one matrix) does not change the function.
    Source: Z. Li et al., "Fourier neural operator for parametric partial differential equations"
    (2020), figure 2.
    """
    lift, project = (
        linear_layer(f"{n}.weight", f"{n}.bias", in_by_out=True) for n in ("lift", "project")
    )
    blocks = [block_layer(config, f"block.{i}") for i in range(config.layers)]
    return sequential(lift, *blocks, project)


forward, backward = passes(network)
