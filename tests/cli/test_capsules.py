"""``assay list capsules``: the evidence follows from contracts, properties and campaigns."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from assay.cli import capsules, summary
from assay.cli.command import Status
from assay.cli.main import main
from assay.impl.registry import Builtin
from assay.properties.journal import Journal
from assay.properties.results import Cell, CellKey, Result
from assay.spec.claims import CLAIMS

NUMPY = ("numpy.float32",)


def of(rows: list[dict[str, str]], op: str) -> dict[str, str]:
    return next(row for row in rows if row["op"] == op)


def test_each_op_has_a_row_with_what_covers_it(tmp_path: Path) -> None:
    rows = capsules.rows(NUMPY, tmp_path, long=True)
    assert {row["op"] for row in rows} == {"attention", "masked_softmax"}
    row = of(rows, "masked_softmax")
    assert (row["provider"], row["device"], row["reduction"]) == ("numpy", "cpu", "unspecified")
    assert row["derivative by"] == "own method"
    assert row["layout"] == "covered by claims hygiene.layout_independent: not run"
    assert "softmax.row_sum" in row["value"]
    assert "softmax.vjp_refines" in row["derivative"]
    assert of(capsules.rows(NUMPY, tmp_path, long=False), "masked_softmax")["layout"] == (
        "1 claim: not run"
    )


def test_the_newest_campaign_says_what_was_found(tmp_path: Path, sound: Result) -> None:
    key = CellKey("numpy.float32", "softmax.row_sum", "float32", op="masked_softmax")
    cells = (
        Cell(key, key.property, "held", examples=30, worst=0.25),
        Cell(replace(key, dtype="float64"), key.property, "held", examples=12),
        Cell(replace(key, dtype="float16"), key.property, "crashed"),
    )
    with Journal(tmp_path, create=True) as journal:
        journal.begin(sound, "x")
        for cell in cells:
            journal.add(sound.campaign, cell)
    row = of(capsules.rows(NUMPY, tmp_path, long=False), "masked_softmax")
    assert row["value"].endswith("claims: 2 held on 42 examples, worst 0.25, 1 failed")
    assert row["shape"].endswith("claims: not run")


def test_an_absent_backend_has_a_row_that_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    absent = Builtin("chip.fast", "nowhere:X", "a chip", ("no_such_chip",), "chip")
    monkeypatch.setattr("assay.impl.loading.BACKENDS", (absent,))
    monkeypatch.setattr("assay.impl.registry.BACKENDS", (absent,))
    (row,) = capsules.rows((), tmp_path, long=False)
    assert row["provider"] == (
        "absent: module no_such_chip is not installed (pip install 'assay[chip]')"
    )
    assert list(row) == list(capsules.rows((), tmp_path, long=True)[0])


def test_every_claim_but_those_of_conduct_speaks_of_one_contract() -> None:
    found = {claim.id: capsules.facet(claim.id) for claim in CLAIMS}
    assert {found[c] for c in found} == {*capsules.FACETS, ""}
    assert all(name.startswith("hygiene.") for name, facet in found.items() if not facet)


def test_the_command_prints_the_table_and_refuses_what_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["list", "capsules", "--directory", str(tmp_path), "--backend"]
    assert main([*line, "numpy.*"]) == Status.HELD
    assert "Nothing here is proved" in capsys.readouterr().out
    assert main([*line, "numpy.*", "--json"]) == Status.HELD
    assert {row["backend"] for row in json.loads(capsys.readouterr().out)} == {"numpy.float32"}
    assert main([*line, "nothing"]) == Status.USAGE
    assert "matches no backend" in capsys.readouterr().err
    assert main(["list", "ops", "--backend", "numpy.*"]) == Status.USAGE
    assert "for capsules only" in capsys.readouterr().err


def test_contracts_are_shown_whole_a_few_beside_one_another(
    sound: Result, capsys: pytest.CaptureFixture[str]
) -> None:
    from assay.impl.contract import Contract

    names = [f"b{i}" for i in range(6)]
    declared = dict(Contract("x", modes=("eval", "train"), requires=("torch==2.13.0",)).rows())
    many = replace(sound, contracts={name: {**declared, "name": name} for name in names})
    summary.show(many, Status.HELD, (), contracts=True)
    printed = capsys.readouterr().out
    assert printed.count("declared, not proved") == 2
    assert printed.count("torch==2.13.0") == 6
    assert printed.count("eval, train") == 6
    assert all(field in printed for field in declared if field != "name")
