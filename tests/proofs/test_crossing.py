"""The second solver agrees where it answers, and a disagreement is not hidden."""

from __future__ import annotations

from typing import Any

import pytest
import z3

from assay.proofs.crossing import Contradiction, Missing, cross_check
from assay.proofs.discharge import discharge
from assay.proofs.obligation import Query
from assay.proofs.obligations import select
from assay.proofs.settling import settle

X = z3.Real("x")


def test_a_true_goal_is_confirmed() -> None:
    pytest.importorskip("cvc5")
    assert cross_check([Query("square", X * X >= 0)], 5.0).endswith(": 1 unsat")


def test_a_goal_that_cvc5_refutes_is_a_contradiction() -> None:
    pytest.importorskip("cvc5")
    with pytest.raises(Contradiction, match="refutes 1 of the queries"):
        cross_check([Query("small", X < 3)], 5.0)


def test_floating_point_goals_are_skipped() -> None:
    pytest.importorskip("cvc5")
    y = z3.FP("y", z3.Float16())
    assert cross_check([Query("same", y == y)], 5.0).endswith(": 1 skipped")


@pytest.mark.parametrize(
    "name", ["softmax.row_sum/reals", "softmax.blocked_independent/any-arithmetic"]
)
def test_obligations_are_confirmed_by_both_solvers(name: str) -> None:
    pytest.importorskip("cvc5")
    (obligation,) = select((name,))
    outcome = settle(obligation, cross_check=True)
    assert outcome.status == "proved"
    assert outcome.cross is not None
    assert "unsat" in outcome.cross
    assert "unknown" not in outcome.cross


def test_without_cvc5_the_message_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(_: str) -> Any:
        return None

    monkeypatch.setattr("importlib.util.find_spec", absent)
    with pytest.raises(Missing, match=r"pip install 'assay\[cvc5\]'"):
        discharge(["softmax.row_sum/reals"], cross_check=True)
