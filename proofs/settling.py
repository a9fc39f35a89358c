"""Settle one obligation: decide its steps, check that premises are satisfiable, refute its twin."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from importlib.metadata import version

from assay.proofs import coqc
from assay.proofs.obligation import (
    Assumption,
    Body,
    Case,
    Method,
    Obligation,
    Opinion,
    Outcome,
    Query,
    Script,
    Status,
    Step,
    TwinOutcome,
)
from assay.proofs.solving import VERSION, Answer, confirm, contradictory, decide, witness_text
from assay.proofs.tracing import traced

SOLVERS: dict[Method, tuple[str, str]] = {
    "z3": ("z3", VERSION),
    "enumeration": ("python", platform.python_version()),
    "sympy": ("sympy", version("sympy")),
    "arb": ("python-flint", version("python-flint")),
    "coq": ("coq", coqc.version()),
}


@dataclass
class _Tally:
    """What the steps of one body came to."""

    checks: int = 0
    assumptions: dict[str, str] = field(default_factory=dict)
    needed: set[str] = field(default_factory=set)
    scripts: list[Script] = field(default_factory=list)
    resources: int = 0
    failure: str = ""
    doubt: str = ""


def settle(
    obligation: Obligation,
    timeout: float = 20.0,
    cross_check: bool = False,
    patience: float = 1.0,
) -> Outcome:
    """The outcome of one obligation, in this process; the solver stops after ``timeout`` seconds.

    Each obligation's own budget lowers the limit; ``patience`` multiplies it. An exception of the
    body is a doubt: it is reported as ``open``, with its message. Without coqc, a theorem for it is
    ``unavailable``.
    """
    start = time.perf_counter()
    if obligation.method == "coq" and not coqc.available():
        return replace(unsettled(obligation, 0.0, coqc.absent()), status="unavailable")
    limit = min(timeout, obligation.budget) * patience
    deadline = start + limit
    try:
        steps, spec = traced(lambda: list(obligation.body()))
        tally = _decide_all(steps, deadline)
        cross = _cross(steps, limit, tally) if cross_check and not tally.failure else ()
    except Exception as error:
        steps, spec, cross = [], (), ()
        tally = _Tally(doubt=f"{type(error).__name__}: {error}")
    twin = _refute(obligation.twin.text, obligation.twin.body, time.perf_counter() + limit)
    if not twin.refuted and not tally.failure:
        tally.doubt = tally.doubt or f"the mutated statement holds: {twin.counterexample}"
    status, detail = _status(obligation, tally)
    seconds = time.perf_counter() - start
    return replace(
        unsettled(obligation, seconds, detail),
        status=status,
        checks=tally.checks,
        assumptions=tuple(Assumption(t, w) for t, w in tally.assumptions.items()),
        twin=twin,
        spec=spec,
        cross=cross,
        resources=tally.resources,
        unneeded=tuple(text for text in tally.assumptions if text not in tally.needed),
        derivation=tuple(s.shown for s in steps if isinstance(s, Case) and s.shown),
        scripts=tuple(tally.scripts),
    )


def unsettled(obligation: Obligation, seconds: float, reason: str) -> Outcome:
    """An open outcome: that of an obligation which was stopped from outside."""
    solver, solver_version = SOLVERS[obligation.method]
    return Outcome(
        id=obligation.id,
        claim=obligation.claim,
        statement=obligation.statement,
        generality=obligation.generality,
        status="open",
        method=obligation.method,
        solver=solver,
        version=solver_version,
        seconds=seconds,
        checks=0,
        detail=reason,
        assumptions=(),
        trust=obligation.trust,
        twin=TwinOutcome(obligation.twin.text, False, "not reached"),
        spec=(),
    )


def _status(obligation: Obligation, tally: _Tally) -> tuple[Status, str]:
    if tally.failure:
        return "refuted", tally.failure
    if tally.doubt:
        return "open", tally.doubt
    return obligation.strength, f"{tally.checks} checks"


def _decide_all(steps: Iterable[Step], deadline: float) -> _Tally:
    tally = _Tally()
    for step in steps:
        tally.checks += 1
        if isinstance(step, Case):
            if not step.holds:
                tally.failure = step.name
        else:
            _decide_query(step, deadline, tally)
        if tally.failure:
            return tally
        if time.perf_counter() > deadline:
            tally.doubt = tally.doubt or f"timeout after {tally.checks} checks"
            return tally
    if not tally.checks:
        tally.doubt = "nothing was checked"
    return tally


def _decide_query(query: Query, deadline: float, tally: _Tally) -> None:
    answer = decide(query, deadline - time.perf_counter())
    tally.resources += answer.resources
    tally.needed |= answer.needed
    tally.scripts.append(answer.script)
    if answer.verdict != "holds" and answer.counterexample:
        tally.failure = f"{query.name}: {answer.counterexample}"
    elif answer.verdict == "fails":
        # The solver knows only ground instances of the laws of exp, so its model may be a phantom.
        tally.doubt = tally.doubt or f"{query.name}: a model that evaluation does not confirm"
    elif answer.verdict == "unknown":
        tally.doubt = tally.doubt or f"{query.name}: {answer.reason}"
    else:
        _require_witness(query, answer, tally)


def _require_witness(query: Query, answer: Answer, tally: _Tally) -> None:
    """Premises that exclude each other prove anything: each must hold on concrete numbers."""
    holds, text = witness_text(query, answer.premises)
    if not holds:
        vacuous = contradictory(answer.premises, 2.0)
        why = "the premises contradict each other" if vacuous else f"bad witness: {text}"
        tally.doubt = tally.doubt or f"{query.name}: {why}"
    for premise in answer.premises:
        if premise.kind in ("assumption", "law"):
            tally.assumptions.setdefault(premise.text, text)


def _refute(text: str, body: Body, deadline: float) -> TwinOutcome:
    """Refuted when a case is false, or a query has a counterexample that survives evaluation."""
    said: list[str] = []
    try:
        queries = []
        for step in body():
            if isinstance(step, Query):
                queries.append(step)
            elif not step.holds:
                return TwinOutcome(text, True, step.name)
        # Small values refute most mutants without a solver.
        for tries in (8, 200, None):
            for query in queries:
                found = confirm(query, None, tries) if tries else _solved(query, deadline, said)
                if found:
                    return TwinOutcome(text, True, found)
    except Exception as error:
        said.append(f"{type(error).__name__}: {error}")
    return TwinOutcome(text, False, "; ".join(said) or "every case holds")


def _solved(query: Query, deadline: float, said: list[str]) -> str:
    answer = decide(query, max(0.5, deadline - time.perf_counter()))
    said.append(f"{query.name}: {answer.verdict}")
    return answer.counterexample


def _cross(steps: Iterable[Step], limit: float, tally: _Tally) -> tuple[Opinion, ...]:
    """What other solvers say. One that finds a counterexample where z3 has a proof is believed: no
    claim may rest on solvers that contradict each other.
    """
    from assay.proofs.crossing import Contradiction, cross_check

    try:
        return cross_check([s for s in steps if isinstance(s, Query)], limit)
    except Contradiction as error:
        tally.failure = str(error)
        return ()
