"""Paths through code on symbolic integers, and minimal contradictions."""

from __future__ import annotations

import itertools

import pytest
import z3

from assay.proofs.branching import Whole, paths
from assay.proofs.cores import minimal_cores


def branches(a: int, b: int) -> str:
    if a > 0 and b % a == 0:
        return "divides"
    return "far" if abs(a - b) >= 3 or 2 * a + 1 == b else "near"


def test_each_path_ends_where_the_code_does_on_the_numbers_that_take_it() -> None:
    a, b = z3.Ints("a b")
    found = list(paths(lambda: branches(Whole("a"), Whole("b"))))
    for x, y in itertools.product(range(-4, 5), repeat=2):
        taken = [
            r for c, r in found if z3.is_true(z3.simplify(z3.substitute(c, *held(a, b, x, y))))
        ]
        assert taken == [branches(x, y)]


def held(a: z3.ArithRef, b: z3.ArithRef, x: int, y: int) -> list[tuple[z3.ArithRef, z3.ArithRef]]:
    return [(a, z3.IntVal(x)), (b, z3.IntVal(y))]


def test_impossible_paths_are_not_taken() -> None:
    x = Whole("x")
    results = [r for _, r in paths(lambda: (x > 3, x > 2))]
    assert sorted(results) == [(False, False), (False, True), (True, True)]


def test_a_symbolic_integer_prints_as_its_term() -> None:
    x = Whole("x")
    assert isinstance(x, int)
    assert f"{x} {x!r} {(5 - x) // 2!r} {7 // x} {9 % x} {3 * x + 1!r}" == (
        "x x (5 - x)/2 7/x 9%x x*3 + 1"
    )


def test_truth_and_equality_of_symbolic_integers_branch() -> None:
    x = Whole("x")
    found = [r for _, r in paths(lambda: (bool(x), x == 2, x != 5, x < 9, x <= -1))]
    some = {(n != 0, n == 2, n != 5, n < 9, n <= -1) for n in range(-3, 12)}
    assert len(found) == len(some)
    assert set(found) == some


def test_every_minimal_contradiction_is_found_once() -> None:
    a, b, c = z3.Bools("a b c")
    facts = {"a": a, "b": b, "not both": z3.Not(z3.And(a, b)), "c": c, "not c": z3.Not(c)}
    found = list(minimal_cores(facts))
    assert len(found) == 2
    assert set(found) == {frozenset({"a", "b", "not both"}), frozenset({"c", "not c"})}
    assert list(minimal_cores({"a": a})) == []


def test_facts_that_the_solver_cannot_decide_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    real = z3.Solver.check
    monkeypatch.setattr(
        z3.Solver, "check", lambda self, *picked: z3.unknown if picked else real(self)
    )
    with pytest.raises(ValueError, match="could not be decided"):
        list(minimal_cores({"a": z3.Bool("a")}))
