"""Residual branches: x + f(x) needs a branch that keeps the shape of what it is added to."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float64

from assay.spec.models.catalogue import model
from assay.spec.models.costs import Steps

RESIDUAL_MODELS = ("resnet", "vit", "char_gpt", "gpt")

_SUMS = ("block.add", "block.add1", "block.add2")


def branches(steps: Steps) -> Float64[np.ndarray, "R 2 K"]:
    """Shapes of what goes into each branch and of what comes out, in the order of the network.

    >>> from assay.spec.models.costs import Step
    >>> branches((Step("block.add", (2, 3, 4), repeat=2),))[0].tolist()
    [[2.0, 3.0, 4.0], [2.0, 3.0, 4.0]]
    """
    sums = [s for s in steps if s.name in _SUMS]
    shapes = [s.writes for layer in range(sums[0].repeat) for s in sums]
    return np.array([(shape, shape) for shape in shapes], dtype=np.float64)


def steps_of(name: str, config: Any, batch: int, tokens: int) -> Steps:
    """What a forward pass writes; ``tokens`` counts for sequences only."""
    entry = model(name)
    steps: Any = entry.steps
    found: Steps = steps(config, batch, tokens) if entry.decoding_state else steps(config, batch)
    return found
