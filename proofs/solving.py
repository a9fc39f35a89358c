"""Ask z3 whether premises entail a goal, and re-evaluate a counterexample on concrete numbers."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import z3

from assay.proofs.evaluate import Evaluation, value
from assay.proofs.laws import exponential_laws, subterms
from assay.proofs.obligation import Premise, Query

VERSION = z3.get_version_string()
Verdict = Literal["holds", "fails", "unknown"]


@dataclass(frozen=True)
class Answer:
    """A solver's verdict on a query.

    premises        all that it was given, laws included
    counterexample  values on which the premises hold and the goal does not, evaluated without the
                    solver; empty when none was found
    reason          why it is unknown
    """

    verdict: Verdict
    premises: tuple[Premise, ...]
    counterexample: str = ""
    reason: str = ""


def premises_of(query: Query) -> tuple[Premise, ...]:
    """The premises and the laws that their exponentials obey."""
    terms = [p.term for p in query.premises] + [query.goal]
    return (*query.premises, *exponential_laws(terms))


def decide(query: Query, timeout: float) -> Answer:
    """The verdict within ``timeout`` seconds."""
    premises = premises_of(query)
    terms = [p.term for p in premises] + [z3.Not(query.goal)]
    # Names in place of function values make a stronger statement that is pure algebra: mostly it
    # holds at once, and if it does not, nothing is learnt.
    if _check(without_functions(terms), min(timeout, 3.0))[0] == z3.unsat:
        return Answer("holds", premises)
    result, solver = _check(terms, timeout)
    if result == z3.unsat:
        return Answer("holds", premises)
    if result == z3.sat:
        return Answer("fails", premises, confirm(query, solver.model()))
    return Answer("unknown", premises, confirm(query, None), solver.reason_unknown())


def _check(terms: list[z3.ExprRef], timeout: float) -> tuple[z3.CheckSatResult, z3.Solver]:
    solver = z3.Solver()
    solver.set("timeout", max(1, int(1000 * timeout)))
    solver.add(*terms)
    return solver.check(), solver


def without_functions(terms: list[z3.ExprRef]) -> list[z3.ExprRef]:
    """The terms with every value of a free function, such as exp(x), replaced by a free name."""
    values = [
        t for t in subterms(terms) if t.num_args() > 0 and t.decl().kind() == z3.Z3_OP_UNINTERPRETED
    ]
    # Outer values first: what stands inside them goes with them.
    values.sort(key=lambda t: -len(t.sexpr()))
    names = [(t, z3.Const(f"value {i}", t.sort())) for i, t in enumerate(values)]
    return [z3.substitute(t, *names) for t in terms]


def contradictory(premises: tuple[Premise, ...], timeout: float) -> bool:
    """True when the solver finds that the premises exclude each other."""
    return _check([p.term for p in premises], timeout)[0] == z3.unsat


def witness_text(query: Query, premises: tuple[Premise, ...]) -> tuple[bool, str]:
    """Whether every premise holds on the query's witness, and the witness or the premise that
    fails.
    """
    evaluation = Evaluation(query.witness, query.folds)
    for premise in premises:
        if not evaluation(premise.term):
            return False, f"{premise.text} fails on {evaluation.text()}"
    return True, evaluation.text()


def confirm(query: Query, model: z3.ModelRef | None, tries: int = 200) -> str:
    """A counterexample that survives evaluation with the true exp: the model's, or one from a
    grid.
    """
    candidates = [_from_model(model)] if model is not None else []
    for values in itertools.chain(candidates, _grid(query, tries)):
        evaluation = Evaluation(values, query.folds)
        if all(evaluation(p.term) for p in query.premises) and not evaluation(query.goal):
            return evaluation.text()
    return ""


def _from_model(model: z3.ModelRef) -> dict[str, Any]:
    constants = {d.name(): value(model[d]) for d in model.decls() if d.arity() == 0}
    return {name: x for name, x in constants.items() if x is not None}


def _grid(query: Query, tries: int) -> Any:
    """Assignments of small values to the free names, drawn with a fixed seed."""
    names = {
        t.decl().name(): t.sort()
        for t in subterms([p.term for p in query.premises] + [query.goal])
        if z3.is_const(t) and t.decl().kind() == z3.Z3_OP_UNINTERPRETED
    }
    names = {n: s for n, s in sorted(names.items()) if not n.startswith("#")}
    draw = np.random.default_rng(0)
    for _ in range(tries):
        yield {name: _drawn(draw, sort) for name, sort in names.items()}


def _drawn(draw: np.random.Generator, sort: z3.SortRef) -> Any:
    if sort.kind() == z3.Z3_BOOL_SORT:
        return bool(draw.integers(2))
    if sort.kind() == z3.Z3_INT_SORT:
        return int(draw.integers(5))
    if sort.kind() == z3.Z3_FLOATING_POINT_SORT:
        kind = np.float32 if sort == z3.Float32() else np.float16
        special = (0.0, 1.0, -1.0, 2.0, np.inf, np.nan, float(np.finfo(kind).max))
        return kind(draw.choice(special))
    return float(draw.integers(-8, 9)) / 4
