"""What is reached without learning: bars that a trained model has to be below."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64, Int


def without_context(targets: Int[np.ndarray, "*b"]) -> float:
    """The least cross-entropy of these targets for a model that always predicts the same.

    With shares f it is -sum f ln p for a prediction p, which is least where p = f (Gibbs).

    >>> without_context(np.array([0, 1, 1, 0])).__round__(4)
    0.6931
    """
    _, counts = np.unique(targets, return_counts=True)
    shares = counts / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def constant(targets: Float64[np.ndarray, "N *t"]) -> float:
    """The least mean square error for a model that gives every example the same: the variance.

    >>> constant(np.array([[1.0, 0.0], [0.0, 0.0]]))
    0.125
    """
    return float(((targets - targets.mean(axis=0)) ** 2).mean())


def without_memory(
    inputs: Float64[np.ndarray, "N T I"], targets: Float64[np.ndarray, "N T O"]
) -> float:
    """The least mean square error for an affine function of the present input alone.

    >>> x = np.array([[[1.0], [2.0], [4.0]]])
    >>> without_memory(x, 3 * x + 1) < 1e-24
    True
    """
    x, y = (part.reshape(-1, part.shape[-1]) for part in (inputs, targets))
    design = np.column_stack([x, np.ones(len(x))])
    fitted = design @ np.linalg.lstsq(design, y, rcond=None)[0]
    return float(((y - fitted) ** 2).mean())


def relative_error(found: np.ndarray, targets: np.ndarray) -> float:
    """The mean over examples of |found - target| / |target|, in the Euclidean norm.

    Examples whose target is 0 have no relative error and are left out.
    """
    away, size = (
        np.linalg.norm(part.reshape(len(part), -1), axis=1) for part in (found - targets, targets)
    )
    return float((away[size > 0] / size[size > 0]).mean())


def accuracy(found: Float64[np.ndarray, "N V"], targets: Float64[np.ndarray, "N V"]) -> float:
    """The share of examples whose largest answer stands at the class."""
    return float((found.argmax(axis=1) == targets.argmax(axis=1)).mean())
