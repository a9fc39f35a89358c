"""The journal: every finished cell of every campaign, one transaction a cell, so that a killed run
loses nothing that ended.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

from assay.properties.results import (
    Cell,
    Finding,
    Result,
    finding_from_json,
    result_from_json,
    to_json,
)

SCHEMA = 1
NAME = "journal.sqlite"

_TABLES = """
CREATE TABLE IF NOT EXISTS campaign (
    id TEXT PRIMARY KEY, number INTEGER, fingerprint TEXT,
    record TEXT NOT NULL, finished INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS cell (
    campaign TEXT NOT NULL REFERENCES campaign(id), key TEXT NOT NULL,
    record TEXT NOT NULL, PRIMARY KEY (campaign, key)
);
CREATE TABLE IF NOT EXISTS finding (
    id TEXT NOT NULL, campaign TEXT NOT NULL REFERENCES campaign(id),
    record TEXT NOT NULL, PRIMARY KEY (id, campaign)
);
"""


class JournalError(Exception):
    """The journal cannot be read or written. The message names the file and what can be done."""


class Journal:
    """The journal in one directory. Reading a journal that does not exist raises JournalError
    unless ``create``.
    """

    def __init__(self, directory: Path, *, create: bool = False) -> None:
        self.path = directory / NAME
        if not create and not self.path.exists():
            raise JournalError(
                f"no campaign in {str(directory)!r}: {self.path} does not exist; "
                "run `assay run TARGET` first"
            )
        with self._errors():
            if create:
                directory.mkdir(parents=True, exist_ok=True)
                self._db = sqlite3.connect(self.path, timeout=30.0)
            else:
                # A report must be readable where nothing can be written, such as on a full disk.
                uri = f"{self.path.absolute().as_uri()}?mode=ro"
                self._db = sqlite3.connect(uri, timeout=30.0, uri=True)
            self._check_version()
            if create:
                self._prepare()

    def _check_version(self) -> None:
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, SCHEMA):
            raise JournalError(
                f"{self.path} has schema version {version!r}, this assay reads {SCHEMA}; "
                "move the file away to start a new one"
            )

    def _prepare(self) -> None:
        with self._db:
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.executescript(_TABLES)
            self._db.execute(f"PRAGMA user_version={SCHEMA}")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise JournalError(
                f"cannot write {self.path}: {error}; cells that ended before are kept. "
                "Check free space and permissions, then use --resume"
            ) from error
        except sqlite3.DatabaseError as error:
            raise JournalError(
                f"{self.path} is damaged: {error}; it was left as it is. "
                "Move it away to start a new one, or try `sqlite3 FILE .recover`"
            ) from error
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise JournalError(
                f"{self.path} holds a record that cannot be read: {error!r}; move the file away"
            ) from error
        except OSError as error:
            raise JournalError(f"cannot use {self.path}: {error.strerror or error}") from error

    def close(self) -> None:
        """Release the file."""
        self._db.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def begin(self, result: Result, fingerprint: str) -> None:
        """Record that a campaign starts."""
        with self._errors(), self._db:
            number = self._db.execute(
                "SELECT COALESCE(MAX(number), 0) + 1 FROM campaign"
            ).fetchone()[0]
            self._db.execute(
                "INSERT INTO campaign VALUES (?, ?, ?, ?, 0)",
                (
                    result.campaign,
                    number,
                    fingerprint,
                    json.dumps(to_json(replace(result, cells=()))),
                ),
            )

    def add(self, campaign: str, cell: Cell) -> None:
        """Record one cell and its finding, in one transaction."""
        record = to_json(replace(cell, finding=None))
        with self._errors(), self._db:
            if cell.finding is not None:
                record["finding_id"] = cell.finding.id
                self._db.execute(
                    "INSERT OR REPLACE INTO finding VALUES (?, ?, ?)",
                    (cell.finding.id, campaign, json.dumps(to_json(cell.finding))),
                )
            self._db.execute(
                "INSERT OR REPLACE INTO cell VALUES (?, ?, ?)",
                (campaign, json.dumps(astuple(cell.key)), json.dumps(record)),
            )

    def end(self, result: Result) -> None:
        """Record that a campaign is over, or was stopped."""
        with self._errors(), self._db:
            self._db.execute(
                "UPDATE campaign SET record = ?, finished = ? WHERE id = ?",
                (
                    json.dumps(to_json(replace(result, cells=()))),
                    int(result.finished),
                    result.campaign,
                ),
            )

    def campaigns(self) -> list[tuple[str, str, str, tuple[str, ...], bool]]:
        """(id, started, profile, targets, finished) of each campaign, the newest first."""
        with self._errors():
            rows = self._db.execute(
                "SELECT record, finished FROM campaign ORDER BY number DESC"
            ).fetchall()
            records = [(json.loads(record), bool(finished)) for record, finished in rows]
            return [
                (r["campaign"], r["started"], r["profile"], tuple(r["targets"]), done)
                for r, done in records
            ]

    def unfinished(self, fingerprint: str) -> str | None:
        """Id of the newest unfinished campaign of the same configuration."""
        with self._errors():
            row = self._db.execute(
                "SELECT id FROM campaign WHERE fingerprint = ? AND finished = 0 "
                "ORDER BY number DESC LIMIT 1",
                (fingerprint,),
            ).fetchone()
            return None if row is None else str(row[0])

    def load(self, campaign: str) -> Result:
        """A campaign with all its cells, by its id or the start of it."""
        ids = [entry[0] for entry in self.campaigns()]
        matching = [i for i in ids if i.startswith(campaign)]
        if len(matching) != 1:
            problem = "is ambiguous" if matching else "does not exist"
            raise JournalError(
                f"campaign {campaign!r} {problem} in {self.path}; "
                f"there are: {', '.join(matching or ids) or 'none'}"
            )
        with self._errors(), closing(self._db.cursor()) as cursor:
            record, finished = cursor.execute(
                "SELECT record, finished FROM campaign WHERE id = ?", (matching[0],)
            ).fetchone()
            found = {
                row[0]: json.loads(row[1])
                for row in cursor.execute(
                    "SELECT id, record FROM finding WHERE campaign = ?", (matching[0],)
                )
            }
            rows = cursor.execute(
                "SELECT record FROM cell WHERE campaign = ? ORDER BY rowid", (matching[0],)
            ).fetchall()
            cells = [_with_finding(json.loads(row[0]), found) for row in rows]
            return result_from_json(
                {**json.loads(record), "finished": bool(finished), "cells": cells}
            )

    def latest(self) -> Result:
        """The newest campaign. JournalError when there is none."""
        known = self.campaigns()
        if not known:
            raise JournalError(f"{self.path} holds no campaign; run `assay run TARGET` first")
        return self.load(known[0][0])

    def find(self, prefix: str) -> Finding:
        """The newest finding whose id starts with ``prefix``. JournalError names the candidates."""
        with self._errors():
            rows = self._db.execute(
                "SELECT finding.id, finding.record FROM finding JOIN campaign "
                "ON campaign.id = finding.campaign ORDER BY campaign.number DESC"
            ).fetchall()
        newest: dict[str, str] = {}
        for finding, record in rows:
            newest.setdefault(finding, record)
        matching = [i for i in newest if i.startswith(prefix)]
        if len(matching) != 1 or not prefix:
            problem = "is ambiguous" if matching and prefix else "does not exist"
            candidates = ", ".join((matching or list(newest))[:12]) or "none"
            raise JournalError(
                f"finding {prefix!r} {problem} in {self.path}; there are: {candidates}"
            )
        with self._errors():
            return finding_from_json(json.loads(newest[matching[0]]))


def _with_finding(record: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    finding = record.pop("finding_id", None)
    return {**record, "finding": found.get(finding) if finding else None}
