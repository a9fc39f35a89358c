"""The bound on a step of an optimizer holds where nothing but the step itself rounds."""

from __future__ import annotations

import numpy as np
import pytest

from assay.spec.arithmetic import Arithmetic
from assay.spec.inexact import Inexact
from assay.spec.optimizers.forms import update_in_any_form
from assay.spec.optimizers.update import Moments, Training, update

FLOAT64 = Arithmetic("float64", "float64", "float64")


@pytest.mark.parametrize("name", ["sgd", "adam", "adamw"])
def test_bound_covers_steps_in_float64(name: str) -> None:
    """Powers of beta near 1 lose a thousand times a rounding in 1 - beta^t."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        how = Training(name, lr=10.0 ** rng.uniform(-3, -1), weight_decay=0.25)
        start = 0.02 * rng.normal(size=4)
        wide = start.astype(np.longdouble)
        bounded = Inexact(start, np.zeros(4), FLOAT64)
        kept = [Moments(x * 0, x * 0) for x in (start, wide, start)]
        for taken in range(4):
            g = rng.normal(size=4)
            start, kept[0] = update(how, taken, start, g, kept[0])
            wide, kept[1] = update(how, taken, wide, g.astype(np.longdouble), kept[1])
            given = Inexact(g, np.zeros(4), FLOAT64)
            bounded, kept[2] = update_in_any_form(how, taken, bounded, given, kept[2])
            assert np.all(np.abs(start - wide) <= bounded.error)
