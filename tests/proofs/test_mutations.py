"""Mutations of the spec fit it, and the proofs alone notice them (a sample; all in benchmarks/)."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.proofs import sensitivity
from assay.proofs.fingerprint import ROOT
from assay.proofs.mutation import Mutation
from assay.proofs.mutations import MUTATIONS
from assay.proofs.obligations import OBLIGATIONS
from assay.proofs.sensitivity import applied, examine

COVERED = [m for m in MUTATIONS if m.claims and not m.why]
SAMPLE = COVERED[::12]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=str)
def test_it_fits_the_spec_and_still_is_python(mutation: Mutation) -> None:
    source = (ROOT / "spec" / mutation.file).read_text()
    compile(applied(source, mutation), mutation.file, "exec")
    assert mutation.old != mutation.new


def test_an_edit_that_fits_nowhere_is_refused() -> None:
    with pytest.raises(ValueError, match=r"old='nothing like it' occurs 0 times"):
        applied("x = 1", Mutation("masks.py", "nothing like it", "", ("softmax.row_sum",)))


def test_there_are_enough_and_what_is_not_noticed_has_a_reason() -> None:
    assert len(MUTATIONS) == len(set(MUTATIONS)) >= 25
    assert all(m.claims or m.why for m in MUTATIONS)
    proved = {o.claim for o in OBLIGATIONS}
    assert {claim for m in MUTATIONS for claim in m.claims} <= proved
    assert len(COVERED) >= 0.8 * sum(bool(m.claims) for m in MUTATIONS)


@pytest.mark.slow
@pytest.mark.parametrize("mutation", SAMPLE, ids=str)
def test_the_proofs_alone_notice(mutation: Mutation) -> None:
    by, said = examine(mutation, mutation.claims)
    assert by, mutation
    assert said.startswith("refuted: ")


@pytest.mark.slow
def test_what_notices_them_does_not_suspect_an_unchanged_copy() -> None:
    assert examine(None, sorted({claim for m in SAMPLE for claim in m.claims})) == ("", "")


def test_what_runs_is_the_copy_or_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sensitivity, "ROOT", tmp_path)
    with pytest.raises(RuntimeError, match="must be the copy"):
        examine(None)
