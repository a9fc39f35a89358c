"""The journal gives back every cell that it was given."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from assay.impl.session import open_session
from assay.properties.journal import Journal
from assay.properties.plan import Selection, cells
from assay.properties.profiles import PROFILES
from assay.properties.properties import find
from assay.properties.results import Cell, CellKey, Result
from tests.properties.spec_backend import SpecBackend

PLAN = cells(
    open_session(SpecBackend(), isolate=False).description, Selection(), PROFILES["nightly"]
)
"""One claim asks about many ops here."""


def test_each_cell_has_a_name_of_its_own() -> None:
    assert len({str(key) for key in PLAN}) == len(PLAN)
    assert str(CellKey("b", "norm.refines", "float32", "grad", "rms_norm")) == (
        "b (grad) norm.refines of rms_norm float32"
    )
    assert str(CellKey("b", "attention.refines", "float32", op="attention")) == (
        "b attention.refines float32"
    )


def test_cells_that_differ_in_one_field_are_all_kept(tmp_path: Path) -> None:
    empty = Result("c0ffee00", "now", "nightly", 0, ("spec",), {}, {}, len(PLAN))
    every = tuple(Cell(key, find(key.property).claim, "held") for key in PLAN)
    with Journal(tmp_path, create=True) as journal:
        journal.begin(empty, "")
        for cell in every:
            journal.add(empty.campaign, cell)
        journal.end(replace(empty, cells=every, finished=True))

    with Journal(tmp_path) as journal:
        assert journal.load("c0ffee00").cells == every
