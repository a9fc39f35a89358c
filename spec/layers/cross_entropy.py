"""Cross-entropy: l_i = -(1 - s) log p_i[t_i] - s / V sum_v log p_i[v], with p = softmax(logits)
and s the label smoothing.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from jaxtyping import Bool, Int, Shaped

from assay.spec.layers.log_softmax import log_softmax
from assay.spec.scalars import Array, select, total
from assay.spec.softmax import softmax

Logits = Shaped[np.ndarray, "*b V"]
Targets = Int[np.ndarray, "*b"]
Reduction = Literal["none", "mean", "sum"]
AllIgnored = Literal["nan", "zero"]


def counted(logits: Logits, targets: Targets, ignore_index: int, smoothing: float) -> Array:
    """Which rows count, bool [...]; ValueError where inputs do not fit together."""
    if logits.ndim < 1 or logits.shape[:-1] != targets.shape:
        raise ValueError(
            f"targets {targets.shape} must have the shape of logits {logits.shape} without its last"
            " axis"
        )
    if not np.issubdtype(targets.dtype, np.integer):
        raise ValueError(f"targets of dtype {targets.dtype} must be integers")
    if not 0 <= smoothing <= 1:
        raise ValueError(f"label_smoothing={smoothing!r} must lie in [0, 1]")
    counts = targets != ignore_index
    outside = targets[counts & ((targets < 0) | (targets >= logits.shape[-1]))]
    if outside.size:
        raise ValueError(
            f"targets holds {int(outside.flat[0])}; valid: 0 to {logits.shape[-1] - 1}, and"
            f" ignore_index={ignore_index}"
        )
    return np.asarray(counts)


def share(counts: Bool[np.ndarray, "*b"], reduction: Reduction, all_ignored: AllIgnored) -> float:
    """By how much the sum of the losses is divided: NaN for a mean of nothing, where that is the
    policy.
    """
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"reduction={reduction!r} is unknown; valid: 'mean', 'none', 'sum'")
    if all_ignored not in ("nan", "zero"):
        raise ValueError(f"all_ignored={all_ignored!r} is unknown; valid: 'nan', 'zero'")
    number = int(np.count_nonzero(counts))
    if reduction != "mean":
        return 1
    return number if number else {"nan": float("nan"), "zero": 1}[all_ignored]


def losses(log_p: Logits, targets: Targets, counts: Array, smoothing: float) -> Array:
    """Loss of each row from its log-probabilities; exactly 0 where a row does not count."""
    if log_p.shape[-1] == 0:
        return np.zeros(targets.shape, dtype=log_p.dtype)
    index = np.where(counts, targets, 0)[..., None]
    loss = -np.take_along_axis(log_p, index, axis=-1)[..., 0]
    if smoothing:
        spread = -log_p.sum(axis=-1) / log_p.shape[-1]
        loss = (1 - smoothing) * loss + smoothing * spread
    return select(counts, loss, 0)


def cross_entropy(
    logits: Logits,
    targets: Targets,
    *,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: Reduction = "mean",
    all_ignored: AllIgnored = "nan",
) -> Array:
    """Negative log-probability of the targets, reduced over the rows that count.

    logits [..., V], targets [...] in 0..V-1 or ``ignore_index``. A row whose target is ignored has
    loss 0 and no influence, whatever its logits hold. The mean divides by the number of rows that
    count; when there is none it is NaN or 0, as ``all_ignored`` says. Reduction "none" keeps the
    shape of the targets. Source: C. Szegedy et al., "Rethinking the Inception architecture"
    (2015), section 7, for the smoothing.

    >>> cross_entropy(np.zeros((2, 4)), np.array([1, -100])).round(6).tolist()
    1.386294
    >>> cross_entropy(np.array([[-800.0, -1600.0, 0.0]]), np.array([1]), reduction="none").tolist()
    [1600.0]
    >>> cross_entropy(np.zeros((1, 2)), np.array([-100]), all_ignored="zero").tolist()
    0.0
    """
    counts = counted(logits, targets, ignore_index, label_smoothing)
    divisor = share(counts, reduction, all_ignored)
    loss = losses(log_softmax(logits), targets, counts, label_smoothing)
    if reduction == "none":
        return loss
    return (total(loss.reshape(1, -1)) / divisor).reshape(())


def cross_entropy_backward(
    logits: Logits,
    targets: Targets,
    cotangent: Array,
    *,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: Reduction = "mean",
    all_ignored: AllIgnored = "nan",
) -> Logits:
    """Gradient into the logits: g_i (p_i - (1 - s) [v = t_i] - s / V), exactly 0 where a row does
    not count.

    cotangent [...] for reduction "none", otherwise one number; a mean divides it by the number of
    rows that count. So the gradient is 0, and not NaN, when no row counts.

    >>> cross_entropy_backward(np.zeros((1, 2)), np.array([0]), np.array(1.0)).tolist()
    [[-0.5, 0.5]]
    """
    counts = counted(logits, targets, ignore_index, label_smoothing)
    divisor = share(counts, reduction, "zero" if all_ignored == "nan" else all_ignored)
    size = logits.shape[-1]
    hit = (targets[..., None] == np.arange(size)) & counts[..., None]
    away = softmax(logits)
    if label_smoothing:
        away = away - label_smoothing / size
    away = select(hit, away - (1 - label_smoothing), away)
    slope = cotangent[..., None] if reduction == "none" else cotangent
    return select(counts[..., None], away * (slope / divisor), 0)
