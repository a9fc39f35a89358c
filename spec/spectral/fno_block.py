"""Block of a Fourier neural operator: out = act(spectral_conv(x) + x skip + bias)."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np
from jaxtyping import Shaped

from assay.spec.contraction import product_plus
from assay.spec.layers.activations import ACTIVATIONS, Activation
from assay.spec.scalars import Array
from assay.spec.spatial.windows import PerAxis
from assay.spec.spectral.rfft_conv import spectral_conv_rfft, spectral_conv_rfft_backward
from assay.spec.spectral.spectral_conv import spectral_conv, spectral_conv_backward

X = Shaped[np.ndarray, "B *n w"]
Weight = Shaped[np.ndarray, "N w w"]
Skip = Shaped[np.ndarray, "w w"]
Bias = Shaped[np.ndarray, "w"]


class BlockGradients(NamedTuple):
    """Cotangents of the five inputs, each in its input's shape."""

    x: X
    re: Weight
    im: Weight
    skip: Skip
    bias: Bias


def activation_named(name: str) -> Activation:
    """The activation of this name; ValueError names the valid ones."""
    if name not in ACTIVATIONS:
        raise ValueError(
            f"activation={name!r} is not known; valid: {', '.join(sorted(ACTIVATIONS))}"
        )
    return ACTIVATIONS[name]


def _check(x: X, skip: Skip, bias: Bias) -> None:
    width = x.shape[-1]
    if skip.shape != (width, width) or bias.shape != (width,):
        raise ValueError(
            f"skip and bias have shapes {skip.shape} and {bias.shape}; for x of shape {x.shape} "
            f"they must be {(width, width)} and {(width,)}"
        )


def spectral_part(
    x: X, re: Weight, im: Weight, *, modes: PerAxis | None = None, half: bool = False
) -> X:
    """The spectral convolution of the block, on the whole spectrum or on its first half."""
    if half and modes is not None:
        raise ValueError(
            f"modes={modes!r} must be None with half=True: re and im hold the bins that are kept"
        )
    return spectral_conv_rfft(x, re, im) if half else spectral_conv(x, re, im, modes=modes)


def mix(x: X, spectral: X, skip: Skip, bias: Bias) -> X:
    """What the activation is applied to: spectral + x skip + bias."""
    _check(x, skip, bias)
    return product_plus(x, skip, spectral, bias)


def fno_block(
    x: X,
    re: Weight,
    im: Weight,
    skip: Skip,
    bias: Bias,
    *,
    modes: PerAxis | None = None,
    activation: str = "tanh",
    half: bool = False,
) -> X:
    """Spectral convolution beside a linear map of each point, then an activation.

    x [B, *n, w]; re and im [N, w, w] with N = product of n, or with ``half`` the bins [m, w, w] of
    ``spectral_conv_rfft`` on one axis; skip [w, w] is applied as x skip, bias [w]. Source: Z. Li et
    al., "Fourier neural operator for parametric partial differential equations" (2020), equation 2.

    >>> x, one, zero = np.array([[[-1.0], [3.0]]]), np.ones((2, 1, 1)), np.zeros((2, 1, 1))
    >>> fno_block(x, one, zero, one[0], zero[0, 0], activation="relu").ravel().tolist()
    [0.0, 6.0]
    """
    act = activation_named(activation)
    return act.forward(mix(x, spectral_part(x, re, im, modes=modes, half=half), skip, bias))


def fno_block_backward(
    x: X,
    re: Weight,
    im: Weight,
    skip: Skip,
    bias: Bias,
    cotangent: X,
    *,
    modes: PerAxis | None = None,
    activation: str = "tanh",
    half: bool = False,
) -> BlockGradients:
    """Gradients of sum(out * cotangent): the activation's first, then of each part."""
    act = activation_named(activation)
    before = mix(x, spectral_part(x, re, im, modes=modes, half=half), skip, bias)
    behind = act.backward(before, cotangent)
    return through_parts(x, re, im, skip, behind, modes=modes, half=half)


def through_parts(
    x: X,
    re: Weight,
    im: Weight,
    skip: Skip,
    behind: X,
    *,
    modes: PerAxis | None = None,
    half: bool = False,
) -> BlockGradients:
    """Gradients of sum(mix * behind)."""
    if half:
        through = spectral_conv_rfft_backward(x, re, im, behind)
    else:
        through = spectral_conv_backward(x, re, im, behind, modes=modes)
    dx = product_plus(behind, np.swapaxes(skip, 0, 1), through.x)
    points, slopes = _points(x), _points(behind)
    dskip = np.matmul(np.swapaxes(points, 0, 1), slopes)
    return BlockGradients(dx, through.re, through.im, dskip, np.sum(slopes, axis=0))


def _points(x: X) -> Array:
    """All points of all batch entries, one a row."""
    return x.reshape(prod(x.shape[:-1]), x.shape[-1])
