"""How a theorem of ``proofs/coq/`` becomes an obligation.

The kernel accepts the proof; its axioms are among those that are named here; the model's
definitions, evaluated by the kernel on a grid, give what the executable spec gives. A twin is the
module with one text replaced: an instance of it is false, and its proof is rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial

from assay.proofs import kernel
from assay.proofs.kernel import Agreement, Mutation, Question
from assay.proofs.obligation import Case, Obligation, Twin

REALS: Mapping[str, str] = {
    "ClassicalDedekindReals.sig_forall_dec": "a decidable property of naturals fails somewhere or "
    "holds everywhere",
    "ClassicalDedekindReals.sig_not_dec": "a double negation is decidable",
    "FunctionalExtensionality.functional_extensionality_dep": "functions with equal values are "
    "equal",
}
"""The axioms of Coq's standard real numbers, which are classical."""

Grid = Callable[[], Iterable[Agreement]]


def kernel_checked(
    claim: str,
    module: str,
    theorems: tuple[str, ...],
    statement: str,
    generality: str,
    grid: Grid,
    changed: str,
    mutation: Mutation,
    *,
    axioms: Mapping[str, str] | None = None,
    variant: str = "kernel",
) -> Obligation:
    """The obligation ``<claim>/kernel``, or of another variant where a claim has two.

    grid      agreements of the model's definitions with the spec
    changed   what the twin changes, in words
    axioms    those that the theorems may rest on, with their meaning; none by default
    """
    allowed = dict(axioms or {})
    told = tuple(f"axiom {name}: {meaning}" for name, meaning in allowed.items())
    named = ", ".join(theorems)
    return Obligation(
        f"{claim}/{variant}",
        claim,
        statement,
        generality,
        "kernel",
        "coq",
        partial(accepted, module, theorems, frozenset(allowed), grid, mutation),
        Twin(changed, partial(rejected, module, theorems, frozenset(allowed), grid, mutation)),
        (
            f"proofs/coq/{module}.v states it as {named}, of definitions of its own: that they are "
            "the spec's is read, and checked on a grid",
            *(told or ("no axioms",)),
        ),
        budget=60.0,
    )


def _question(
    module: str,
    theorems: tuple[str, ...],
    allowed: Collection[str],
    grid: Grid,
    mutation: Mutation | None,
) -> Question:
    """Axioms are listed for each theorem only where those of the whole module are too many."""
    alone = theorems if set(kernel.axioms(module)) - set(allowed) else ()
    return Question(module, alone, tuple(grid()), mutation)


def accepted(
    module: str,
    theorems: tuple[str, ...],
    allowed: frozenset[str],
    grid: Grid,
    mutation: Mutation | None = None,
) -> Iterator[Case]:
    """One case for each theorem and for each agreement; the mutation is only asked about at the
    same time.

    Raises ValueError for an axiom that is not among the allowed ones.
    """
    if gone := set(theorems) - set(kernel.theorems(module)):
        raise ValueError(f"theorems={sorted(gone)} are not in {module}.v")
    question = _question(module, theorems, allowed, grid, mutation)
    try:
        found = kernel.assumptions(question)
    except kernel.Disagreement as error:
        yield Case(str(error), False)
        return
    found = found or dict.fromkeys(theorems, kernel.axioms(module))
    for theorem, axioms in found.items():
        beyond = sorted(set(axioms) - allowed)
        if beyond:
            raise ValueError(f"{module}.{theorem} rests on axioms that are not named: {beyond}")
        yield Case(f"{module}.{theorem}: {', '.join(axioms) or 'closed'}", True)
    yield from (Case(agreement.name, True) for agreement in question.checks)


def rejected(
    module: str,
    theorems: tuple[str, ...],
    allowed: frozenset[str],
    grid: Grid,
    mutation: Mutation,
) -> Iterator[Case]:
    """A false case where the mutant is refuted, by the run that accepted the statement."""
    found = kernel.refutation(_question(module, theorems, allowed, grid, mutation))
    yield Case(found or f"coqc accepts {mutation.new!r}", not found)
