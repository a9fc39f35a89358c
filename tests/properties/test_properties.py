"""Every property fails on a backend with the fault that it is about, and holds on a sound one."""

from __future__ import annotations

import pytest

from assay.impl.backends.numpy_float32 import NumpyFloat32
from assay.properties.campaign import run_backend
from assay.properties.properties import PROPERTIES
from assay.spec.claims import CLAIMS
from tests.properties.saboteurs import SABOTEURS
from tests.properties.saboteurs_blocks import BLOCKS
from tests.properties.saboteurs_models import WHOLE
from tests.properties.saboteurs_training import TRAINING
from tests.properties.spec_backend import SpecBackend

IDS = [p.id for p in PROPERTIES]


@pytest.mark.parametrize("property_id", IDS)
def test_a_property_fails_on_the_fault_that_it_is_about(property_id: str) -> None:
    dtype = "float64" if property_id in (*WHOLE, *TRAINING) else "float32"
    result = run_backend(SABOTEURS[property_id](), claims=(property_id,), dtypes=(dtype,))

    assert result.cells
    found = {cell.key.op for cell in result.cells if cell.verdict == "violated"}

    assert found == {cell.key.op for cell in result.cells}, [c.reason for c in result.cells]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float64"])
def test_no_property_fails_on_a_sound_backend(dtype: str) -> None:
    held, wide = set(), dtype in ("float32", "float64")
    for backend in (NumpyFloat32(), SpecBackend()):
        result = run_backend(backend, dtypes=(dtype,))
        assert [(f.cell.property, f.message, f.summary) for f in result.findings] == []
        assert [c.reason for c in result.cells if c.verdict == "inconclusive"] == []
        held |= {cell.key.property for cell in result.cells if cell.verdict == "held"}

    modes = {"attention.mode_agreement", "block.mode_agreement", "model.sdpa_equals_manual"}
    unasked = modes | {"hygiene.provider_witness"} | (set() if wide else {*BLOCKS})
    assert held == set(IDS) - unasked - (set() if dtype == "float64" else {*WHOLE, *TRAINING})


def test_each_tested_claim_has_a_property_and_each_property_a_tested_claim() -> None:
    tested, claimed = {p.claim for p in PROPERTIES}, {c.id for c in CLAIMS if c.test}
    assert tested == claimed


def test_property_ids_are_unique() -> None:
    assert len(IDS) == len(set(IDS))
