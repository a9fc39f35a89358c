"""Queries as SMT-LIB 2 text: what z3 is asked, what other solvers read, what is kept for people."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import z3

from assay.proofs.laws import exponential_laws, subterms
from assay.proofs.obligation import Premise, Query, Script


def premises_of(query: Query) -> tuple[Premise, ...]:
    """The premises and the laws that their exponentials obey."""
    terms = [p.term for p in query.premises] + [query.goal]
    return (*query.premises, *exponential_laws(terms))


def negated(query: Query, premises: Sequence[Premise]) -> list[z3.ExprRef]:
    """The premises and the goal's negation: no model satisfies them when the query holds."""
    return [*(p.term for p in premises), z3.Not(query.goal)]


def has_floats(terms: Sequence[z3.ExprRef]) -> bool:
    """Whether a floating-point number occurs."""
    return any(t.sort().kind() == z3.Z3_FLOATING_POINT_SORT for t in subterms(terms))


def function_values(terms: Sequence[z3.ExprRef]) -> list[z3.ExprRef]:
    """The values of free functions, such as exp(x), that occur."""
    return [
        t for t in subterms(terms) if t.num_args() > 0 and t.decl().kind() == z3.Z3_OP_UNINTERPRETED
    ]


def smtlib(terms: Sequence[z3.ExprRef]) -> str:
    """The question whether all terms can hold, in SMT-LIB 2.6.

    >>> smtlib([z3.Int("n") > 0]).splitlines()[-1]
    '(check-sat)'
    """
    solver = z3.Solver()
    solver.add(*(_standard(term) for term in terms))
    lines = [x for x in solver.to_smt2().splitlines() if not x.startswith((";", "(set-info"))]
    return _renamed("\n".join(["(set-logic ALL)", *lines]) + "\n")


CHAINS = (z3.Z3_OP_AND, z3.Z3_OP_OR, z3.Z3_OP_ADD, z3.Z3_OP_MUL)


def _standard(term: z3.ExprRef) -> z3.ExprRef:
    """The same without conjunctions and sums of one part, which z3 alone can read."""
    while single := [
        (t, t.arg(0)) for t in subterms([term]) if t.num_args() == 1 and t.decl().kind() in CHAINS
    ]:
        term = z3.substitute(term, *single)
    return term


def _renamed(text: str) -> str:
    """z3 names what it binds after its memory; numbered by appearance, equal questions are equal
    texts.

    >>> _renamed("(let ((?x71 a) ($x9 b)) (f ?x71))")
    '(let ((?x0 a) ($x1 b)) (f ?x0))'
    """
    places: dict[str, int] = {}

    def name(found: re.Match[str]) -> str:
        number = places.setdefault(found[0], len(places))
        return f"{found[0][0]}x{number}"

    return re.sub(r"[?$]x\d+", name, text)


def script(query: Query, premises: Sequence[Premise], body: str, note: str = "") -> Script:
    """A query's text with its name and its premises in comments."""
    said = [query.name, "unsat: the premises entail the goal", note]
    said += [f"{p.kind}: {p.text}" for p in premises]
    lines = [f"; {' '.join(line.split())}\n" for line in dict.fromkeys(said) if line]
    text = "".join(lines) + body
    return Script(query.name, hashlib.sha256(text.encode()).hexdigest()[:16], text)


GATES = ("simplify", "fpa2bv", "simplify", "bit-blast", "aig", "sat")


def asked(text: str, timeout: float) -> tuple[z3.CheckSatResult, z3.Solver]:
    """z3's answer to a text, in a context of its own: nothing that came before can change it.

    Floating-point numbers without functions become a graph of gates, simplified as such before a
    SAT solver sees it. z3 by itself leaves that out where a text has floats, and takes up to three
    times as long.
    """
    solver = z3.Solver(ctx=z3.Context())
    solver.from_string(text)
    terms = solver.assertions()
    if has_floats(terms) and not function_values(terms):
        solver = z3.Then(*GATES, ctx=solver.ctx).solver()
        solver.add(terms)
    solver.set("timeout", max(1, int(1000 * timeout)))
    return solver.check(), solver


def steps(solver: z3.Solver) -> int:
    """z3's own count of the steps in this solver's context, which no clock disturbs."""
    statistics = solver.statistics()
    return int(statistics.get_key_value("rlimit count"))
