"""Error bounds of root mean square normalisation and its gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from assay.spec.arithmetic import Arithmetic
from assay.spec.inexact import Inexact, stored
from assay.spec.layers.rms_norm import RmsGradients, rate
from assay.spec.layers.slices import Features, by_row
from assay.spec.layers.standardize import mean
from assay.spec.scalars import Array


def rms_norm_backward_bound(
    x: Array, weight: Features | None, cotangent: Array, eps: float, arithmetic: Arithmetic
) -> RmsGradients:
    """Bounds on |computed - exact| for ``rms_norm_backward``.

    With z = x s, h = g weight and t = mean(h z), dx = (h - z t) s by the rules. Expanded to h s - x
    (s^3 / n) sum h x, its two parts are rounded before they cancel: 8 roundings, relative to s (|h|
    + |z t|), more. Forward needs no such term: nothing cancels there.
    """
    with np.errstate(all="ignore"):
        inexact: Any = Inexact(x, 0.0, arithmetic)
        g: Any = Inexact(cotangent, 0.0, arithmetic)
        scale: Any = rate(inexact, eps)
        z = inexact * scale
        h = g if weight is None else g * Inexact(weight, 0.0, arithmetic)
        along = z * mean(h * z)
        dx = (h - along) * scale
        rounding = 8.0 * dx.unit * (h.reach + along.reach) * scale.reach
        dw: Any = by_row(x).gather(g * z)
        return RmsGradients(stored(dx.of(dx.value, dx.error + rounding)), stored(dw))
