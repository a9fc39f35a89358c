"""What generated kernels do to look right is seen through in the adversarial mode, and sound
kernels are not accused there.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.properties.profiles import PROFILES
from assay.zoo.catalogue import FAULTS
from assay.zoo.fault import Fault
from assay.zoo.measure import examine

# What is tested is what is drawn, on however busy a machine; nothing is made small.
QUICK = replace(PROFILES["quick"], cell_seconds=60.0, shrink_seconds=0.0, timeout=3.0)
# Enough for a single cell to draw more than 128 queries.
PATIENT = replace(QUICK, examples=20 * QUICK.examples)
ATTACKS = [fault for fault in FAULTS if fault.kind == "attack"]
INSIDERS = [fault for fault in ATTACKS if fault.adversarial]


@pytest.mark.parametrize("fault", ATTACKS, ids=lambda f: f.name)
def test_an_attack_is_seen_through(fault: Fault) -> None:
    profile = PATIENT if fault.hard == "length" else QUICK
    # One dtype is enough, and the claims that are about it.
    cells = list(
        examine(fault.target, profile, claims=fault.claims, dtypes=("float32",), adversarial=True)
    )
    assert {cell.key.property for cell in cells} == set(fault.claims)
    assert {c.key.property for c in cells if c.finding is not None} == set(fault.claims)


@pytest.mark.parametrize("fault", INSIDERS, ids=lambda f: f.name)
def test_an_insider_looks_right_where_nothing_is_hidden(fault: Fault) -> None:
    claims = tuple(c for c in fault.claims if c != "hygiene.global_state_unchanged")
    cells = list(examine(fault.target, QUICK, claims=claims, dtypes=("float32",), isolated=True))
    assert cells
    assert [cell.finding for cell in cells if cell.finding is not None] == []


@pytest.mark.parametrize("target", ["numpy.float32", "assay.zoo.controls.tiled:Tiles16"])
def test_a_sound_kernel_is_not_accused(target: str) -> None:
    claims = ("attention.*", "hygiene.*")
    cells = list(examine(target, QUICK, claims=claims, dtypes=("float32",), adversarial=True))
    assert [cell.finding for cell in cells if cell.finding is not None] == []
    assert sum(cell.verdict == "held" for cell in cells) >= 20
