"""Other solvers, asked the same questions as SMT-LIB text: bitwuzla for floating-point numbers,
cvc5 for all else, and for formats that bitwuzla lacks.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import z3

from assay.proofs.laws import subterms
from assay.proofs.obligation import Opinion, Query
from assay.proofs.smtlib import has_floats, negated, premises_of, smtlib
from assay.proofs.solving import without_functions

Verdict = Literal["unsat", "sat", "unknown", "unsupported"]
_COUNTED: tuple[Verdict, ...] = ("unsat", "unknown", "unsupported")
PER_QUERY = 10.0
"""Seconds for one query; its algebra alone, without function values, gets a fifth."""

# Exponent and significand bits of the formats that bitwuzla knows by name: 16, 32, 64, 128.
FORMATS = {(5, 11), (8, 24), (11, 53), (15, 113)}


class Missing(RuntimeError):
    """No other solver is installed."""


class Contradiction(RuntimeError):
    """Another solver has a model where z3 has a proof."""


@dataclass
class _Solver:
    """One of them: its version, and how it answers a text within so many seconds."""

    name: str
    version: str
    ask: Callable[[str, float], Verdict]


def require() -> None:
    """Raise Missing without another solver."""
    if not any(importlib.util.find_spec(name) for name in ("cvc5", "bitwuzla")):
        raise Missing(
            "neither cvc5 nor bitwuzla is installed; valid: pip install 'assay[cvc5,bitwuzla]'"
        )


def cross_check(queries: Sequence[Query], timeout: float) -> tuple[Opinion, ...]:
    """What each other solver says of queries that z3 has proved.

    Every query is counted once: at the solver that agrees, else at the last one asked. Raises
    Contradiction when one of them refutes a query.
    """
    deadline = time.perf_counter() + timeout
    solvers = {s.name: s for s in _installed()}
    counts = {name: dict.fromkeys(_COUNTED, 0) for name in solvers}
    seconds = dict.fromkeys(solvers, 0.0)
    for query in queries:
        terms = negated(query, premises_of(query))
        verdict: Verdict = "unsupported"
        suited = [n for n in _suited(terms) if n in solvers] or [*solvers][:1]
        name = suited[0]
        for name in suited:
            began = time.perf_counter()
            verdict = _verdict(solvers[name], terms, deadline - began)
            seconds[name] += time.perf_counter() - began
            if verdict == "sat":
                s = solvers[name]
                raise Contradiction(
                    f"{query.name}: {s.name} {s.version} has a model where z3 has a proof"
                )
            if verdict == "unsat":
                break
        counts[name][verdict] += 1
    return tuple(
        _opinion(s, counts[s.name], seconds[s.name])
        for s in solvers.values()
        if any(counts[s.name].values())
    )


def _opinion(solver: _Solver, counts: dict[Verdict, int], seconds: float) -> Opinion:
    agrees, unknown, unsupported = (counts[v] for v in _COUNTED)
    return Opinion(solver.name, solver.version, agrees, unknown, unsupported, round(seconds, 3))


def _suited(terms: Sequence[z3.ExprRef]) -> tuple[str, ...]:
    """Solvers that can read the question, the quickest first."""
    if not has_floats(terms):
        return ("cvc5",)
    sorts = [t.sort() for t in subterms(terms)]
    formats = {(s.ebits(), s.sbits()) for s in sorts if s.kind() == z3.Z3_FLOATING_POINT_SORT}
    return ("bitwuzla", "cvc5") if formats <= FORMATS else ("cvc5",)


def _verdict(solver: _Solver, terms: list[z3.ExprRef], left: float) -> Verdict:
    if left <= 0:
        return "unknown"
    # The algebra alone first: without function values it decides most questions at once.
    if solver.ask(smtlib(without_functions(terms)), min(left, PER_QUERY / 5)) == "unsat":
        return "unsat"
    return solver.ask(smtlib(terms), min(left, PER_QUERY))


def _installed() -> Iterator[_Solver]:
    if importlib.util.find_spec("cvc5") is not None:
        import cvc5

        yield _Solver("cvc5", cvc5.__version__, _ask_cvc5)
    if importlib.util.find_spec("bitwuzla") is not None:
        import bitwuzla

        yield _Solver("bitwuzla", bitwuzla.version(), _ask_bitwuzla)


def _ask_cvc5(text: str, timeout: float) -> Verdict:
    import cvc5

    solver = cvc5.Solver()
    solver.setOption("tlimit-per", str(max(1, int(1000 * timeout))))
    solver.setOption("fp-exp", "true")  # else it refuses float16 and bfloat16
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "query")
    symbols, answer = parser.getSymbolManager(), ""
    try:
        while not (command := parser.nextCommand()).isNull():
            answer = command.invoke(solver, symbols).strip() or answer
    except RuntimeError:  # what it cannot read or has no theory for
        return "unsupported"
    return _named(answer)


def _ask_bitwuzla(text: str, timeout: float) -> Verdict:
    import bitwuzla

    options = bitwuzla.Options()
    options.set(bitwuzla.Option.TIME_LIMIT_PER, max(1, int(1000 * timeout)))
    parser = bitwuzla.Parser(bitwuzla.TermManager(), options)
    try:
        parser.parse(text, parse_only=True, parse_file=False)
        return _named(str(parser.bitwuzla().check_sat()))
    except bitwuzla.BitwuzlaException:
        return "unsupported"


def _named(answer: str) -> Verdict:
    verdicts: dict[str, Verdict] = {"sat": "sat", "unsat": "unsat"}
    return verdicts.get(answer.rpartition(".")[2].lower(), "unknown")
