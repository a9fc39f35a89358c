"""Every planted fault is found: by the claims that are about it, with a small case; by the quick
profile, or by the ci profile if it is hard.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from assay.properties.profiles import PROFILES
from assay.properties.results import Cell, Verdict
from assay.zoo.catalogue import FAULTS
from assay.zoo.fault import Fault
from assay.zoo.measure import examine

# The budgets in seconds are widened: what is tested is what is drawn, on however busy a machine.
QUICK = replace(PROFILES["quick"], cell_seconds=60.0, shrink_seconds=8.0, timeout=3.0)
CI = replace(PROFILES["ci"], cell_seconds=60.0, shrink_seconds=0.0, timeout=3.0)
# Enough for a single cell to meet what takes two rare conditions at once.
PATIENT = replace(QUICK, examples=4 * QUICK.examples)

MISSED = {
    "corner-products-overflow": "quick asks about scales in the first dtype alone, ci in all",
}
"""Faults that the quick profile does not find by their own claims. The ci profile finds them."""


def _named(fault: Fault, *marks: pytest.MarkDecorator) -> Any:
    return pytest.param(fault, id=fault.name, marks=marks)


def _expected(fault: Fault) -> Any:
    why = MISSED.get(fault.name)
    return _named(fault, *([pytest.mark.xfail(reason=why)] if why else []))


def _where(fault: Fault) -> dict[str, Any]:
    return {"isolated": fault.isolated, "adversarial": fault.adversarial}


def _verdicts(fault: Fault) -> set[Verdict]:
    """What comes and goes may also stay."""
    return {"flaky", "violated"} if fault.verdict == "flaky" else {fault.verdict}


@pytest.mark.parametrize("fault", [_expected(f) for f in FAULTS])
def test_claims_about_a_fault_find_it(fault: Fault) -> None:
    cells = list(examine(fault.target, PATIENT, claims=fault.claims, **_where(fault)))
    assert {cell.key.property for cell in cells} == set(fault.claims)
    # A backend may compute several ops, of which one has the fault.
    found = [cell for cell in cells if cell.finding is not None]
    assert {cell.key.property for cell in found} == set(fault.claims)
    hints = [cell.finding.hint for cell in found if cell.finding is not None]
    assert {cell.finding.verdict for cell in found if cell.finding} <= _verdicts(fault)
    assert any(fault.hint in hint for hint in hints), hints
    if fault.verdict != "hung" and fault.name != "endless-allocation":
        assert min(map(_largest_dim, found)) <= 4 * fault.needs


def _largest_dim(cell: Cell) -> int:
    return 0 if cell.finding is None else max(cell.finding.case["dims"].values())


@pytest.mark.slow
@pytest.mark.parametrize("fault", [_named(f) for f in FAULTS if not f.hard])
def test_quick_profile_finds_a_fault(fault: Fault) -> None:
    quick = replace(QUICK, shrink_seconds=0.0)
    # Those of memory first, for a fault that none of the others can find.
    claims = ("hygiene.*",) if fault.kind == "memory" else None
    cells = examine(fault.target, quick, claims=claims, seed=1, **_where(fault))
    assert any(cell.finding is not None for cell in cells)


@pytest.mark.slow
@pytest.mark.parametrize("fault", [_named(f) for f in FAULTS if f.hard])
def test_ci_profile_finds_a_hard_fault(fault: Fault) -> None:
    cells = examine(fault.target, CI, claims=fault.claims, seed=1, **_where(fault))
    assert any(cell.finding is not None for cell in cells)
