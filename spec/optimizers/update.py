"""One step of any optimizer on parameters that are one vector, and what it may be told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from assay.spec.optimizers.adam import AdamState, adam_step, adamw_step
from assay.spec.optimizers.sgd import sgd_step

OPTIMIZERS = ("sgd", "adam", "adamw")


@dataclass(frozen=True)
class Training:
    """How a batch is trained on.

    steps  on the same batch: from the second on, both means of Adam hold two different gradients
    """

    optimizer: str = "adamw"
    lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.01
    steps: int = 1

    def __post_init__(self) -> None:
        reasons = tuple(self._problems())
        if reasons:
            raise ValueError("\n".join(reasons))

    def _problems(self) -> Iterator[str]:
        if self.optimizer not in OPTIMIZERS:
            yield f"optimizer={self.optimizer!r} is unknown; valid: {', '.join(OPTIMIZERS)}"
        for name in ("lr", "weight_decay"):
            if not 0 <= getattr(self, name) < np.inf:
                yield f"{name}={getattr(self, name)!r} must be finite; valid: 0 or more"
        if len(self.betas) != 2 or not all(0 <= b < 1 for b in self.betas):
            yield f"betas={self.betas!r} must be two numbers; valid: each in [0, 1)"
        if not 0 < self.eps < np.inf:
            yield f"eps={self.eps!r} must be finite; valid: above 0"
        if type(self.steps) is not int or self.steps < 1:
            yield f"steps={self.steps!r} must be a whole number; valid: 1 or more"


FIELDS = tuple(f.name for f in fields(Training))


class Moments(NamedTuple):
    """Running means of the gradient and of its square, of every number of the state."""

    first: Any
    second: Any


Update = Callable[[Training, int, Any, Any, Moments], tuple[Any, Moments]]
"""(how, steps taken, parameters, gradients, moments) -> parameters and moments after one more:
arrays of floats, or of numbers that carry their errors.
"""


def update(
    how: Training, taken: int, state: Any, gradient: Any, moments: Moments
) -> tuple[Any, Moments]:
    """One step of the optimizer on the whole vector."""
    if how.optimizer == "sgd":
        (moved,) = sgd_step([state], [gradient], lr=how.lr, weight_decay=how.weight_decay)
        return moved, moments
    step = adamw_step if how.optimizer == "adamw" else adam_step
    before = AdamState(taken, (moments.first,), (moments.second,))
    options = {"lr": how.lr, "eps": how.eps, "weight_decay": how.weight_decay}
    (moved,), after = step([state], [gradient], before, betas=how.betas, **options)
    return moved, Moments(after.first[0], after.second[0])
