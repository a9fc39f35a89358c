"""Causal depthwise convolution: y_t = bias + sum over taps k of w_k x_{t-k}, each channel alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Shaped

from assay.spec.scalars import Array
from assay.spec.scans.shapes import sum_of

X = Shaped[np.ndarray, "B T E"]
Taps = Shaped[np.ndarray, "Kt E"]
History = Shaped[np.ndarray, "B Kt-1 E"]


class ConvGradients(NamedTuple):
    """Cotangents of the four inputs, each in its input's shape."""

    x: X
    weight: Taps
    bias: Shaped[np.ndarray, "E"]
    history: History


def _check(x: X, weight: Taps, bias: Array | None, history: History | None) -> None:
    if x.ndim != 3:
        raise ValueError(f"x must have 3 axes [batch, time, channels], got shape {x.shape}")
    if weight.ndim != 2 or weight.shape[0] < 1 or weight.shape[1] != x.shape[2]:
        raise ValueError(
            f"shape of weight {weight.shape} must be (taps, {x.shape[2]}) with at least 1 tap"
        )
    if bias is not None and bias.shape != (x.shape[2],):
        raise ValueError(f"shape of bias {bias.shape} must be ({x.shape[2]},)")
    past = (x.shape[0], weight.shape[0] - 1, x.shape[2])
    if history is not None and history.shape != past:
        raise ValueError(f"shape of history {history.shape} must be {past}: one less than the taps")


def _extended(x: X, weight: Taps, history: History | None) -> Shaped[np.ndarray, "B T+Kt-1 E"]:
    """The inputs before the first one, oldest first, and then x."""
    past = weight.shape[0] - 1
    if history is None:
        return np.pad(x, ((0, 0), (past, 0), (0, 0)))
    return np.concatenate([history, x], axis=1)


def _windows(extended: Array, weight: Taps, steps: int) -> list[X]:
    """x_{t-k} for all t, for each tap k."""
    taps = weight.shape[0]
    return [extended[:, taps - 1 - k : taps - 1 - k + steps] for k in range(taps)]


def causal_conv1d(
    x: X,
    weight: Taps,
    bias: Shaped[np.ndarray, "E"] | None = None,
    history: History | None = None,
) -> tuple[X, History]:
    """The outputs, and the history from which the next chunk continues.

    x [B, T, E]; weight [Kt, E], where tap 0 weighs the current input; bias [E]; history [B, Kt-1,
    E] holds the inputs before x, the oldest first (None: zeros). A chunk that is shorter than the
    history keeps the newer part of it; T = 0 gives it back. Source: A. Gu and T. Dao, "Mamba"
    (2023), figure 3, where it is the ``conv`` of the block.

    >>> x, w = np.array([1.0, 2.0, 4.0]).reshape(1, 3, 1), np.array([[1.0], [10.0]])
    >>> y, history = causal_conv1d(x, w)
    >>> y.ravel().tolist(), history.ravel().tolist()
    ([1.0, 12.0, 24.0], [4.0])
    """
    _check(x, weight, bias, history)
    extended = _extended(x, weight, history)
    products = [
        w * past for w, past in zip(weight, _windows(extended, weight, x.shape[1]), strict=True)
    ]
    if bias is not None:
        products.append(np.broadcast_to(bias, x.shape))
    return sum_of(products), extended[:, x.shape[1] :]


def causal_conv1d_backward(
    x: X,
    weight: Taps,
    bias: Array | None,
    history: History | None,
    cotangent: X,
    history_cotangent: History | None = None,
) -> ConvGradients:
    """Gradients of sum(y * cotangent) + sum(history after * history_cotangent).

    The input at time s reaches the outputs at s + k: its gradient is sum over k of w_k g_{s+k}. The
    last inputs are the history that is handed on, so its cotangent is added to theirs.
    """
    _check(x, weight, bias, history)
    taps, steps = weight.shape[0], x.shape[1]
    windows = _windows(_extended(x, weight, history), weight, steps)
    spread = np.pad(cotangent, ((0, 0), (taps - 1, taps - 1), (0, 0)))
    terms = [w * spread[:, k : k + steps + taps - 1] for k, w in enumerate(weight)]
    if history_cotangent is not None:
        terms.append(np.pad(history_cotangent, ((0, 0), (steps, 0), (0, 0))))
    slopes = sum_of(terms)
    return ConvGradients(
        slopes[:, taps - 1 :],
        np.stack([(past * cotangent).sum(axis=(0, 1)) for past in windows]),
        cotangent.sum(axis=(0, 1)),
        slopes[:, : taps - 1],
    )


def to_depthwise(weight: Taps) -> Shaped[np.ndarray, "E 1 Kt"]:
    """The weight of a grouped convolution (torch's ``conv1d`` with groups = E): oldest tap first.

    >>> to_depthwise(np.array([[1.0], [10.0]])).tolist()
    [[[10.0, 1.0]]]
    """
    return np.flip(weight, axis=0).T[:, None, :]


def from_depthwise(weight: Shaped[np.ndarray, "E 1 Kt"]) -> Taps:
    """Inverse of ``to_depthwise``."""
    return np.flip(weight[:, 0, :].T, axis=0)
