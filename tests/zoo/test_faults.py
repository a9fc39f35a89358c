"""Every planted fault is found: by the claims that are about it, with a small case, and by the
quick profile.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.properties.profiles import PROFILES
from assay.properties.results import Cell
from assay.zoo.catalogue import FAULTS
from assay.zoo.fault import Fault
from assay.zoo.measure import examine

# The budgets in seconds are widened: what is tested is what is drawn, on however busy a machine.
QUICK = replace(PROFILES["quick"], cell_seconds=60.0, shrink_seconds=8.0, timeout=3.0)
# Enough for a single cell to meet what takes two rare conditions at once.
PATIENT = replace(QUICK, examples=4 * QUICK.examples)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.name)
def test_claims_about_a_fault_find_it(fault: Fault) -> None:
    cells = list(examine(fault.target, PATIENT, claims=fault.claims, isolated=fault.isolated))
    assert {cell.key.property for cell in cells} == set(fault.claims)
    findings = [cell.finding for cell in cells]
    assert [f.verdict if f else "held" for f in findings] == [fault.verdict] * len(cells)
    assert any(fault.hint in f.hint for f in findings if f), [f.hint for f in findings if f]
    if fault.verdict != "hung" and fault.name != "endless-allocation":
        assert min(map(_largest_dim, cells)) <= 4 * fault.needs


def _largest_dim(cell: Cell) -> int:
    return 0 if cell.finding is None else max(cell.finding.case["dims"].values())


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.name)
def test_quick_profile_finds_a_fault(fault: Fault) -> None:
    quick = replace(QUICK, shrink_seconds=0.0)
    # Those of memory first, for a fault that none of the others can find.
    claims = ("hygiene.*",) if fault.kind == "memory" else None
    cells = examine(fault.target, quick, claims=claims, seed=1, isolated=fault.isolated)
    assert any(cell.finding is not None for cell in cells)
