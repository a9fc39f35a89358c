"""A wrong backend for each property of layers, norms and losses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from assay.properties.recipes.layers import POINTWISE
from assay.spec.layers.activations import gelu
from tests.properties.spec_backend import Arrays, SpecBackend, Spoil, scaled

NORMS = ("layer_norm", "rms_norm", "group_norm", "batch_norm")
CENTRED = ("layer_norm", "group_norm", "batch_norm")
LOSSES = ("log_softmax", "cross_entropy")
TAILS = ("silu", "sigmoid", "softplus")
Change = Callable[[dict[str, Any], np.ndarray], Any]


def changed(change: Change, *names: str) -> Spoil:
    """What is due, changed by a function of the call; only the arrays of these names, or all."""

    def spoil(backend: SpecBackend, name: str, call: dict[str, Any], right: Arrays) -> Arrays:
        with np.errstate(all="ignore"):
            return {
                n: np.asarray(change(call, x), x.dtype) if not names or n in names else x
                for n, x in right.items()
            }

    return spoil


def plus(by: float, *names: str) -> Spoil:
    """A number too much everywhere."""
    return changed(lambda call, x: x + np.asarray(by, x.dtype), *names)


def _logits(call: dict[str, Any]) -> np.ndarray:
    return np.asarray(call.get("x", call.get("logits")), np.float64)


def _one_form(call: dict[str, Any], right: np.ndarray) -> Any:
    """The tanh form, whatever is asked for."""
    return gelu(call["x"].astype(np.float64), approximate="tanh")


def _overflow(call: dict[str, Any], right: np.ndarray) -> Any:
    """inf / inf beyond the range of exp."""
    x = _logits(call)
    lost = np.abs(x) > 88 if x.shape == right.shape else np.any(np.abs(x) > 88)
    return np.where(lost, np.nan, right)


def _short_ids(call: dict[str, Any], right: np.ndarray) -> Any:
    """Identifiers are kept in 15 bits."""
    return call["table"][call["ids"] % 32768]


def _with_x(call: dict[str, Any], right: np.ndarray) -> Any:
    """A thousandth of x is left in the output."""
    return right.astype(np.float64) + 1e-3 * call["x"].astype(np.float64)


def _with_logits(call: dict[str, Any], right: np.ndarray) -> Any:
    return right + 1e-3 * _logits(call).mean()


def _multiplied(call: dict[str, Any], right: np.ndarray) -> Any:
    """Dropped entries are multiplied by 0."""
    return right + 0 * call["x"]


def _not_asleep(call: dict[str, Any], right: np.ndarray) -> Any:
    return right if call.get("training", True) else right * np.asarray(1.125, right.dtype)


def _large(call: dict[str, Any], right: np.ndarray) -> Any:
    return right * 1.01 if _logits(call).shape[-1] > 30_000 else right


def _ignored_leaks(call: dict[str, Any], right: np.ndarray) -> Any:
    return right + 0 * call["logits"]


def _zero_for_none(call: dict[str, Any], right: np.ndarray) -> Any:
    """A mean over no row is 1."""
    return np.where(np.all(call["targets"] == call.get("ignore_index", -100)), 1.0, right)


def _smooth(call: dict[str, Any], right: np.ndarray) -> Any:
    return right * 1.01 if 0 < call.get("label_smoothing", 0.0) < 1 else right


def _mean(call: dict[str, Any], right: np.ndarray) -> Any:
    return right * 1.01 if call.get("reduction", "mean") == "mean" else right


def _refinement(family: str, *ops: str) -> dict[str, Callable[[], SpecBackend]]:
    return {
        f"{family}.refines": lambda: SpecBackend(*ops, spoil=scaled(1.01)),
        f"{family}.vjp_refines": lambda: SpecBackend(*ops, gradients=scaled(1.01)),
    }


LAYERS: dict[str, Callable[[], SpecBackend]] = {
    **_refinement("activation", *POINTWISE),
    **_refinement("linear", "linear"),
    **_refinement("embedding", "embedding"),
    **_refinement("dropout", "dropout"),
    **_refinement("norm", *NORMS),
    **_refinement("loss", *LOSSES),
    "activation.gelu_variant": lambda: SpecBackend("gelu", spoil=changed(_one_form)),
    "activation.tails": lambda: SpecBackend(*TAILS, spoil=changed(_overflow)),
    "embedding.padding_row_zero_grad": lambda: SpecBackend("embedding", gradients=plus(1e-30)),
    "embedding.large_vocabulary": lambda: SpecBackend("embedding", spoil=changed(_short_ids)),
    "dropout.dropped_zero": lambda: SpecBackend("dropout", spoil=changed(_multiplied)),
    "dropout.evaluation": lambda: SpecBackend("dropout", spoil=changed(_not_asleep)),
    "norm.one_feature": lambda: SpecBackend("layer_norm", gradients=plus(1e-3, "x")),
    "norm.constant_slice": lambda: SpecBackend(*CENTRED, spoil=changed(_with_x)),
    "norm.shift": lambda: SpecBackend(*CENTRED, spoil=changed(_with_x)),
    "norm.scale": lambda: SpecBackend(*NORMS, spoil=changed(_with_x)),
    "norm.grad_sums_zero": lambda: SpecBackend(*CENTRED, gradients=plus(1e-2, "x")),
    "loss.stable_logits": lambda: SpecBackend(*LOSSES, spoil=changed(_overflow)),
    "loss.shift": lambda: SpecBackend(*LOSSES, spoil=changed(_with_logits)),
    "loss.large_vocabulary": lambda: SpecBackend(*LOSSES, spoil=changed(_large)),
    "loss.ignore_index": lambda: SpecBackend("cross_entropy", gradients=changed(_ignored_leaks)),
    "loss.all_ignored": lambda: SpecBackend("cross_entropy", spoil=changed(_zero_for_none)),
    "loss.label_smoothing": lambda: SpecBackend("cross_entropy", spoil=changed(_smooth)),
    "loss.grad_sums_zero": lambda: SpecBackend("cross_entropy", gradients=plus(1e-2)),
    "loss.reduction": lambda: SpecBackend("cross_entropy", spoil=changed(_mean)),
}
