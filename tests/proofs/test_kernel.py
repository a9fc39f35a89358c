"""The kernel accepts what is proved, rejects what is changed, and is missed without a failure."""

from __future__ import annotations

import dataclasses
import re
import shutil
import subprocess
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from assay.cli.command import Status
from assay.cli.prove import status
from assay.proofs import coqc, kernel
from assay.proofs.discharge import discharge
from assay.proofs.fingerprint import sources
from assay.proofs.kernel import (
    Agreement,
    Disagreement,
    Missing,
    Mutation,
    Question,
    Rejected,
)
from assay.proofs.obligation import Obligation, Outcome
from assay.proofs.obligations import OBLIGATIONS, home, select
from assay.proofs.settling import settle
from assay.proofs.theorems.kernel_checked import REALS, accepted

MODULES = sorted(path.stem for path in kernel.SOURCES.glob("*.v"))
CHECKED = [o for o in OBLIGATIONS if o.method == "coq"]

needs_coqc = pytest.mark.skipif(not coqc.available(), reason=coqc.absent())


@pytest.fixture
def no_coqc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))


def refute(module: str, mutation: Mutation) -> str:
    return kernel.refutation(Question(module, mutation=mutation))


def band(**changes: object) -> Obligation:
    (obligation,) = select(["spectral.band/kernel"])
    return dataclasses.replace(obligation, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("module", MODULES)
def test_nothing_is_taken_on_trust(module: str) -> None:
    words = r"\b(Admitted|admit|Axiom|Parameter|Conjecture|Abort|give_up|bypass_check)\b"
    assert not re.search(words, kernel.source(module))


@pytest.mark.parametrize("module", MODULES)
def test_every_theorem_belongs_to_an_obligation(module: str) -> None:
    texts = [o.trust[0] for o in CHECKED if o.trust[0].startswith(f"proofs/coq/{module}.v")]
    assert set(kernel.theorems(module)) <= set(re.findall(r"\w+", " ".join(texts)))


def test_without_proofs_definitions_remain() -> None:
    text = kernel.without_proofs(kernel.source("Bands"))
    assert "Definition band" in text
    assert "Theorem" not in text
    assert "Qed" not in text


def test_modules_come_after_those_that_they_import() -> None:
    assert kernel.needed(kernel.source("Attention")) == ("Softmax", "Online")


def test_a_value_without_a_literal_is_refused() -> None:
    assert kernel.literal([(True, Fraction(1, 2)), (False, Fraction(-1))]) == (
        "[(true, (1 # 2)%Q); (false, ((-1) # 1)%Q)]"
    )
    with pytest.raises(TypeError, match=r"value=0\.5 has no literal; valid: bool"):
        kernel.literal(0.5)


@needs_coqc
def test_axioms_are_read_for_each_theorem() -> None:
    assert kernel.assumptions(Question("Bands", ("band_count", "band_covers"))) == {
        "band_count": (),
        "band_covers": (),
    }
    found = kernel.assumptions(Question("Softmax", ("row_sum", "blocked_independent")))
    assert found == {"row_sum": tuple(sorted(REALS)), "blocked_independent": ()}


@needs_coqc
def test_a_value_that_the_model_does_not_have_is_named() -> None:
    checks = (Agreement("right", "band 5 1", [0, 4]), Agreement("wrong", "band 5 1", [0, 3]))
    with pytest.raises(Disagreement, match="disagree: wrong: Unable to unify"):
        kernel.assumptions(Question("Bands", ("band_count",), checks))


@needs_coqc
def test_a_term_that_means_nothing_is_no_disagreement() -> None:
    with pytest.raises(Rejected, match="nonsense was not found"):
        kernel.assumptions(
            Question("Bands", ("band_count",), (Agreement("none", "nonsense 5", [0]),))
        )


COUNT = ("length (band 5 1)", "Nat.min (2 * 1) 5")


@needs_coqc
def test_a_mutant_is_refuted_by_an_instance_and_rejected() -> None:
    found = refute("Bands", Mutation("(n - m <=? k).", "(n - m <? k).", *COUNT))
    assert found.startswith("length (band 5 1) is not Nat.min (2 * 1) 5, and coqc rejects")


@needs_coqc
def test_a_change_that_means_the_same_is_not_refuted() -> None:
    same = Mutation("Nat.min (2 * m) n.", "Nat.min (m * 2) n.", *COUNT)
    assert refute("Bands", same) == ""


@needs_coqc
@pytest.mark.parametrize("module", MODULES)
def test_an_unchanged_module_is_accepted_where_a_mutant_is_not(module: str) -> None:
    first = kernel.source(module).splitlines()[0]
    assert refute(module, Mutation(first, first, "0", "1")) == ""


@needs_coqc
def test_a_definition_that_is_rejected_is_no_refutation() -> None:
    with pytest.raises(Rejected, match="nothing was not found"):
        refute("Bands", Mutation("(n - m <=? k).", "nothing.", *COUNT))


@needs_coqc
def test_a_broken_text_is_no_refutation() -> None:
    with pytest.raises(Rejected, match="Syntax error"):
        refute("Bands", Mutation("(n - m <=? k).", "(n - m <=? k", *COUNT))


@needs_coqc
def test_a_broken_proof_of_a_true_statement_is_no_refutation() -> None:
    broken = Mutation("rewrite all_kept; [lia |].", "rewrite none_kept; [lia |].", *COUNT)
    assert refute("Bands", broken) == ""


def test_a_text_that_is_gone_must_be_declared_anew() -> None:
    with pytest.raises(ValueError, match=r"occurs 0 times in Bands\.v; valid: once"):
        refute("Bands", Mutation("(n - m <=? j).", "", *COUNT))


@needs_coqc
@pytest.mark.parametrize("allowed", [frozenset(), frozenset(list(REALS)[:2])])
def test_an_axiom_that_is_not_named_leaves_it_open(allowed: frozenset[str]) -> None:
    (obligation,) = select(["softmax.row_sum/kernel"])
    body = partial(accepted, "Softmax", ("row_sum",), allowed, list)
    outcome = settle(dataclasses.replace(obligation, body=body))
    assert outcome.status == "open"
    assert "axioms that are not named" in outcome.detail


@needs_coqc
def test_a_theorem_that_is_not_there_leaves_it_open() -> None:
    body = partial(accepted, "Softmax", ("row_sums",), frozenset(REALS), list)
    outcome = settle(band(body=body))
    assert outcome.status == "open"
    assert "theorems=['row_sums'] are not in Softmax.v" in outcome.detail


@needs_coqc
def test_axioms_of_a_module_are_those_of_its_theorems() -> None:
    assert kernel.axioms("Bands") == ()
    alone = kernel.assumptions(Question("Nonexpansive", kernel.theorems("Nonexpansive")))
    assert kernel.axioms("Nonexpansive") == tuple(sorted(set().union(*alone.values())))
    assert len(kernel.axioms("Nonexpansive")) == 2


@needs_coqc
def test_a_spec_that_moved_away_from_the_model_is_refuted() -> None:
    wrong = [Agreement("bands of 5", "band 5 1", [0, 1])]
    body = partial(accepted, "Bands", ("band_count",), frozenset(), lambda: wrong)
    outcome = settle(band(body=body))
    assert outcome.status == "refuted"
    assert "the model and the spec disagree: bands of 5" in outcome.detail


@needs_coqc
def test_sources_stay_as_they_are() -> None:
    before = sorted(kernel.SOURCES.iterdir())
    (outcome,) = discharge(["spectral.band/kernel"], timeout=60.0)
    assert (outcome.status, outcome.solver, outcome.twin.refuted) == ("kernel", "coq", True)
    assert outcome.version == coqc.version()
    assert {f.name for f in outcome.spec} >= {"spectral.bands.band"}
    assert sorted(kernel.SOURCES.iterdir()) == before


@pytest.mark.usefixtures("no_coqc")
def test_without_coqc_an_obligation_is_unavailable_and_says_how_to_run_it() -> None:
    outcome = settle(band())
    assert outcome.status == "unavailable"
    assert outcome.detail == "not run: coqc is not found; to run it: apt-get install coq"
    assert not outcome.held
    assert not outcome.failed
    assert Outcome.from_json(outcome.as_json()) == outcome


@pytest.mark.usefixtures("no_coqc")
def test_without_coqc_nothing_fails_and_nothing_is_answered() -> None:
    absent = settle(band())
    proved = dataclasses.replace(absent, status="proved")
    assert status([proved, absent]) == Status.HELD
    assert status([absent]) == Status.UNANSWERED
    with pytest.raises(Missing, match="coqc is not found"):
        kernel.assumptions(Question("Bands", ("band_count",)))


def test_the_texts_of_theorems_are_part_of_what_an_outcome_rests_on() -> None:
    files = {path.name for path in sources(home("spectral.band/kernel"))}
    assert {"Bands.v", "kernel.py"} <= files
    assert "Bands.v" not in {path.name for path in sources(home("softmax.row_sum/reals"))}


def test_coqc_is_found_on_the_path() -> None:
    assert coqc.available() == (shutil.which("coqc") is not None)


@needs_coqc
def test_one_run_of_coqc_answers_for_the_statement_and_its_twin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernel.assumptions(Question("Bands", ("band_count",)))  # the module itself is compiled by now
    runs: list[Any] = []
    run = subprocess.run

    def counted(*arguments: Any, **options: Any) -> Any:
        runs.append(arguments)
        return run(*arguments, **options)

    monkeypatch.setattr(subprocess, "run", counted)
    kernel._answer.cache_clear()
    outcome = settle(band())
    assert outcome.status == "kernel"
    assert outcome.twin.refuted
    assert len(runs) == 1


@needs_coqc
def test_a_statement_that_is_not_accepted_says_nothing_of_its_twin() -> None:
    wrong = (Agreement("wrong", "band 5 1", [0, 3]),)
    mutation = Mutation("(n - m <=? k).", "(n - m <? k).", *COUNT)
    question = Question("Bands", ("band_count",), wrong, mutation)
    with pytest.raises(Disagreement):
        kernel.assumptions(question)
    with pytest.raises(Rejected):
        kernel.refutation(question)
