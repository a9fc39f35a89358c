"""The catalogue itself: every property has a fault, names are one to one, docstrings say what is
wrong.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import assay
from assay.impl.loading import resolve
from assay.properties.properties import PROPERTIES
from assay.zoo.catalogue import CONTROLS, FAULTS
from assay.zoo.families import FAMILIES

ROOT = Path(assay.__file__).parent
UNPLANTED = {"hygiene.provider_witness"}
"""numpy names no kernels; the torch backends' own tests plant a wrong witness."""


def test_every_property_has_a_fault_that_it_must_find() -> None:
    planted = {claim for fault in FAULTS for claim in fault.claims}
    assert {p.id for p in PROPERTIES} - planted == UNPLANTED
    assert not UNPLANTED & planted


def test_every_family_has_members() -> None:
    names = {fault.name for fault in FAULTS}
    assert {name for members in FAMILIES.values() for name in members} <= names
    assert all(FAMILIES.values())


def test_a_third_of_the_faults_is_hard() -> None:
    assert 3 * sum(bool(fault.hard) for fault in FAULTS) >= len(FAULTS) >= 160


def test_every_expected_claim_is_a_property() -> None:
    assert {c for f in FAULTS for c in f.claims} <= {p.id for p in PROPERTIES}


def test_names_and_targets_are_unique() -> None:
    for field in ("name", "target"):
        values = [getattr(member, field) for member in (*FAULTS, *CONTROLS)]
        assert len(values) == len(set(values))


@pytest.mark.parametrize("member", [*FAULTS, *CONTROLS], ids=lambda m: m.name)
def test_member_loads_under_its_own_name(member) -> None:  # type: ignore[no-untyped-def]
    backend = resolve(member.target).load()
    assert backend.contract.name == f"zoo.{member.name}"
    assert type(backend).__doc__


def test_nothing_that_is_tested_knows_the_zoo() -> None:
    for folder in ("spec", "impl", "properties"):
        for source in (ROOT / folder).rglob("*.py"):
            assert "zoo" not in source.read_text(encoding="utf-8"), source
