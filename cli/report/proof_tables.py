"""The proofs in tables: by family, what they leave open, what they trust, and the link to tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.spec.claims import CLAIMS, Claim

if TYPE_CHECKING:
    from assay.proofs.obligation import Outcome

UNIVERSAL = ("kernel", "proved")
"""Evidence for every size; all other words name what they cover."""


@dataclass(frozen=True)
class FamilyRow:
    """One family of claims: how many there are, how many owe a proof and have none, and for each
    status the obligations by method.
    """

    family: str
    claims: int
    owed: int
    missing: int
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Link:
    """One claim between its two kinds of evidence: spec functions that its proofs ran (helpers left
    out), properties that test it.
    """

    claim: Claim
    status: str
    functions: tuple[str, ...]
    properties: tuple[str, ...]

    @property
    def sides(self) -> str:
        """Which kinds there are, and which of those that are owed lacks."""
        kinds = (
            ("proof", self.status, self.claim.proof),
            ("test", self.properties, self.claim.test),
        )
        there = [name for name, evidence, _ in kinds if evidence]
        lacking = [name for name, evidence, owed in kinds if owed and not evidence]
        told = "both" if len(there) == 2 else f"{there[0]} only" if there else "none"
        return told + (f"; owed: {', '.join(lacking)}" if lacking else "")


@dataclass(frozen=True)
class Gap:
    """What no proof covers: a heading, what it means, and the entries."""

    title: str
    meaning: str
    entries: tuple[str, ...]


@dataclass(frozen=True)
class ProofTables:
    """Everything that is said of the proofs as a whole."""

    statuses: tuple[str, ...]
    families: tuple[FamilyRow, ...]
    total: FamilyRow
    gaps: tuple[Gap, ...]
    links: tuple[Link, ...]
    trusted: tuple[tuple[str, int], ...]
    software: tuple[tuple[str, int], ...]


def build(outcomes: Sequence[Outcome], stale: Sequence[str] = ()) -> ProofTables:
    """The tables; ``stale`` are the ids of outcomes that no longer count."""
    links = tuple(_links(outcomes))
    statuses = _statuses(outcomes)
    names = dict.fromkeys(claim.family for claim in CLAIMS)
    rows = tuple(_family(name, links, outcomes, statuses) for name in names)
    trusted = Counter(text for o in outcomes for text in o.trust)
    return ProofTables(
        statuses=statuses,
        families=rows,
        total=_family(None, links, outcomes, statuses),
        gaps=tuple(gap for gap in _gaps(links, outcomes, stale) if gap.entries),
        links=links,
        trusted=tuple(sorted(trusted.items(), key=lambda item: (-item[1], item[0]))),
        software=tuple(sorted(Counter(o.solver for o in outcomes).items())),
    )


def _statuses(outcomes: Iterable[Outcome]) -> tuple[str, ...]:
    from assay.proofs.obligation import STATUSES

    present = {o.status for o in outcomes}
    return tuple(word for word in STATUSES if word in present)


def _links(outcomes: Sequence[Outcome]) -> Iterable[Link]:
    from assay.properties.properties import PROPERTIES

    order = _statuses(outcomes)
    for claim in CLAIMS:
        own = [o for o in outcomes if o.claim == claim.id and o.status != "unavailable"]
        functions = {f.name for o in own for f in o.spec if not _helper(f.name)}
        best = min((order.index(o.status) for o in own), default=None)
        yield Link(
            claim,
            "" if best is None else order[best],
            tuple(sorted(functions)),
            tuple(p.id for p in PROPERTIES if p.claim == claim.id),
        )


def _helper(name: str) -> bool:
    """Every proof runs the scalar helpers, and private functions only through their callers."""
    module, _, function = name.partition(".")
    return module == "scalars" or "_" in {part[:1] for part in function.split(".")}


def _family(
    name: str | None, links: Sequence[Link], outcomes: Sequence[Outcome], statuses: Sequence[str]
) -> FamilyRow:
    """The row of one family, or of all."""
    own = [link for link in links if name in (None, link.claim.family)]
    ids = {link.claim.id for link in own}
    owed = [link for link in own if link.claim.proof]
    cells = []
    for status in statuses:
        methods = Counter(o.method for o in outcomes if o.claim in ids and o.status == status)
        cells.append(", ".join(f"{n} {method}" for method, n in sorted(methods.items())))
    missing = sum(not link.status for link in owed)
    return FamilyRow(name or "all", len(own), len(owed), missing, tuple(cells))


def _gaps(
    links: Sequence[Link], outcomes: Sequence[Outcome], stale: Sequence[str]
) -> Iterable[Gap]:
    failed = tuple(f"{o.id}: {o.status}" for o in outcomes if o.status in ("refuted", "open"))
    yield Gap("Refuted or open", "these count as no evidence", failed)
    absent = tuple(f"{o.id}: {o.detail}" for o in outcomes if o.status == "unavailable")
    yield Gap("Not run", "what would decide them is not installed here", absent)
    yield Gap("Stale", "sources or versions have changed since; assay prove", tuple(stale))
    owing = tuple(x.claim.id for x in links if x.claim.proof and not x.status)
    yield Gap("Owed a proof", "no obligation covers them yet", owing)
    partial = tuple(
        f"{x.claim.id} ({x.status})" for x in links if x.status and x.status not in UNIVERSAL
    )
    yield Gap(
        "Covered in part",
        "every obligation is about stated sizes or data; beyond them nothing is known",
        partial,
    )
    tested = tuple(x.claim.id for x in links if not x.claim.proof and not x.status)
    yield Gap("Left to tests", "claims about implementations: no proof is owed", tested)
    untested = tuple(x.claim.id for x in links if x.claim.test and not x.properties)
    yield Gap("Owed a property", "no test of implementations yet", untested)
