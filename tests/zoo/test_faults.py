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
    # A backend may compute several ops, of which one has the fault.
    found = [cell for cell in cells if cell.finding is not None]
    assert {cell.key.property for cell in found} == set(fault.claims)
    hints = [cell.finding.hint for cell in found if cell.finding is not None]
    assert {cell.finding.verdict for cell in found if cell.finding} == {fault.verdict}
    assert any(fault.hint in hint for hint in hints), hints
    if fault.verdict != "hung" and fault.name != "endless-allocation":
        assert min(map(_largest_dim, found)) <= 4 * fault.needs


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
