"""Gradient descent: p' = p - lr (g + decay p)."""

from __future__ import annotations

from collections.abc import Sequence

from assay.spec.scalars import Array


def sgd_step(
    parameters: Sequence[Array],
    gradients: Sequence[Array],
    *,
    lr: float = 1e-3,
    weight_decay: float = 0.0,
) -> tuple[Array, ...]:
    """New parameters; ``weight_decay`` times the parameter is added to its gradient.

    Source: L. Bottou, F. Curtis and J. Nocedal, "Optimization methods for large-scale machine
    learning" (2018), section 3.

    >>> import numpy as np
    >>> sgd_step([np.ones(1)], [np.full(1, 2.0)], lr=0.25, weight_decay=2.0)[0].tolist()
    [0.0]
    """
    slopes = (
        g + weight_decay * p if weight_decay else g
        for p, g in zip(parameters, gradients, strict=True)
    )
    return tuple(p - lr * slope for p, slope in zip(parameters, slopes, strict=True))
