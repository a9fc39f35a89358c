"""Adam: p' = p - lr m' / (1 - b1^t) / (sqrt(v' / (1 - b2^t)) + eps), with m' = b1 m + (1 - b1) g
and v' = b2 v + (1 - b2) g^2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from assay.spec.functions import sqrt
from assay.spec.scalars import Array, is_symbolic

Arrays = tuple[Array, ...]


class AdamState(NamedTuple):
    """Steps taken, and for each parameter the running means of the gradient and of its square."""

    step: int
    first: Arrays
    second: Arrays


def adam_init(parameters: Sequence[Array]) -> AdamState:
    """No step taken, both means zero.

    >>> adam_init([np.ones(2)]).second[0].tolist()
    [0.0, 0.0]
    """
    zeros = tuple(p * 0 for p in parameters)
    return AdamState(0, zeros, zeros)


def _left(beta: Any, step: int, like: Array) -> Any:
    """1 - beta^step, in extended precision where ``like`` has it."""
    if is_symbolic(like) or like.dtype != np.longdouble:
        return 1 - beta**step
    return 1 - np.longdouble(beta) ** step


def _check(parameters: Sequence[Array], gradients: Sequence[Array], state: AdamState) -> None:
    shapes = [tuple(x.shape for x in part) for part in (parameters, gradients, state.first)]
    if not shapes[0] == shapes[1] == shapes[2]:
        raise ValueError(
            f"parameters {shapes[0]}, gradients {shapes[1]} and state {shapes[2]} must agree"
        )


def adam_step(
    parameters: Sequence[Array],
    gradients: Sequence[Array],
    state: AdamState,
    *,
    lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0.0,
) -> tuple[Arrays, AdamState]:
    """New parameters and state; ``weight_decay`` times the parameter is added to its gradient.

    The means start at 0, and dividing by 1 - b^t takes that bias away; eps is added outside the
    root. Source: D. Kingma and J. Ba, "Adam" (2015), algorithm 1.

    >>> (p,), state = adam_step([np.zeros(1)], [np.full(1, 5.0)], adam_init([np.zeros(1)]), lr=0.25)
    >>> p.round(6).tolist(), state.step
    ([-0.25], 1)
    """
    _check(parameters, gradients, state)
    step = state.step + 1
    moved, first, second = [], [], []
    for p, g, m, v in zip(parameters, gradients, state.first, state.second, strict=True):
        slope = g + weight_decay * p if weight_decay else g
        m = betas[0] * m + (1 - betas[0]) * slope
        v = betas[1] * v + (1 - betas[1]) * (slope * slope)
        spread = sqrt(v / _left(betas[1], step, p)) + eps
        moved.append(p - lr * (m / _left(betas[0], step, p)) / spread)
        first.append(m)
        second.append(v)
    return tuple(moved), AdamState(step, tuple(first), tuple(second))


def adamw_step(
    parameters: Sequence[Array],
    gradients: Sequence[Array],
    state: AdamState,
    *,
    lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0.01,
) -> tuple[Arrays, AdamState]:
    """Adam with decay apart from the gradient: parameters are first scaled by 1 - lr weight_decay.

    Source: I. Loshchilov and F. Hutter, "Decoupled weight decay regularization" (2019), algorithm
    2.

    >>> start = [np.ones(1)]
    >>> (p,), _ = adamw_step(start, [np.zeros(1)], adam_init(start), lr=0.5, weight_decay=0.5)
    >>> p.tolist()
    [0.75]
    """
    shrunk = tuple(p * (1 - lr * weight_decay) for p in parameters)
    return adam_step(shrunk, gradients, state, lr=lr, betas=betas, eps=eps)
