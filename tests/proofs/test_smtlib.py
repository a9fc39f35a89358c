"""Queries as text: standard, the same every time, and read back to the same verdict."""

from __future__ import annotations

import pytest
import z3

from assay.proofs.discharge import discharge
from assay.proofs.obligation import Premise, Query
from assay.proofs.obligations import OBLIGATIONS
from assay.proofs.scalars.reals import EXP
from assay.proofs.smtlib import asked, smtlib
from assay.proofs.solving import decide

X, Y = z3.Reals("x y")
SOLVED = [o.id for o in OBLIGATIONS if o.method == "z3"]


def verdict(text: str) -> str:
    """What z3's own front end makes of a text, comments and all."""
    solver = z3.Solver(ctx=z3.Context())
    solver.add(z3.parse_smt2_string(text, ctx=solver.ctx))
    return str(solver.check())


@pytest.mark.parametrize(("goal", "answer"), [(X * X >= 0, "unsat"), (X < 3, "sat")])
def test_the_text_is_read_back_to_the_same_verdict(goal: z3.BoolRef, answer: str) -> None:
    assert verdict(decide(Query("x", goal), 5.0).script.text) == answer


def test_premises_are_named_and_laws_are_written_out() -> None:
    query = Query("larger", EXP(X + Y) > 0, (Premise("x > 1", X > 1),))
    found = decide(query, 5.0).script
    assert "; larger" in found.text
    assert "; assumption: x > 1" in found.text
    assert "; law: " in found.text
    assert verdict(found.text) == "unsat"


def test_conjunctions_and_sums_of_one_part_are_left_out() -> None:
    odd = z3.And(z3.Or(z3.Sum(X) > 0))
    assert odd.num_args() == 1
    assert "(> x 0.0)" in smtlib([odd])
    assert "(and" not in smtlib([odd])
    assert asked(smtlib([odd]), 5.0)[0] == z3.sat


def test_equal_queries_are_equal_texts() -> None:
    def build() -> str:
        square = X * X + Y
        return smtlib([z3.And(square > 0, z3.Or(square > 1, square < 7))])

    first = build()
    [z3.Real(f"filler{i}") + X for i in range(1000)]
    assert build() == first


@pytest.mark.slow
@pytest.mark.parametrize("name", SOLVED)
def test_every_query_of_the_catalogue_is_read_back(name: str) -> None:
    (outcome,) = discharge([name])
    assert outcome.held, outcome.detail
    if not outcome.scripts:
        pytest.skip("equal terms of an unknown arithmetic are compared: no solver was asked")
    assert {verdict(s.text) for s in outcome.scripts} == {"unsat"}
