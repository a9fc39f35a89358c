"""Spectral convolution on the half spectrum: y = IRFFT(RFFT(x) W), bins 0 .. m - 1 of n / 2 + 1."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Shaped

from assay.spec.scalars import Array, select
from assay.spec.spectral.dft import Pair, dft, idft
from assay.spec.spectral.spectral_conv import (
    SpectralGradients,
    adjoint,
    by_frequency,
    check,
    on_grid,
    product,
)

X = Shaped[np.ndarray, "B n w"]
Weight = Shaped[np.ndarray, "m w w"]
Bins = Shaped[np.ndarray, "m B w"]


def real_bins(n: int, bins: int) -> Bool[np.ndarray, "m"]:
    """The bins that are real for a real signal: 0, and n / 2 where n is even.

    >>> real_bins(4, 3).tolist(), real_bins(5, 3).tolist()
    ([True, False, True], [True, False, False])
    """
    return 2 * np.arange(bins) % max(n, 1) == 0


def _check(x: X, re: Weight, im: Weight) -> None:
    if x.ndim != 3:
        raise ValueError(
            f"x has shape {x.shape}; it must be [batch, n, width]: one axis is transformed"
        )
    bins, most = re.shape[0], x.shape[1] // 2 + 1
    if bins > most:
        raise ValueError(f"re has {bins} bins; a grid of {x.shape[1]} points has {most}: n / 2 + 1")
    check(x, re, im, bins, " kept")


def _real_at(spectrum: Pair, n: int) -> Pair:
    """The imaginary part dropped where a real signal has none."""
    real = real_bins(n, spectrum.im.shape[0])[:, None, None]
    return Pair(spectrum.re, select(real, 0, spectrum.im))


def half_spectrum(x: X, bins: int) -> Pair:
    """The first bins of the transform, bins first; real ones exactly real.

    >>> half_spectrum(np.array([[[1.0], [2.0], [3.0], [4.0]]]), 3).im.ravel().tolist()
    [0.0, 2.0, 0.0]
    """
    whole = Pair(*(by_frequency(p)[:bins] for p in dft(x, None, (1,))))
    return _real_at(whole, x.shape[1])


def _padded(part: Bins, n: int, mirrored: Bins) -> Array:
    """Bins, zeros, and mirrored bins: n in all."""
    missing = n - part.shape[0] - mirrored.shape[0]
    zeros = np.zeros((missing, *part.shape[1:]), dtype=part.dtype)
    return np.concatenate([part, zeros, mirrored], axis=0)


def _mirror(spectrum: Pair, n: int) -> Pair:
    """All n bins of a real signal: bin n - k is the conjugate of bin k, absent ones are 0."""
    spectrum = _real_at(spectrum, n)
    ahead = slice(1, (n + 1) // 2)
    re, im = (np.flip(p[ahead], axis=0) for p in spectrum)
    return Pair(_padded(spectrum.re, n, re), _padded(spectrum.im, n, -im))


def from_half_spectrum(spectrum: Pair, n: int) -> X:
    """The real signal whose first bins these are: bins between 0 and n / 2 count twice.

    >>> half = half_spectrum(np.array([[[1.0], [2.0], [3.0]]]), 2)
    >>> bool(np.allclose(from_half_spectrum(half, 3).ravel(), [1.0, 2.0, 3.0]))
    True
    """
    shape = (spectrum.re.shape[1], n, spectrum.re.shape[2])
    whole = Pair(*(on_grid(p, shape) for p in _mirror(spectrum, n)))
    return idft(whole.re, whole.im, (1,)).re


def spectral_conv_rfft(x: X, re: Weight, im: Weight) -> X:
    """Each kept bin's channels times its own matrix; bins from m on are 0.

    x [B, n, w] real, re and im [m, w, w] with m <= n / 2 + 1. The imaginary part of bin 0, and of
    bin n / 2 for even n, is ignored on the way back. Another parameterisation of the same family as
    ``spectral_conv``: here the result is real without dropping anything. Source: H. Sorensen et
    al., "Real-valued fast Fourier transform algorithms" (1987), section II.

    >>> x, one = np.array([[[1.0], [3.0]]]), np.ones((1, 1, 1))
    >>> spectral_conv_rfft(x, one, 7 * one).ravel().tolist()
    [2.0, 2.0]
    """
    _check(x, re, im)
    y = product(half_spectrum(x, re.shape[0]), Pair(re, im))
    return from_half_spectrum(y, x.shape[1])


def spectral_conv_rfft_backward(x: X, re: Weight, im: Weight, cotangent: X) -> SpectralGradients:
    """Gradients of sum(y * cotangent), with dY = c RFFT(cotangent) / n the one of the bins: c is 1
    where a bin is real and 2 elsewhere, dW = RFFT(x)* dY, and dx sums the bins of dY W* as they
    are, none twice.

    dim is exactly 0 at real bins, where neither factor has an imaginary part.
    """
    _check(x, re, im)
    n, bins = x.shape[1], re.shape[0]
    once = real_bins(n, bins)[:, None, None]
    behind = half_spectrum(cotangent / max(n, 1), bins)
    dy = Pair(*(select(once, p, 2 * p) for p in behind))
    dweight = _real_at(product(adjoint(half_spectrum(x, bins)), dy), n)
    dbins = _real_at(product(dy, adjoint(Pair(re, im))), n)
    none = dbins.re[:0]
    whole = Pair(*(on_grid(_padded(p, n, none), x.shape) for p in dbins))
    return SpectralGradients(idft(whole.re, whole.im, (1,)).re * n, *dweight)
