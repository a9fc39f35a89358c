"""The second solver: the same questions to cvc5, exported as SMT-LIB.

Rounding is left out: floating-point goals are bit-blasted by both solvers alike and are slow here.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Sequence

import z3

from assay.proofs.laws import subterms
from assay.proofs.obligation import Query
from assay.proofs.solving import premises_of, without_functions


class Missing(RuntimeError):
    """cvc5 is not installed."""


class Contradiction(RuntimeError):
    """cvc5 has a model where z3 has a proof."""


def require() -> None:
    """Raise Missing without cvc5."""
    if importlib.util.find_spec("cvc5") is None:
        raise Missing("cvc5 is not installed; valid: pip install 'assay[cvc5]'")


def cross_check(queries: Sequence[Query], timeout: float) -> str:
    """One line on proved queries: which verdicts cvc5 gave (``unsat`` agrees), and its version.

    Raises Contradiction when cvc5 refutes one of them.
    """
    import cvc5

    deadline = time.perf_counter() + timeout
    counts: dict[str, int] = {"unsat": 0, "unknown": 0, "sat": 0, "skipped": 0}
    for query in queries:
        counts[_verdict(query, deadline - time.perf_counter())] += 1
    if counts["sat"]:
        raise Contradiction(f"cvc5 {cvc5.__version__} refutes {counts['sat']} of the queries")
    told = ", ".join(f"{n} {verdict}" for verdict, n in counts.items() if n)
    return f"cvc5 {cvc5.__version__}: {told or 'nothing to ask'}"


def _verdict(query: Query, left: float) -> str:
    terms = [p.term for p in premises_of(query)] + [z3.Not(query.goal)]
    floats = any(t.sort().kind() == z3.Z3_FLOATING_POINT_SORT for t in subterms(terms))
    if floats or left <= 0:
        return "skipped"
    # The algebra alone first: without function values it decides most questions at once.
    if _ask(without_functions(terms), min(left, 2.0)) == "unsat":
        return "unsat"
    return _ask(terms, min(left, 5.0))


def _ask(terms: list[z3.ExprRef], timeout: float) -> str:
    import cvc5

    solver = cvc5.Solver()
    solver.setOption("tlimit-per", str(max(1, int(1000 * timeout))))
    solver.setLogic("ALL")
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, _script(terms), "query")
    symbols, answer = parser.getSymbolManager(), ""
    while not (command := parser.nextCommand()).isNull():
        answer = command.invoke(solver, symbols).strip() or answer
    return answer if answer in ("sat", "unsat") else "unknown"


def _script(terms: list[z3.ExprRef]) -> str:
    """SMT-LIB text of the question, without z3's own header and with a check at its end."""
    solver = z3.Solver()
    solver.add(*terms)
    return solver.to_smt2()
