"""Campaigns made by hand: one in which all held, one that shows every verdict."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from assay.properties.results import Absent, Cell, CellKey, Result
from tests.cli.samples import FUTURE, HOSTILE, failed, held


@pytest.fixture
def sound() -> Result:
    """A finished campaign in which everything held."""
    claims = ("attention.refines", "attention.scale", "hygiene.shape")
    cells = tuple(held("numpy.float32", claim) for claim in claims)
    return Result(
        campaign="c0ffee01",
        started="2026-01-02T03:04:05",
        profile="quick",
        seed=7,
        targets=("numpy.float32",),
        versions={"numpy": "2.4.6", "torch": "2.13.0+cpu"},
        contracts={
            "numpy.float32": {"name": "numpy.float32", "dtypes": ("float32",), "empty_row": "zeros"}
        },
        planned=3,
        cells=cells,
        finished=True,
        seconds=12.5,
    )


@pytest.fixture
def faulty(sound: Result) -> Result:
    """The same with a backend that shows every other verdict, in hostile words."""
    key = CellKey("my-flash", "attention.scale", "bfloat16")
    crash = replace(
        FUTURE,
        id="dead0001",
        cell=CellKey("my-flash", "attention.refines", "float32", "eval"),
        claim="attention.refines",
        verdict="crashed",
        message=HOSTILE,
        summary=HOSTILE,
        hint=HOSTILE,
        trace=HOSTILE,
        score=float("inf"),
        picture={},
    )
    cells = (
        *sound.cells,
        failed(FUTURE),
        failed(crash),
        Cell(key, key.property, "unsupported", reason=HOSTILE),
        Cell(replace(key, dtype="float16"), key.property, "inconclusive", reason="out of time"),
        replace(
            held("my-flash", "attention.empty_row"),
            grade="weaker promise",
            reason="empty_row='nan'",
            examples=3,
        ),
    )
    contracts = {
        **sound.contracts,
        "my-flash": {"name": "my-flash", "empty_row": "nan", "provider": HOSTILE},
    }
    absent = (Absent("chip.fast", HOSTILE, "pip install 'assay[chip]'"),)
    return replace(
        sound,
        cells=cells,
        contracts=contracts,
        planned=len(cells) + 2,
        finished=False,
        absent=absent,
    )


@pytest.fixture
def sound_journal(sound: Result, tmp_path: Path) -> Path:
    """A store that holds the sound campaign."""
    from assay.properties.journal import Journal

    folder = tmp_path / "store"
    with Journal(folder, create=True) as journal:
        journal.begin(sound, "fingerprint")
        for cell in sound.cells:
            journal.add(sound.campaign, cell)
        journal.end(sound)
    return folder
