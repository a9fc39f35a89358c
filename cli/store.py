"""What earlier commands kept: campaigns and findings in the journal, proofs in a file beside it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from assay.cli.command import UsageError

if TYPE_CHECKING:
    from assay.proofs.obligation import Outcome
    from assay.properties.results import Finding, Result

_PROOFS = "proofs.json"
_SCHEMA = 2


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


def save_proofs(directory: Path, outcomes: Iterable[Outcome], catalogue: Iterable[str]) -> Path:
    """Keep ``outcomes``, beside earlier ones of the ``catalogue``'s ids; returns the file."""
    kept = {o.id: o for o in kept_proofs(directory)}
    kept |= {o.id: o for o in outcomes}
    document = {
        "schema": _SCHEMA,
        "outcomes": [kept[name].as_json() for name in catalogue if name in kept],
    }
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / _PROOFS
    # A reader, and a run that is stopped, find the whole file or the one before.
    part = path.with_name(f"{path.name}.{os.getpid()}")
    part.write_text(json.dumps(document, indent=1), encoding="utf-8")
    part.replace(path)
    return path


def load_proofs(directory: Path) -> tuple[Outcome, ...]:
    """Outcomes kept in ``directory`` that rest on the present sources and versions; maybe none."""
    return tuple(o for o in kept_proofs(directory) if _stands(o))


def stale_proofs(directory: Path) -> tuple[str, ...]:
    """Ids of kept outcomes whose sources or versions have changed since: no evidence any more."""
    return tuple(o.id for o in kept_proofs(directory) if not _stands(o))


def _stands(outcome: Outcome) -> bool:
    from assay.proofs.fingerprint import fingerprint

    return outcome.key == fingerprint(outcome.theorem)


def kept_proofs(directory: Path) -> tuple[Outcome, ...]:
    """All outcomes kept in ``directory``, whatever has changed since."""
    path = directory / _PROOFS
    if not path.is_file():
        return ()
    from assay.proofs.obligation import Outcome

    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["schema"] < _SCHEMA:
            return ()
        return tuple(Outcome.from_json(entry) for entry in document["outcomes"])
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{path} is damaged ({error}); assay prove writes it anew once it is removed"
        ) from error
