"""Fields to map: the solution at time T of u_t + u u_x = nu u_xx, from its initial values.

The circle has length 1. Source: J. Burgers, "A mathematical model illustrating the theory of
turbulence" (1948). The mean of u is kept, and its energy, the mean of u² / 2, does not grow.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Complex128, Float64

from assay.impl.training.data import DataError, Problem, split

Fields = Float64[np.ndarray, "N n"]

VISCOSITY = 0.02
TIME = 0.4
COUNT = 160
WAVES = 3
"""Initial values have waves up to this number."""

LEAST = 8
FINE = 128
"""Points that the equation is solved on, at least."""


def solve(start: Fields, *, viscosity: float = VISCOSITY, time: float = TIME) -> Fields:
    """u at ``time`` from u at 0, on the same points.

    Fourier-Galerkin in space, on the lower two thirds of the waves, where squares are not aliased;
    in time the classical Runge-Kutta method of fourth order, after the heat flow is solved exactly.
    Source: C. Canuto and coauthors, "Spectral methods in fluid dynamics" (1988), section 3.2 and
    appendix D. A step is at most 1 / (|u| k) for the largest |u|, which does not grow, and the
    largest wave number k: the method is stable to 2.8.
    """
    n = start.shape[1]
    kept = np.arange(n // 2 + 1) <= (n - 1) // 3
    wave = 2j * np.pi * np.arange(n // 2 + 1) * kept
    steps = max(1, math.ceil(time * float(np.abs(start).max()) * float(np.abs(wave).max())))
    dt = time / steps
    half = np.exp(viscosity * (wave**2).real * dt / 2)
    v = np.fft.rfft(start, axis=1) * kept

    def change(spectrum: Complex128[np.ndarray, "N k"]) -> Complex128[np.ndarray, "N k"]:
        """dt times -(u² / 2)_x."""
        square = np.fft.irfft(spectrum, n, axis=1) ** 2
        return -0.5 * dt * wave * np.fft.rfft(square, axis=1)

    for _ in range(steps):
        a = change(v)
        b = change(half * (v + a / 2))
        c = change(half * v + b / 2)
        d = change(half * (half * v + c))
        v = half**2 * v + (half**2 * a + 2 * half * (b + c) + d) / 6
    return np.fft.irfft(v, n, axis=1)


def initial(rng: np.random.Generator, count: int, points: int) -> Fields:
    """A mean and a few waves with normal amplitudes, which fall as their number grows."""
    x = np.arange(points) / points
    found = 0.2 * rng.standard_normal((count, 1)) * np.ones(points)
    for k in range(1, WAVES + 1):
        size = rng.standard_normal((2, count, 1)) / (2 * k)
        angle = 2 * np.pi * k * x
        found = found + size[0] * np.sin(angle) + size[1] * np.cos(angle)
    return found


def generated(seed: int, spatial: tuple[int, ...]) -> Problem:
    """Fields [N, n, 1] at time 0 and at T, solved on a finer grid that holds the points.

    DataError for a grid of another number of axes, or of too few points for the initial waves.
    """
    if len(spatial) != 1 or spatial[0] < LEAST:
        raise DataError(
            f"spatial={spatial!r} is no grid for the equation; valid: one extent of {LEAST} or "
            "more, or fields of your own (--data-file)"
        )
    every = math.ceil(FINE / spatial[0])
    start = initial(np.random.default_rng(seed), COUNT, every * spatial[0])
    origin = f"{COUNT} solutions of Burgers' equation, viscosity {VISCOSITY:g}, time {TIME:g}"
    ends = solve(start)
    return split(origin, start[:, ::every, None], ends[:, ::every, None])
