"""Error bounds of selective scans: max over the forms that sound kernels have.

Running analysis of the spec's own function covers every bracketing of a scan and every order of a
sum. Two parts are also evaluated in other forms, and are given the largest error of all:

softplus       ln(1 + exp(x)) instead of x + ln(1 + exp(-x)), where the exponential is in range
carried over   h_t - delta_t u_t b_t instead of exp(-delta_t a) h_{t-1} in the gradients: kernels
               that keep the states alone take the difference; and what a gradient through a tree
               makes of its product with l (see ``rounding.recurrences``)

Not covered: a threshold in softplus beyond which it is x (its error exp(-20) is nothing in float32
and much in float64); exp of differences of running sums (see ``rounding.recurrences``); a readout
that is expanded to sums of c h W and d u W.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from assay.spec.functions import log1p
from assay.spec.layers.activations import softplus
from assay.spec.scalars import exp
from assay.spec.scans.affine import into_factors
from assay.spec.scans.block import Forms
from assay.spec.scans.selective import Flow
from assay.spec.scans.shapes import before


def either(x: Any, y: Any) -> Any:
    """The inexact ``x`` with the larger error of x and y: sound whichever form was evaluated.

    >>> from assay.spec.arithmetic import Arithmetic
    >>> from assay.spec.inexact import Inexact
    >>> x, y = (Inexact(np.ones(1), e, Arithmetic()) for e in (0.25, 0.5))
    >>> either(x, y).error.tolist()
    [0.5]
    """
    return x.of(x.value, np.maximum(x.error, y.error))


def softplus_either(x: Any) -> Any:
    """softplus in its stable form, or as ln(1 + exp(x)) where that does not overflow."""
    brink = float(np.log(x.largest)) - 1.0
    inside = x.value < brink
    clipped = x.of(np.where(inside, x.value, 0.0), x.error)
    direct: Any = log1p(exp(clipped))
    stable: Any = softplus(x)
    return either(stable, stable.of(stable.value, np.where(inside, direct.error, 0.0)))


def lost_either(flow: Flow) -> Any:
    """l k, with k as a product or as a difference, or as a gradient through any tree."""
    earlier = before(flow.start, flow.states)
    carried = either(flow.kept * earlier, flow.states - flow.added)
    through = into_factors(flow.kept, flow.added, flow.start, flow.read, flow.states, flow.slopes)
    return either(flow.slopes * carried, flow.kept * through)


ANY_FORM = Forms(softplus_either, lost_either)
"""For running analysis alone."""
