"""Sound spectral convolutions by Fourier transforms written out, in numpy."""

from __future__ import annotations

from math import prod

import numpy as np

from assay.zoo.sound_grids import Array, FastHalf, FastSpectral, on_grids

BOTH = ("float32", "float64")


def waves(phase: Array, n: int, like: Array) -> Array:
    """exp(-2 pi i phase / n) of whole phases, computed in float64; half a turn is -1 exactly."""
    turn = phase % n
    found = np.exp(-2j * np.pi * np.where(2 * turn > n, turn - n, turn) / n)
    real = 2 * turn % n == 0
    return np.where(real, np.real(found).round(), found).astype(complex_of(like))


def complex_of(x: Array) -> np.dtype[np.complexfloating]:
    """The complex format of the same width."""
    return np.dtype(np.complex128 if x.dtype in (np.float64, np.complex128) else np.complex64)


class AxisByAxis(FastSpectral):
    """The last axis first; each by the matrix of its waves."""

    contract = on_grids("zoo.spectral-axes", dtypes=BOTH)

    def spectrum(self, x: Array) -> Array:
        """Frequencies first, [N, B, w]."""
        y = x.astype(complex_of(x))
        for axis in range(x.ndim - 2, 0, -1):
            y = np.moveaxis(self.along(np.moveaxis(y, axis, -1)), -1, axis)
        return y.reshape(x.shape[0], prod(x.shape[1:-1]), x.shape[-1]).swapaxes(0, 1)

    def returned(self, y: Array, x: Array) -> Array:
        """The inverse is the conjugate of the transform of the conjugate."""
        grid = y.swapaxes(0, 1).reshape(x.shape)
        points = prod(x.shape[1:-1])
        forth = self.spectrum(grid.conj()).swapaxes(0, 1).reshape(x.shape)
        return (np.real(forth) / x.dtype.type(max(points, 1))).astype(x.dtype)

    def along(self, x: Array) -> Array:
        """The transform of the last axis."""
        n = x.shape[-1]
        return x @ waves(np.outer(np.arange(n), np.arange(n)), n, x)


class MixedRadix(AxisByAxis):
    """Length after length divided by its smallest prime (J. Cooley and J. Tukey, 1965)."""

    contract = on_grids("zoo.spectral-mixed-radix", dtypes=BOTH)

    def along(self, x: Array) -> Array:
        """Decimated in time: x[p a + b] by the radix p, each part transformed, twiddled and
        joined.
        """
        n = x.shape[-1]
        p = next((p for p in range(2, n) if n % p == 0), n)
        if p == n:
            return super().along(x)
        m = n // p
        parts = self.along(np.stack([x[..., b::p] for b in range(p)], axis=-2))
        twiddled = parts * waves(np.outer(np.arange(p), np.arange(m)), n, x)
        joined = waves(np.outer(np.arange(p), np.arange(p)), p, x) @ twiddled
        return np.asarray(joined.reshape(x.shape))


class InFrequency(MixedRadix):
    """Decimated in frequency: from the largest prime on."""

    contract = on_grids("zoo.spectral-in-frequency", dtypes=BOTH)

    def along(self, x: Array) -> Array:
        """X[p k + r] is a transform of the twiddled sums over the radix p."""
        n = x.shape[-1]
        m = next((m for m in range(2, n) if n % m == 0), 1)
        if m == 1:
            return AxisByAxis.along(self, x)
        p = n // m
        blocks = x.reshape(*x.shape[:-1], p, m)
        mixed = waves(np.outer(np.arange(p), np.arange(p)), p, x) @ blocks
        twiddled = mixed * waves(np.outer(np.arange(p), np.arange(m)), n, x)
        return np.asarray(self.along(twiddled).swapaxes(-1, -2).reshape(x.shape))


class WholeGrid(AxisByAxis):
    """One matrix for all axes together."""

    contract = on_grids("zoo.spectral-whole-grid", dtypes=BOTH)

    def spectrum(self, x: Array) -> Array:
        """The Kronecker product of the axes' matrices."""
        matrix = np.ones((1, 1), complex_of(x))
        for n in x.shape[1:-1]:
            matrix = np.kron(matrix, waves(np.outer(np.arange(n), np.arange(n)), n, x))
        flat = x.reshape(x.shape[0], prod(x.shape[1:-1]), x.shape[-1])
        return (matrix @ flat.astype(matrix.dtype)).swapaxes(0, 1)


class Chirped(AxisByAxis):
    """A convolution with a chirp (L. Bluestein, 1970), in float64 and rounded to float32."""

    contract = on_grids("zoo.spectral-chirp")

    def spectrum(self, x: Array) -> Array:
        """Wide all the way."""
        return super().spectrum(x.astype(np.complex128 if np.iscomplexobj(x) else np.float64))

    def along(self, x: Array) -> Array:
        """k n = (k^2 + n^2 - (k - n)^2) / 2, so that the waves become chirps."""
        n = x.shape[-1]
        if n < 2:
            return x
        size = 1 << (2 * n - 1).bit_length()
        chirp = waves(np.arange(n) ** 2, 2 * n, x)
        kernel = np.zeros(size, np.complex128)
        kernel[:n] = chirp.conj()
        kernel[size - n + 1 :] = chirp[1:][::-1].conj()
        spread = np.fft.fft(x * chirp, size) * np.fft.fft(kernel)
        return np.asarray(np.fft.ifft(spread)[..., :n] * chirp)


class HalfOfWhole(FastHalf):
    """The whole signal from a spectrum that is filled up by its mirror."""

    contract = on_grids("zoo.half-of-whole", dtypes=BOTH)

    def returned(self, spectrum: Array, n: int) -> Array:
        """The complex inverse transform; bins 0 and n / 2 count as real."""
        bins = np.arange(spectrum.shape[1])
        real = (2 * bins % n == 0)[:, None]
        whole = np.zeros((spectrum.shape[0], n, spectrum.shape[2]), spectrum.dtype)
        whole[:, bins] = np.where(real, np.real(spectrum), spectrum)
        mirrored = bins[2 * bins % n != 0]
        whole[:, n - mirrored] = spectrum[:, mirrored].conj()
        return np.fft.ifft(whole, axis=1).real


class HalfByWaves(FastHalf):
    """Cosines and sines of the few bins."""

    contract = on_grids("zoo.half-by-waves", dtypes=BOTH)

    def returned(self, spectrum: Array, n: int) -> Array:
        """Bins that have a mirror count twice."""
        bins = np.arange(spectrum.shape[1])
        wave = waves(np.outer(np.arange(n), bins), n, spectrum)
        twice = np.where(2 * bins % n == 0, 1, 2).astype(np.real(spectrum).dtype)[:, None]
        y = np.real(wave) @ (twice * np.real(spectrum))
        y = y + np.imag(wave) @ (twice * np.imag(spectrum))
        return np.asarray(y / y.dtype.type(n))
