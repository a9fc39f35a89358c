"""Inverted dropout: y = x / (1 - p) where an entry is kept, else 0."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Shaped

from assay.spec.scalars import Array, select


def _check(x: Array, keep: Array, p: float) -> None:
    if not 0 <= p <= 1:
        raise ValueError(f"p={p!r} must lie in [0, 1]")
    if keep.shape != x.shape:
        raise ValueError(f"keep {keep.shape} must have the shape {x.shape} of x")


def dropout(
    x: Shaped[np.ndarray, "*b"],
    keep: Bool[np.ndarray, "*b"],
    *,
    p: float,
    training: bool = True,
) -> Shaped[np.ndarray, "*b"]:
    """The kept entries scaled so that the expectation over masks drawn with p is x.

    The mask is an input, so that the same call gives the same result. A dropped entry is exactly 0,
    whatever it holds; p = 1 gives zeros, whatever the mask; without ``training`` it is the
    identity. Source: N. Srivastava et al., "Dropout" (2014), section 10.

    >>> dropout(np.array([1.0, 2.0]), np.array([True, False]), p=0.5).tolist()
    [2.0, 0.0]
    >>> dropout(np.ones(1), np.array([True]), p=1.0).tolist()
    [0.0]
    """
    _check(x, keep, p)
    if not training:
        return x
    return select(keep, x / (1 - p), 0) if p < 1 else select(np.zeros_like(keep), x, 0)


def dropout_backward(
    x: Shaped[np.ndarray, "*b"],
    keep: Bool[np.ndarray, "*b"],
    cotangent: Shaped[np.ndarray, "*b"],
    *,
    p: float,
    training: bool = True,
) -> Shaped[np.ndarray, "*b"]:
    """Gradient into x: the same map of the cotangent, since dropout is linear and symmetric."""
    _check(x, keep, p)
    return dropout(cotangent, keep, p=p, training=training)
