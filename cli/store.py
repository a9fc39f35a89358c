"""What earlier commands kept: campaigns and findings in the journal, proofs in a file beside it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from assay.cli.command import UsageError

if TYPE_CHECKING:
    from assay.proofs.obligation import Outcome
    from assay.properties.results import Finding, Result

_PROOFS = "proofs.json"
_SCHEMA = 1


def campaign(directory: Path, wanted: str | None) -> Result:
    """The campaign with this id or beginning of one, or the newest. JournalError: there is none."""
    from assay.properties.journal import Journal

    with Journal(directory) as journal:
        return journal.latest() if wanted is None else journal.load(wanted)


def find(directory: Path, prefix: str) -> Finding:
    """The finding with this id or unique beginning of it. JournalError lists the candidates."""
    from assay.properties.journal import Journal

    with Journal(directory) as journal:
        return journal.find(prefix)


def source_fingerprint() -> str:
    """Hash of the spec's and the proofs' sources: outcomes of others are no evidence for these."""
    root = Path(__file__).resolve().parent.parent
    digest = hashlib.sha256()
    for folder in ("spec", "proofs"):
        for path in sorted((root / folder).rglob("*.py")):
            digest.update(path.name.encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def save_proofs(directory: Path, outcomes: Iterable[Outcome]) -> Path:
    """Keep ``outcomes``, beside earlier ones of the same sources; returns the file."""
    kept = {o.id: o for o in load_proofs(directory)}
    kept |= {o.id: o for o in outcomes}
    document = {
        "schema": _SCHEMA,
        "sources": source_fingerprint(),
        "outcomes": [o.as_json() for o in kept.values()],
    }
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / _PROOFS
    path.write_text(json.dumps(document, indent=1), encoding="utf-8")
    return path


def load_proofs(directory: Path) -> tuple[Outcome, ...]:
    """Outcomes kept in ``directory`` that were reached with the present sources; maybe none."""
    path = directory / _PROOFS
    if not path.is_file():
        return ()
    from assay.proofs.obligation import Outcome

    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["schema"] != _SCHEMA or document["sources"] != source_fingerprint():
            return ()
        return tuple(Outcome.from_json(entry) for entry in document["outcomes"])
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{path} is damaged ({error}); assay prove writes it anew once it is removed"
        ) from error
