"""A step of an optimizer in every usual form, on numbers that carry their errors.

Libraries evaluate the formulas of ``adam`` and ``sgd`` in other orders: a running mean as
m + (1 - b) (g - m), the correction before or after the root, the rate before or after the division,
the decay apart from the parameter or as a factor. Each quantity here is taken in both of its forms,
and keeps the larger error.

Where a gradient is 0 Adam divides noise by eps: an error e of it moves the step by lr e / (|g| +
eps) at most, which is 1e-6 lr for float64 and eps = 1e-8. In float32, where e may exceed eps, the
bound says no more than that the step is about lr long.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from assay.spec.inexact import Inexact
from assay.spec.optimizers.update import Moments, Training


def either(x: Inexact, y: Inexact) -> Inexact:
    """One number in two forms: the value of x, and an error that covers both.

    >>> from assay.spec.arithmetic import Arithmetic
    >>> x, y = (Inexact(np.array([1.0]), error, Arithmetic()) for error in (0.0, 0.5))
    >>> either(x, y).error.tolist()
    [0.5]
    """
    apart = np.abs(x.value - y.value).astype(np.float64)
    return x.trusted(x.value, np.maximum(x.error, y.error + apart))


def _mean(beta: float, mean: Inexact, new: Inexact) -> Inexact:
    return either(beta * mean + (1 - beta) * new, mean + (1 - beta) * (new - mean))


def _root(x: Inexact) -> Inexact:
    """The square root, whose error is also within sqrt(|d|) of an error d of x, and four roundings:
    near 0 that is less than the slope there says.
    """
    found: Any = np.sqrt(x)
    far = np.sqrt(x.error)
    near = far + 4.0 * x.unit * (np.abs(found.value).astype(np.float64) + far)
    return found.trusted(found.value, np.minimum(found.error, near))


def _left(beta: float, step: int, like: Inexact) -> Inexact:
    """c = 1 - beta^t, which keeps the error of the power: t - 1 products, or a call that is good to
    a unit in the last place, 2 u. Near beta = 1 that is far more than u c: at t = 2 and beta =
    0.999 it is 1000 u c. The first power has none.

    >>> from assay.spec.arithmetic import Arithmetic
    >>> like = Inexact(np.ones(1), 0.0, Arithmetic("float64", "float64", "float64"))
    >>> c = _left(0.999, 2, like)
    >>> bool(c.error / c.value > 900 * like.unit)
    True
    """
    power = beta**step
    roundings = max(step - 1, 2) if step > 1 else 0
    error = like.unit * (roundings * power + (1 - power))
    return like.trusted(np.float64(1 - power), np.float64(error))


def _adam_move(how: Training, taken: int, first: Inexact, second: Inexact) -> Inexact:
    """lr m / c1 / (sqrt(v / c2) + eps)."""
    left1, left2 = (_left(beta, taken + 1, first) for beta in how.betas)
    spread = either(_root(second / left2), _root(second) / np.sqrt(left2)) + how.eps
    return either(how.lr * (first / left1 / spread), how.lr / left1 * (first / spread))


def update_in_any_form(
    how: Training, taken: int, state: Inexact, gradient: Inexact, moments: Moments
) -> tuple[Inexact, Moments]:
    """``update.update`` with errors that cover every form."""
    decay = how.weight_decay
    slope = gradient if how.optimizer == "adamw" or not decay else gradient + decay * state
    if how.optimizer == "sgd":
        apart = (state - how.lr * (decay * state)) - how.lr * gradient
        return either(state - how.lr * slope, apart), moments
    first = _mean(how.betas[0], state.like(moments.first), slope)
    second = _mean(how.betas[1], state.like(moments.second), slope * slope)
    move = _adam_move(how, taken, first, second)
    if how.optimizer == "adam":
        return state - move, Moments(first, second)
    left = either(state * (1 - how.lr * decay), state - how.lr * (decay * state))
    # The decay may be added to the step before both are taken off.
    joint = state - (move + how.lr * (decay * state))
    return either(left - move, joint), Moments(first, second)
