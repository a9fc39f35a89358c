"""Operators in the frequency domain: discrete Fourier transform, bands, spectral convolution."""
