"""Error bounds of log-softmax and cross-entropy: the widest over the forms in use.

With m the largest logit and l = log sum exp(x - m), log-probabilities are taken as (x - m) - l or
as x - (m + l); probabilities as exp(x - m) / sum, or as the exponential of a log-probability; and
the sum of log-probabilities over V classes as such, or as sum x - V (m + l). The rules of running
analysis bound each form, for every order of summation. A mass that is summed block by block, and
rescaled whenever the maximum rises, is off by a factor 1 + rho more (``rescale_error``): log(1 +
rho) <= rho in a logarithm, and rho / (1 - rho) of a probability.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from assay.spec.arithmetic import Arithmetic, gamma
from assay.spec.inexact import RUNNING_SLACK, running_bound, widest
from assay.spec.layers.cross_entropy import (
    AllIgnored,
    Reduction,
    counted,
    cross_entropy_backward,
    losses,
    share,
)
from assay.spec.layers.log_softmax import log_mass, log_softmax
from assay.spec.scalars import Array, exp, row_max, select, total
from assay.spec.softmax import softmax
from assay.spec.softmax_bounds import rescale_error

Arrays = Mapping[str, Array]
Attributes = Mapping[str, Any]
Function = Callable[[Arrays], Mapping[str, Any]]


def _by_mass(x: Array) -> Array:
    """x - (m + l)."""
    if x.shape[-1] == 0:
        return x
    top = row_max(x, np.ones(x.shape, dtype=bool))
    return x - (top + log_mass(x)[1])


FORMS = (log_softmax, _by_mass)


def _all(forms: Sequence[Function], inputs: Arrays, arithmetic: Arithmetic) -> dict[str, Array]:
    return widest(*(running_bound(form, inputs, arithmetic) for form in forms))


def _rescaled(x: Array, arithmetic: Arithmetic) -> Array:
    """Relative error rho [..., 1] that blocks add to the mass; 0 for a row that is one block."""
    top = np.max(x, axis=-1, keepdims=True, initial=-np.inf)
    away = np.where(np.isfinite(x), top - x, 0.0)
    span = np.max(away, axis=-1, keepdims=True, initial=0.0)
    return rescale_error(span, x.shape[-1], arithmetic) * RUNNING_SLACK


def _of_probability(x: Array, arithmetic: Arithmetic) -> Array:
    """rho / (1 - rho) of each probability."""
    rho = _rescaled(x, arithmetic)
    return softmax(x) * rho / np.where(rho < 1, 1 - rho, np.nan)


def log_softmax_bound(x: Array, arithmetic: Arithmetic) -> Array:
    """Bound on |computed - exact| for ``log_softmax``, in the shape of x."""
    forms = [lambda a, form=form: {"y": form(a["x"])} for form in FORMS]
    with np.errstate(all="ignore"):
        return _all(forms, {"x": x}, arithmetic)["y"] + _rescaled(x, arithmetic)


def _probabilities() -> list[Callable[[Any], Any]]:
    return [softmax, *(lambda x, form=form: exp(form(x)) for form in FORMS)]


def log_softmax_backward_bound(x: Array, cotangent: Array, arithmetic: Arithmetic) -> Array:
    """Bound on |computed - exact| for g - p sum g."""

    def gradient(p: Callable[[Any], Any]) -> Function:
        return lambda a: {"x": a["g"] - p(a["x"]) * total(a["g"])}

    forms = [gradient(p) for p in _probabilities()]
    with np.errstate(all="ignore"):
        extra = _of_probability(x, arithmetic) * np.abs(total(cotangent))
        return _all(forms, {"x": x, "g": cotangent}, arithmetic)["x"] + extra


def _reduced(loss: Any, divisor: float, reduction: str) -> Any:
    return loss if reduction == "none" else (total(loss.reshape(1, -1)) / divisor).reshape(())


def cross_entropy_bound(
    logits: Array,
    targets: Array,
    arithmetic: Arithmetic,
    *,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: Reduction = "mean",
    all_ignored: AllIgnored = "nan",
) -> Array:
    """Bound on |computed - exact| for ``cross_entropy``.

    The widest over the forms of the log-probabilities. Where the smoothing term is taken as (m + l)
    - sum x / V, its V + 4 roundings are relative to |m + l| + mean|x|.
    """
    counts = counted(logits, targets, ignore_index, label_smoothing)
    divisor = share(counts, reduction, all_ignored)

    def form(log_p: Callable[[Any], Any]) -> Function:
        def loss(a: Arrays) -> dict[str, Any]:
            each = losses(log_p(a["x"]), targets, counts, label_smoothing)
            return {"loss": _reduced(each, divisor, reduction)}

        return loss

    bound = _all([form(log_p) for log_p in FORMS], {"x": logits}, arithmetic)["loss"]
    with np.errstate(all="ignore"):
        each = _spread_error(logits, label_smoothing, arithmetic)
        extra = np.where(counts, each + _rescaled(logits, arithmetic)[..., 0], 0.0)
        return np.asarray(bound + _reduced(extra, divisor, reduction), dtype=np.float64)


def _spread_error(logits: Array, smoothing: float, arithmetic: Arithmetic) -> Array:
    size = logits.shape[-1]
    if not smoothing or not size:
        return np.zeros(logits.shape[:-1])
    mass = np.abs(logits - log_softmax(logits))[..., 0] + np.abs(logits).mean(axis=-1)
    return smoothing * (gamma(size + 4, arithmetic.u_acc) + 3.0 * arithmetic.u_mid) * mass


def cross_entropy_backward_bound(
    logits: Array,
    targets: Array,
    cotangent: Array,
    arithmetic: Arithmetic,
    **attributes: Any,
) -> Array:
    """Bound on |computed - exact| for ``cross_entropy_backward``.

    p - wanted as the spec has it, or G - p sum G with G the gradient into the log-probabilities and
    its sum taken over all classes.
    """

    def direct(a: Arrays) -> dict[str, Any]:
        return {"x": cross_entropy_backward(a["x"], targets, a["g"], **attributes)}

    forms = [direct, *(_chained(p, targets, attributes) for p in _probabilities())]
    slope, counts = _slope(logits, targets, cotangent, attributes)
    with np.errstate(all="ignore"):
        extra = np.where(counts, _of_probability(logits, arithmetic) * np.abs(slope), 0.0)
        return _all(forms, {"x": logits, "g": cotangent}, arithmetic)["x"] + extra


def _slope(
    logits: Any, targets: Array, cotangent: Any, attributes: Attributes
) -> tuple[Any, Array]:
    """Gradient into the loss of each row, broadcastable to the logits, and which rows count."""
    reduction = attributes.get("reduction", "mean")
    ignored = attributes.get("ignore_index", -100)
    counts = counted(logits, targets, ignored, attributes.get("label_smoothing", 0.0))
    slope = cotangent[..., None] if reduction == "none" else cotangent
    return slope / share(counts, reduction, "zero"), counts[..., None]


def _chained(p: Callable[[Any], Any], targets: Array, attributes: Attributes) -> Function:
    smoothing = attributes.get("label_smoothing", 0.0)

    def gradient(a: Arrays) -> dict[str, Any]:
        slope, counts = _slope(a["x"], targets, a["g"], attributes)
        size = a["x"].shape[-1]
        hit = targets[..., None] == np.arange(size)
        wanted = np.where(hit, 1 - smoothing, 0.0) + smoothing / max(size, 1)
        into = select(counts, -wanted * slope, 0)
        return {"x": select(counts, into - p(a["x"]) * total(into), 0)}

    return gradient
