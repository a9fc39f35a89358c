"""Other solvers agree where they answer, and a disagreement is not hidden."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest
import z3

from assay.proofs import crossing
from assay.proofs.crossing import Contradiction, Missing, cross_check
from assay.proofs.discharge import discharge
from assay.proofs.obligation import Query
from assay.proofs.obligations import select
from assay.proofs.settling import settle

X = z3.Real("x")


def told(query: Query, seconds: float = 5.0) -> list[tuple[str, int, int, int]]:
    opinions = cross_check([query], seconds)
    return [(o.solver, o.agrees, o.unknown, o.unsupported) for o in opinions]


def test_a_true_goal_is_confirmed() -> None:
    pytest.importorskip("cvc5")
    assert told(Query("square", X * X >= 0)) == [("cvc5", 1, 0, 0)]


def test_a_goal_that_cvc5_refutes_is_a_contradiction() -> None:
    pytest.importorskip("cvc5")
    with pytest.raises(Contradiction, match=r"small: cvc5 .* has a model where z3 has a proof"):
        cross_check([Query("small", X < 3)], 5.0)


@pytest.mark.parametrize("sort", [z3.Float16(), z3.Float32(), z3.Float64()])
def test_floating_point_goals_go_to_bitwuzla(sort: z3.FPSortRef) -> None:
    pytest.importorskip("bitwuzla")
    y = z3.FP("y", sort)
    same = z3.fpAdd(z3.RNE(), y, y) == z3.fpMul(z3.RNE(), y, z3.FPVal(2.0, sort))
    assert told(Query("twice", same)) == [("bitwuzla", 1, 0, 0)]


def test_a_goal_that_bitwuzla_refutes_is_a_contradiction() -> None:
    pytest.importorskip("bitwuzla")
    y = z3.FP("y", z3.Float16())
    with pytest.raises(Contradiction, match="bitwuzla"):
        cross_check([Query("reflexive, but NaN", z3.fpEQ(y, y))], 5.0)


def test_a_format_that_bitwuzla_lacks_goes_to_cvc5() -> None:
    pytest.importorskip("cvc5")
    y = z3.FP("y", z3.FPSort(8, 8))
    assert told(Query("bfloat16", z3.fpNeg(z3.fpNeg(y)) == y)) == [("cvc5", 1, 0, 0)]


def test_what_a_solver_cannot_read_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("bitwuzla")
    found = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda n: None if n == "cvc5" else found(n))
    assert told(Query("square", X * X >= 0)) == [("bitwuzla", 0, 0, 1)]


def test_without_time_the_answer_is_unknown() -> None:
    pytest.importorskip("cvc5")
    assert told(Query("square", X * X >= 0), 0.0) == [("cvc5", 0, 1, 0)]


def test_a_contradiction_refutes_the_obligation(monkeypatch: pytest.MonkeyPatch) -> None:
    def contradicted(_queries: object, _seconds: float) -> Any:
        raise Contradiction("the row sum: cvc5 has a model where z3 has a proof")

    monkeypatch.setattr(crossing, "cross_check", contradicted)
    (obligation,) = select(("softmax.row_sum/reals",))
    outcome = settle(obligation, cross_check=True)
    assert (outcome.status, outcome.confirmed) == ("refuted", False)
    assert "where z3 has a proof" in outcome.detail


@pytest.mark.parametrize(
    "name",
    [
        "softmax.row_sum/reals",
        "softmax.blocked_independent/any-arithmetic",
        "softmax.grad_blocked_zero/float16",
    ],
)
def test_obligations_are_confirmed_by_two_solvers(name: str) -> None:
    pytest.importorskip("cvc5")
    pytest.importorskip("bitwuzla")
    (obligation,) = select((name,))
    outcome = settle(obligation, cross_check=True)
    assert outcome.held
    assert outcome.confirmed
    assert "agrees" in str(outcome.cross[0])


def test_without_another_solver_the_message_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def absent(_: str) -> Any:
        return None

    monkeypatch.setattr("importlib.util.find_spec", absent)
    with pytest.raises(Missing, match=r"pip install 'assay\[cvc5,bitwuzla\]'"):
        discharge(["softmax.row_sum/reals"], cross_check=True)
