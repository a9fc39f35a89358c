"""Ask z3 whether premises entail a goal, and re-evaluate a counterexample on concrete numbers."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, Literal

import ml_dtypes
import numpy as np
import z3

from assay.proofs.evaluate import Evaluation, Read, value
from assay.proofs.laws import subterms
from assay.proofs.obligation import Premise, Query, Script
from assay.proofs.scalars.ieee import numbers_of
from assay.proofs.smtlib import (
    asked,
    function_values,
    has_floats,
    negated,
    premises_of,
    script,
    smtlib,
    steps,
)

VERSION = z3.get_version_string()
Verdict = Literal["holds", "fails", "unknown"]


@dataclass(frozen=True)
class Answer:
    """A solver's verdict on a query.

    premises        all that it was given, laws included
    script          the text that it answered
    counterexample  values on which the premises hold and the goal does not, evaluated without the
                    solver; empty when none was found
    reason          why it is unknown
    needed          texts of the assumptions and laws in an unsatisfiable core
    resources       steps that z3 counted
    """

    verdict: Verdict
    premises: tuple[Premise, ...]
    script: Script
    counterexample: str = ""
    reason: str = ""
    needed: frozenset[str] = frozenset()
    resources: int = 0


ALGEBRA = "a name stands for every function value: what holds of any value holds of these"


def decide(query: Query, timeout: float) -> Answer:
    """The verdict within ``timeout`` seconds."""
    premises = premises_of(query)
    terms, spent = negated(query, premises), 0
    if function_values(terms):
        # Names in place of function values make a stronger statement that is pure algebra: mostly
        # it holds at once, and if it does not, nothing is learnt.
        algebra, timeout = without_functions(terms), timeout / 2
        text = smtlib(algebra)
        result, solver = asked(text, timeout)
        spent = steps(solver)
        if result == z3.unsat:
            return _proved(premises, algebra, script(query, premises, text, ALGEBRA), spent)
    text = smtlib(terms)
    result, solver = asked(text, timeout)
    spent += steps(solver)
    said = script(query, premises, text)
    if result == z3.unsat:
        return _proved(premises, terms, said, spent)
    if result == z3.sat:
        found = confirm(query, solver.model())
        return Answer("fails", premises, said, found, resources=spent)
    reason = solver.reason_unknown()
    return Answer("unknown", premises, said, confirm(query, None), reason, resources=spent)


def _proved(
    premises: tuple[Premise, ...], form: list[z3.ExprRef], said: Script, spent: int
) -> Answer:
    return Answer("holds", premises, said, needed=_needed(form, premises), resources=spent)


CORE_SECONDS = 1.0
"""How long to look for a core: when none is found, every assumption counts as needed."""


def _needed(form: list[z3.ExprRef], premises: tuple[Premise, ...]) -> frozenset[str]:
    """Texts of assumptions and laws that an unsatisfiable core of the proved form holds; all of
    them where looking for one is slow: with floating-point terms.
    """
    texts = [p.text if p.kind in ("assumption", "law") else "" for p in premises]
    names = {text: z3.Bool(f"premise {i}") for i, text in enumerate(dict.fromkeys(texts)) if text}
    if not names or has_floats(form):
        return frozenset(names)
    solver = z3.Solver()
    solver.set("timeout", int(1000 * CORE_SECONDS))
    solver.set("core.minimize", True)
    for text, term in itertools.zip_longest(texts, form, fillvalue=""):
        solver.add(z3.Implies(names[text], term) if text else term)
    if solver.check(*names.values()) != z3.unsat:
        return frozenset(names)
    core = {literal.decl().name() for literal in solver.unsat_core()}
    return frozenset(text for text, name in names.items() if name.decl().name() in core)


def without_functions(terms: list[z3.ExprRef]) -> list[z3.ExprRef]:
    """The terms with every value of a free function, such as exp(x), replaced by a free name."""
    # Outer values first: what stands inside them goes with them.
    values = sorted(function_values(terms), key=lambda t: -len(t.sexpr()))
    names = [(t, z3.Const(f"value {i}", t.sort())) for i, t in enumerate(values)]
    return [z3.substitute(t, *names) for t in terms]


def contradictory(premises: tuple[Premise, ...], timeout: float) -> bool:
    """True when the solver finds that the premises exclude each other."""
    return asked(smtlib([p.term for p in premises]), timeout)[0] == z3.unsat


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
    read: dict[int, Read] = {}
    for values in itertools.chain(candidates, _grid(query, tries)):
        evaluation = Evaluation(values, query.folds, read)
        if all(evaluation(p.term) for p in query.premises) and not evaluation(query.goal):
            return evaluation.text() or "nothing in it is free"
    return ""


def _from_model(model: z3.ModelRef) -> dict[str, Any]:
    here = z3.main_ctx()
    constants = {d.name(): value(model[d].translate(here)) for d in model.decls() if not d.arity()}
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
    if sort.kind() == z3.Z3_BV_SORT:
        return int(draw.integers(1 << sort.size()))
    if sort.kind() == z3.Z3_FLOATING_POINT_SORT:
        kind = numbers_of(sort)
        special = (0.0, 1.0, -1.0, 2.0, np.inf, np.nan, float(ml_dtypes.finfo(kind).max))
        return kind(draw.choice(special))
    return float(draw.integers(-8, 9)) / 4
