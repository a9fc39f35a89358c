"""Nothing passes for a proof that is none: contradictions, false statements, timeouts, idle
twins.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import partial

import pytest
import z3

from assay.proofs.induction import by_induction
from assay.proofs.obligation import Body, Case, Obligation, Outcome, Premise, Query, Twin
from assay.proofs.scalars.reals import EXP, Real
from assay.proofs.scalars.stretches import Axis
from assay.proofs.settling import settle, unsettled
from assay.proofs.solving import decide
from assay.proofs.theorems.rows import concrete
from assay.proofs.theorems.softmax_reals import row_sum_of
from assay.spec.softmax import masked_softmax, sentinel_softmax

X, Y = z3.Reals("x y")


def queries(*items: Query) -> Body:
    return lambda: iter(items)


FALSE_TWIN = Twin("x is 0", queries(Query("x", X == 0)))


def obligation(body: Body, twin: Twin = FALSE_TWIN, **changes: object) -> Obligation:
    plain = Obligation(
        "softmax.row_sum/test", "softmax.row_sum", "x", "test", "proved", "z3", body, twin
    )
    return dataclasses.replace(plain, **changes)  # type: ignore[arg-type]


def test_a_true_statement_with_a_false_twin_is_proved() -> None:
    outcome = settle(obligation(queries(Query("square", X * X >= 0))))
    assert (outcome.status, outcome.twin.refuted, outcome.checks) == ("proved", True, 1)
    assert outcome.held


def test_a_false_statement_is_refuted_with_a_counterexample() -> None:
    outcome = settle(obligation(queries(Query("small", X < 3))))
    assert outcome.status == "refuted"
    assert outcome.detail.startswith("small: x=")
    assert not outcome.held


def test_a_wrong_obligation_about_the_spec_is_refuted() -> None:
    wrong = partial(row_sum_of, lambda s, a: sentinel_softmax(s, a, -30.0))
    assert settle(obligation(wrong)).status == "refuted"


def test_contradictory_premises_are_reported() -> None:
    premises = (Premise("x > 1", X > 1), Premise("x < 0", X < 0))
    outcome = settle(obligation(queries(Query("anything", Y == 7, premises))))
    assert outcome.status == "open"
    assert "the premises contradict each other" in outcome.detail


def test_a_witness_that_breaks_a_premise_is_reported() -> None:
    query = Query("bound", X * X > 1, (Premise("x > 1", X > 1),), {"x": 0})
    outcome = settle(obligation(queries(query)))
    assert outcome.status == "open"
    assert "bad witness: x > 1 fails on x=0" in outcome.detail


def test_a_twin_that_holds_makes_the_obligation_open() -> None:
    idle = Twin("nothing is changed", queries(Query("square", X * X >= 0)))
    outcome = settle(obligation(queries(Query("square", X * X >= 0)), idle))
    assert outcome.status == "open"
    assert "the mutated statement holds" in outcome.detail
    assert not outcome.twin.refuted


def test_a_twin_that_raises_is_not_refuted() -> None:
    def broken() -> Iterator[Query]:
        raise RuntimeError("no twin")
        yield

    outcome = settle(obligation(queries(Query("square", X * X >= 0)), Twin("broken", broken)))
    assert outcome.status == "open"
    assert "RuntimeError: no twin" in outcome.twin.counterexample


def test_a_body_that_raises_is_open() -> None:
    def broken() -> Iterator[Query]:
        yield Query("square", X * X >= 0)
        raise RuntimeError("no body")

    outcome = settle(obligation(broken))
    assert (outcome.status, outcome.detail) == ("open", "RuntimeError: no body")


def test_a_body_without_checks_is_open() -> None:
    assert settle(obligation(queries())).detail == "nothing was checked"


def test_a_solver_timeout_is_open() -> None:
    a, b, c = z3.Ints("a b c")
    cubes = z3.And(a > 2, b > 2, c > 2, a * a * a + b * b * b == c * c * c)
    outcome = settle(obligation(queries(Query("Fermat", z3.Not(cubes)))), timeout=0.3)
    assert outcome.status == "open"
    assert "Fermat" in outcome.detail


def test_a_slow_enumeration_is_open() -> None:
    def endless() -> Iterator[Case]:
        yield from (Case(str(i), True) for i in range(3))

    slow = obligation(endless, method="enumeration", budget=1e-9)
    outcome = settle(slow)
    assert outcome.status == "open"
    assert "timeout after 1 checks" in outcome.detail


def test_a_false_case_is_refuted_by_its_name() -> None:
    outcome = settle(obligation(lambda: iter([Case("n=1", True), Case("n=2", False)])))
    assert (outcome.status, outcome.detail, outcome.checks) == ("refuted", "n=2", 2)


def test_a_model_with_a_phantom_exponential_is_no_refutation() -> None:
    # True, but beyond the laws that the solver is given.
    outcome = settle(obligation(queries(Query("growth", EXP(X) > X))))
    assert outcome.status == "open"
    assert "evaluation does not confirm" in outcome.detail


def test_a_wrong_invariant_fails_at_the_step_or_the_base() -> None:
    axis = Axis("S", Real)
    total = axis.sum_of(axis.values("s"))
    steps, _ = by_induction("positive", axis, lambda m: total.at(m) >= 0)
    base, step = (decide(q, 5.0).verdict for q in steps)
    assert (base, step) == ("holds", "fails")
    steps, _ = by_induction("one", axis, lambda m: total.at(m) == 1)
    assert decide(steps[0], 5.0).verdict == "fails"


def test_assumptions_come_with_the_values_they_hold_on() -> None:
    query = Query("bound", X * X > 1, (Premise("x > 1", X > 1),), {"x": 2})
    (assumption,) = settle(obligation(queries(query))).assumptions
    assert (assumption.text, assumption.witness) == ("x > 1", "x=2")


def test_an_assumption_that_no_core_holds_is_said() -> None:
    idle, used = Premise("y > 5", Y > 5), Premise("x > 1", X > 1)
    query = Query("bound", X * X > 1, (idle, used), {"x": 2, "y": 6})
    outcome = settle(obligation(queries(query)))
    assert (outcome.status, outcome.unneeded) == ("proved", ("y > 5",))


def test_an_assumption_that_one_query_needs_is_needed() -> None:
    given = (Premise("x > 1", X > 1),)
    both = (Query("idle", Y * Y >= 0, given, {"x": 2}), Query("used", X * X > 1, given, {"x": 2}))
    assert settle(obligation(queries(*both))).unneeded == ()


def test_solver_steps_are_counted_and_repeat() -> None:
    counts = {settle(obligation(queries(Query("square", X * X >= 0)))).resources for _ in range(3)}
    assert len(counts) == 1
    assert 0 not in counts


def test_the_steps_of_a_derivation_are_kept() -> None:
    cases = [Case("n=1", True), Case("n=2", True, ("a = b", "b = c"))]
    outcome = settle(obligation(lambda: iter(cases), method="sympy"))
    assert outcome.derivation == (("a = b", "b = c"),)


def test_spec_functions_that_ran_are_recorded_with_their_hash() -> None:
    outcome = settle(obligation(partial(row_sum_of, masked_softmax)))
    (found,) = [f for f in outcome.spec if f.name == "softmax.masked_softmax"]
    assert found.file == "spec/softmax.py"
    assert len(found.hash) == 16
    assert found.line > 1


def test_an_outcome_survives_json() -> None:
    outcome = settle(obligation(partial(row_sum_of, masked_softmax)))
    assert Outcome.from_json(outcome.as_json()) == outcome
    stopped = unsettled(obligation(queries()), 1.0, "timeout")
    assert Outcome.from_json(stopped.as_json()).status == "open"


def test_an_outcome_with_a_missing_field_is_rejected() -> None:
    data = settle(obligation(queries(Query("square", X * X >= 0)))).as_json()
    del data["trust"]
    with pytest.raises(KeyError, match="trust"):
        Outcome.from_json(data)


def test_concrete_rows_have_distinct_names() -> None:
    scores, allowed = concrete(3)
    assert len({str(x.term) for x in (*scores, *allowed)}) == 6
