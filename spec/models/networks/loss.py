"""The loss of a language model: the mean over all tokens of -log softmax(logits)[target]."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int, Shaped

from assay.spec.layers.cross_entropy import cross_entropy, cross_entropy_backward
from assay.spec.scalars import Array

Logits = Shaped[np.ndarray, "B T V"]
Targets = Int[np.ndarray, "B T"]


def next_tokens(
    ids: Int[np.ndarray, "B T1"],
) -> tuple[Int[np.ndarray, "B T"], Targets]:
    """Inputs and targets of T + 1 tokens: the target at t is token t + 1.

    >>> inputs, targets = next_tokens(np.array([[5, 6, 7]]))
    >>> inputs.tolist(), targets.tolist()
    ([[5, 6]], [[6, 7]])
    """
    return ids[:, :-1], ids[:, 1:]


def token_loss(logits: Logits, targets: Targets) -> Array:
    """Mean cross-entropy over batch and time; log V for equal logits.

    >>> token_loss(np.zeros((1, 2, 4)), np.array([[0, 3]])).round(6).tolist()
    1.386294
    """
    return cross_entropy(logits, targets)


def token_loss_backward(logits: Logits, targets: Targets) -> Logits:
    """Gradient of the loss into the logits: where the backward pass of a model starts."""
    return cross_entropy_backward(logits, targets, np.ones((), dtype=logits.dtype))
