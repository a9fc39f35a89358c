"""What an obligation is, and what comes out of discharging it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import z3

Status = Literal[
    "kernel", "proved", "bounded", "exhaustive", "derived", "enclosed", "tested", "assumed",
    "refuted", "open", "unavailable",
]  # fmt: skip
STATUSES: tuple[Status, ...] = (
    "kernel", "proved", "bounded", "exhaustive", "derived", "enclosed", "tested", "assumed",
    "refuted", "open", "unavailable",
)  # fmt: skip
"""``unavailable``: what would decide it is not installed, so that nothing is known."""

Method = Literal["z3", "enumeration", "sympy", "arb", "coq"]
PremiseKind = Literal["assumption", "law", "definition", "lemma"]


@dataclass(frozen=True)
class Premise:
    """One fact that a query may use.

    kind  ``assumption`` restricts the statement; ``law`` is a ground instance of a law of exp or of
          arithmetic; ``definition`` unfolds a name; ``lemma`` is the goal of an earlier query
    """

    text: str
    term: z3.BoolRef
    kind: PremiseKind = "assumption"


@dataclass(frozen=True)
class Query:
    """The premises entail the goal: a question to a solver.

    witness  values of the free names, on which every premise is evaluated: they do not contradict
             each other. A name left out gets a value derived from its name.
    folds    the reductions along axes of any length that the terms speak of
    """

    name: str
    goal: z3.BoolRef
    premises: tuple[Premise, ...] = ()
    witness: Mapping[str, Any] = field(default_factory=dict)
    folds: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Case:
    """One instance that was decided by calculation.

    shown  how it was derived, for a reader: formulas in LaTeX, one a line
    """

    name: str
    holds: bool
    shown: tuple[str, ...] = ()


Step = Query | Case
Body = Callable[[], Iterable[Step]]


@dataclass(frozen=True)
class Twin:
    """A mutated statement that must be refuted, or the check could not fail.

    text  what was changed
    body  builds the mutated statement the way the obligation builds its own
    """

    text: str
    body: Body


@dataclass(frozen=True)
class Obligation:
    """A formal statement about the spec that entails a claim, or a part of one.

    id          ``<claim>/<variant>``
    statement   LaTeX
    generality  exactly what is covered
    strength    the status that success earns: ``proved`` for statements about all sizes,
    ``bounded``
                where a size is bounded, ``exhaustive``, ``derived`` or ``enclosed``
    trust       what must be believed beside the spec and the method's own software
    """

    id: str
    claim: str
    statement: str
    generality: str
    strength: Status
    method: Method
    body: Body
    twin: Twin
    trust: tuple[str, ...] = ()
    budget: float = 20.0


@dataclass(frozen=True)
class SpecFunction:
    """A function of the spec that took part, as it was at that moment."""

    name: str
    file: str
    line: int
    hash: str


@dataclass(frozen=True)
class Assumption:
    """A premise of the statement, and values on which it was evaluated and holds."""

    text: str
    witness: str


@dataclass(frozen=True)
class TwinOutcome:
    """Whether the mutated statement was refuted, and by which counterexample."""

    text: str
    refuted: bool
    counterexample: str


@dataclass(frozen=True)
class Script:
    """A query as SMT-LIB text: ``unsat`` means that it holds. The hash names the text."""

    name: str
    hash: str
    text: str


@dataclass(frozen=True)
class Opinion:
    """What another solver said of the queries: each is counted at the solver that answered it, or
    at the last one asked.

    agrees       it finds no counterexample either
    unknown      it gave up or ran out of time
    unsupported  it cannot read the query
    """

    solver: str
    version: str
    agrees: int
    unknown: int
    unsupported: int
    seconds: float

    def __str__(self) -> str:
        counts = {"agrees": self.agrees, "unknown": self.unknown, "unsupported": self.unsupported}
        told = ", ".join(f"{number} {word}" for word, number in counts.items() if number)
        return f"{self.solver} {self.version}: {told or 'nothing to ask'}"


@dataclass(frozen=True)
class Outcome:
    """What is known about an obligation after its discharge.

    detail      the counterexample of a refuted one, the reason of an open one, else what was done
    checks      number of queries and cases that were decided
    cross       what other solvers said, where they were asked
    resources   z3's own count of its steps, which repeats where seconds do not; 0 without z3
    unneeded    assumptions that no unsatisfiable core held: the statement is stronger than it says
    derivation  for each case that shows it, the steps in LaTeX
    scripts     the queries as SMT-LIB text
    theorem     the module that states it
    key         what the outcome rests on (``fingerprint``): once that has changed it is stale
    """

    id: str
    claim: str
    statement: str
    generality: str
    status: Status
    method: Method
    solver: str
    version: str
    seconds: float
    checks: int
    detail: str
    assumptions: tuple[Assumption, ...]
    trust: tuple[str, ...]
    twin: TwinOutcome
    spec: tuple[SpecFunction, ...]
    cross: tuple[Opinion, ...] = ()
    resources: int = 0
    unneeded: tuple[str, ...] = ()
    derivation: tuple[tuple[str, ...], ...] = ()
    scripts: tuple[Script, ...] = ()
    theorem: str = ""
    key: str = ""

    @property
    def held(self) -> bool:
        """True unless it is refuted, open or unavailable."""
        return not self.failed and self.status != "unavailable"

    @property
    def failed(self) -> bool:
        """True when it is refuted or open."""
        return self.status in ("refuted", "open")

    @property
    def confirmed(self) -> bool:
        """True when other solvers agree on every query."""
        return 0 < sum(o.agrees for o in self.cross) == len(self.scripts)

    def as_json(self) -> dict[str, Any]:
        """Plain dicts, lists, strings and numbers."""
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Outcome:
        """Inverse of ``as_json``; KeyError or TypeError on anything else."""
        return Outcome(
            **{
                **data,
                "assumptions": tuple(Assumption(**a) for a in data["assumptions"]),
                "trust": tuple(data["trust"]),
                "twin": TwinOutcome(**data["twin"]),
                "spec": tuple(SpecFunction(**f) for f in data["spec"]),
                "cross": tuple(Opinion(**o) for o in data["cross"]),
                "unneeded": tuple(data["unneeded"]),
                "derivation": tuple(tuple(lines) for lines in data["derivation"]),
                "scripts": tuple(Script(**s) for s in data["scripts"]),
            }
        )
