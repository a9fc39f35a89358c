"""Series to follow: the displacement of damped oscillators that are pushed by noise.

y_t = 2 r cos(w) y_(t-1) - r² y_(t-2) + g f_t with the force f = x M: what is to be told at a time
depends on all forces before it.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64

from assay.impl.training.data import Problem, split

COUNT = 320
DAMPING = 0.8
"""r: the share of an oscillation that is left after a step."""


def oscillate(
    forces: Float64[np.ndarray, "N T O"], angles: Float64[np.ndarray, " O"]
) -> Float64[np.ndarray, "N T O"]:
    """Displacements from rest, of variance near 1 for forces of variance 1.

    >>> oscillate(np.ones((1, 2, 1)), np.array([np.pi / 2])).shape
    (1, 2, 1)
    """
    before = last = np.zeros((len(forces), len(angles)))
    found = []
    for force in np.moveaxis(forces, 1, 0):
        now = 2 * DAMPING * np.cos(angles) * last - DAMPING**2 * before + gain(angles) * force
        before, last = last, now
        found.append(now)
    return np.stack(found, axis=1)


def gain(angles: Float64[np.ndarray, " O"]) -> Float64[np.ndarray, " O"]:
    """g for which the stationary variance is 1.

    The variance of y_t = a y_(t-1) + b y_(t-2) + g f_t is g² (1 - b) / ((1 + b) ((1 - b)² - a²)).
    Source: G. Box and G. Jenkins, "Time series analysis" (1970), section 3.2.4.
    """
    a, b = 2 * DAMPING * np.cos(angles), -(DAMPING**2)
    return np.sqrt((1 + b) * ((1 - b) ** 2 - a**2) / (1 - b))


def generated(seed: int, inputs: int, outputs: int, context: int) -> Problem:
    """Forces [N, T, I] and displacements [N, T, O], one oscillator for each output."""
    rng = np.random.default_rng(seed)
    pushes = rng.standard_normal((COUNT, context, inputs))
    mix = rng.standard_normal((inputs, outputs))
    mix /= np.linalg.norm(mix, axis=0)
    found = oscillate(pushes @ mix, rng.uniform(np.pi / 6, np.pi / 2, outputs))
    return split(f"{COUNT} series of pushed oscillators", pushes, found)
