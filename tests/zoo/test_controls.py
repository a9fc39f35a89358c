"""Sound kernels are not accused: all properties in all their dtypes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.properties.profiles import PROFILES
from assay.zoo.catalogue import CONTROLS
from assay.zoo.fault import Control
from assay.zoo.measure import examine

# Half of the examples: benchmarks/ counts false alarms over many more.
QUICK = replace(PROFILES["quick"], examples=20, cell_seconds=60.0)
BASE = Control("numpy.float32", "numpy.float32", "the built-in control")


@pytest.mark.slow
@pytest.mark.parametrize("control", [*CONTROLS, BASE], ids=lambda c: c.name)
def test_no_property_accuses_a_control(control: Control) -> None:
    cells = list(examine(control.target, QUICK))
    assert [c.finding for c in cells if c.finding is not None] == []
    # What a control does not offer, such as the names of its kernels, is not held either.
    assert {c.verdict for c in cells} <= {"held", "unsupported"}
    assert sum(c.verdict == "held" for c in cells) >= 0.85 * len(cells)
