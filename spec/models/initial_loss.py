"""The first loss of a transformer: ln V <= l <= ln V + q phi(M), whatever its random state.

The last norm starts with gain 1 and offset 0, so that its rows h have |h|² <= D, and the head is a
matrix of V independent rows e_v ~ N(0, s² I) without a bias, the token table or not. The logits are
z_v = h · e_v. Where every symbol is the target equally often after the same tokens, the loss is
the mean of log sum exp(z) - mean(z), in which no chance of the targets is left:

- it is at least ln V, since exp is convex;
- with phi(M) = (e^M - 1 - M) / M², exp(z) <= 1 + z + phi(M) z² for all z <= M, so that it is at
  most ln V + phi(M) mean(z²), by ln(1 + x) <= x.

mean(z²) <= |h|² |E|² / V <= q = D s² (sqrt(V) + sqrt(D) + t)² / V but for a chance of exp(-t²/2):
K. Davidson and S. Szarek, "Local operator theory, random matrices and Banach spaces" (2001),
theorem II.13, holds for the whole table at once, so that it does not matter that h depends on it.
And z <= |h| max |e_v| <= M = sqrt(D) s (sqrt(D) + t') but for V exp(-t'²/2), since a norm moves no
more than its argument.
"""

from __future__ import annotations

import math
from typing import Any

from assay.spec.models.flat import stored_in
from assay.spec.models.initialisers import Normal

RISK = 1e-9
"""The chance that a sound random state lies beyond the interval, half of it for each inequality."""

ROUNDING = 2.0**-20
"""Far above the rounding of a loss of a few hundred tokens in float32."""


def deviation(name: str, config: Any) -> float:
    """Of one entry of the head: of ``head.weight``, or of the token table that stands for it."""
    first = {p.name: p.init for p in stored_in(name, config)}
    head = first.get("head.weight", first["token"])
    if not isinstance(head, Normal):
        raise ValueError(f"the head of {name} starts at {head}; valid: a normal initialisation")
    return head.deviation


def interval(name: str, config: Any) -> tuple[float, float]:
    """Where the first loss lies, but for a chance of ``RISK``.

    >>> from assay.spec.models.gpt import GPTConfig
    >>> low, high = interval("gpt", GPTConfig(vocabulary=256, width=16))
    >>> round(low, 4), round(high, 4)
    (5.5452, 5.5574)
    """
    size, width, spread = config.vocabulary, config.width, deviation(name, config)
    far, row = (math.sqrt(2 * math.log(2 * n / RISK)) for n in (1, size))
    square = width * (spread * (math.sqrt(size) + math.sqrt(width) + far)) ** 2 / size
    reach = math.sqrt(width) * spread * (math.sqrt(width) + row)
    bend = (math.expm1(reach) - reach) / reach**2
    start = math.log(size)
    return start - ROUNDING, start + square * bend + ROUNDING
