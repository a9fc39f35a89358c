"""``assay list capsules``: for each op of each backend, who computes it and what speaks for it.

Nothing here is written down for a backend: the evidence follows from what it declares, which
properties apply to it, and what the newest campaign found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.impl.description import Description
    from assay.properties.results import Cell, CellKey

LEGEND = (
    "Evidence for shape, layout, value and derivative: so many claims of the suite cover it, and "
    "what the newest campaign found of them (worst: error / bound). Trusted boundary: no claim "
    "asks. --json names the claims. Nothing here is proved: proofs are about the spec."
)

FACETS = ("shape", "layout", "value", "derivative")
_SHAPE = frozenset({"hygiene.shape", "hygiene.dtype", "hygiene.zero_size"})
_LAYOUT = frozenset({"hygiene.layout_independent"})


def rows(patterns: Sequence[str], directory: Path, *, long: bool) -> list[dict[str, str]]:
    """The table; an absent backend has one row that says why.

    patterns   choose backends by name;  directory: where campaigns are kept
    long       name all claims instead of counting them
    """
    tested = _tested(directory)
    table: list[dict[str, str]] = []
    for name, found in _described(patterns):
        if isinstance(found, str):
            table.append(_absent(name, found))
        else:
            table += _capsules(name, found, tested, long=long)
    return table


def facet(claim: str) -> str:
    """Of which of the four contracts of a kernel a claim speaks; "" for none.

    >>> facet("attention.vjp_refines"), facet("hygiene.dtype"), facet("hygiene.deterministic")
    ('derivative', 'shape', '')
    """
    if claim in _SHAPE:
        return "shape"
    if claim in _LAYOUT:
        return "layout"
    family, _, name = claim.partition(".")
    if family == "hygiene":
        return ""
    return "derivative" if "vjp" in name or "grad" in name else "value"


def _described(patterns: Sequence[str]) -> Iterator[tuple[str, Description | str]]:
    from assay.impl.loading import installed, resolve
    from assay.impl.protocol import Unavailable
    from assay.impl.registry import BACKENDS
    from assay.impl.session import open_session
    from assay.properties.results import Absent

    names = dict.fromkeys([*(b.name for b in BACKENDS), *sorted(installed())])
    for name in names:
        if patterns and not any(fnmatchcase(name, pattern) for pattern in patterns):
            continue
        try:
            with open_session(resolve(name), timeout=30.0) as session:
                yield name, session.description
        except Unavailable as error:
            yield name, Absent(name, error.reason, error.remedy).why


def _absent(name: str, why: str) -> dict[str, str]:
    blank = dict.fromkeys(("device", "derivative by", "reduction", *FACETS), "")
    return {"backend": name, "op": "", "provider": f"absent: {why}", **blank}


def _tested(directory: Path) -> Mapping[tuple[str, str], list[Cell]]:
    """Cells of the newest campaign by backend and op; none where there is no campaign."""
    from assay.cli import store
    from assay.properties.journal import JournalError

    try:
        cells = store.campaign(directory, None).cells
    except JournalError:
        return {}
    found: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        found.setdefault((cell.key.backend, cell.key.op), []).append(cell)
    return found


def _capsules(
    name: str, found: Description, tested: Mapping[tuple[str, str], list[Cell]], *, long: bool
) -> list[dict[str, str]]:
    from assay.properties.plan import Selection, cells, profile_named

    contract = found.contract
    planned = cells(found, Selection(), profile_named("ci"))
    table = []
    for op in found.operations:
        own = [key for key in planned if key.op == op]
        ran = tested.get((contract.name, op), [])
        table.append(
            {
                "backend": name,
                "op": op,
                "provider": contract.provider or found.host,
                "device": contract.device,
                "derivative by": _derivative(op, found),
                "reduction": contract.reduction,
                **{f: _evidence(f, op, found, own, ran, long=long) for f in FACETS},
            }
        )
    return table


def _derivative(op: str, found: Description) -> str:
    if op not in found.gradients:
        return "none"
    return "own method" if found.host == "numpy" else f"automatic ({found.host})"


def _evidence(
    name: str,
    op: str,
    found: Description,
    planned: Sequence[CellKey],
    ran: Sequence[Cell],
    *,
    long: bool,
) -> str:
    """What speaks for one contract of a kernel: never more than tests, or nothing."""
    if name == "derivative" and op not in found.gradients:
        return "not applicable"
    from assay.properties.properties import find

    claims = dict.fromkeys(find(key.property).claim for key in planned)
    own = [claim for claim in claims if facet(claim) == name]
    if not own:
        return "trusted boundary"
    so_far = _outcome([cell for cell in ran if facet(cell.claim) == name])
    if long:
        return f"covered by claims {', '.join(own)}: {so_far}"
    return f"{len(own)} claim{'s'[: len(own) > 1]}: {so_far}"


def _outcome(cells: Sequence[Cell]) -> str:
    """What the newest campaign found of them."""
    from assay.properties.results import BAD

    held = [c for c in cells if c.verdict == "held"]
    failed = sum(c.verdict in BAD for c in cells)
    parts = []
    if held:
        worst = max(c.worst for c in held)
        parts.append(f"{len(held)} held on {sum(c.examples for c in held)} examples")
        parts += [f"worst {worst:.2g}"] if worst else []
    parts += [f"{failed} failed"] if failed else []
    return ", ".join(parts) or "not run"
