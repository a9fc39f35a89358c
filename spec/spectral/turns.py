"""cos and sin of 2 pi k / n, exact at quarter turns and as precise as the numbers they meet."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from jaxtyping import Int

from assay.spec.scalars import Array, is_symbolic


def _of_part(name: str, fraction: tuple[int, int], element: Any) -> Any:
    """cos or sin of pi times a fraction, as a scalar like ``element``."""
    above, below = fraction
    if above == 0:
        return 1 if name == "cos" else 0
    if element is None:
        return getattr(math, name)(math.pi * above / below)
    return getattr((element * 0 + above) / below, f"{name}_pi")()


def _eighth(n: int, like: Array) -> tuple[Array, Array]:
    """cos and sin of (e / n) pi / 4 for e = 0 .. n: the first eighth of a turn."""
    if is_symbolic(like):
        element = next((x for x in like.flat if hasattr(x, "cos_pi")), None)
        parts = [(e, 4 * n) for e in range(n + 1)]
        cos, sin = ([_of_part(name, p, element) for p in parts] for name in ("cos", "sin"))
        return np.array(cos, dtype=object), np.array(sin, dtype=object)
    wide = np.promote_types(like.dtype, np.float64)
    # pi / 4 in extended precision, where there is one.
    angle = np.arange(n + 1).astype(wide) / max(n, 1) * np.arctan(np.ones((), dtype=wide))
    return np.cos(angle).astype(like.dtype), np.sin(angle).astype(like.dtype)


def turns(k: Int[np.ndarray, "..."], n: int, like: Array) -> tuple[Array, Array]:
    """cos and sin of k / n of a full turn, k any integers, in the format of ``like``.

    k is reduced first: to one turn, then to an eighth of it, so that no angle is rounded before it
    is small, and multiples of a quarter turn are exact. Elements of an object array may offer
    ``cos_pi`` and ``sin_pi`` (of pi times themselves); plain numbers among them are exact at
    quarter turns and floats elsewhere.

    >>> cos, sin = turns(np.arange(-1, 4), 4, np.ones(1))
    >>> cos.tolist(), sin.tolist()
    ([0.0, 1.0, 0.0, -1.0, 0.0], [-1.0, 0.0, 1.0, 0.0, -1.0])
    """
    octant, rest = np.divmod(8 * (np.asarray(k) % n), n) if n else (k, k)
    # Every other octant is run through backwards, from the next quarter turn.
    table_cos, table_sin = _eighth(n, like)
    step = np.where(octant % 2 == 1, n - rest, rest)
    near, far = table_cos[step], table_sin[step]
    crossed = np.isin(octant, (1, 2, 5, 6))
    cos, sin = np.where(crossed, far, near), np.where(crossed, near, far)
    return (
        np.where(np.isin(octant, (2, 3, 4, 5)), 0 - cos, cos),
        np.where(octant >= 4, 0 - sin, sin),
    )
