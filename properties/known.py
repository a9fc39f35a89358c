"""Known findings: a file of expected faults, each with a reason, that a campaign may have without
failing.

A ``known.toml`` holds one table for each fault::

    [[known]]
    backend = "torch.sdpa.flash"          # globs; the cell must match all of them
    claim = "attention.scale"
    op = "*"                              # optional, like dtype, mode and hint
    reason = "causal with scale <= 0 is NaN on the CPU flash path"
    versions = { torch = "2.13.*" }       # optional: only there is it expected; also cpu or gpu
    link = "https://..."                  # optional, like reproducer
    rare = true                           # optional: not found in every run

An entry is strict: when its cells drew all their examples and none failed, it is stale and must be
taken out. A cell that ran out of time says nothing of it. Neither does a rare one: chance need not
draw it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from assay.properties.results import BAD, Cell, Finding, Result


class KnownError(ValueError):
    """The file cannot be used; the message says where and what is valid."""


@dataclass(frozen=True)
class Entry:
    """One expected fault. ``backend``, ``claim``, ``op``, ``dtype``, ``mode`` and ``hint`` are
    globs.

    ``claim`` is matched against the claim's id and the property's; ``versions`` maps what a report
    names under that word to a glob: a package, ``cpu`` (``*AMX*``) or ``gpu``.
    """

    backend: str
    claim: str
    reason: str
    op: str = "*"
    dtype: str = "*"
    mode: str = "*"
    hint: str = "*"
    versions: Mapping[str, str] = field(default_factory=dict)
    link: str = ""
    reproducer: str = ""
    rare: bool = False

    def covers(self, cell: Cell) -> bool:
        """Whether this cell is one that the entry speaks of."""
        claims = (cell.claim, cell.key.property)
        return (
            fnmatchcase(cell.key.backend, self.backend)
            and any(fnmatchcase(name, self.claim) for name in claims)
            and fnmatchcase(cell.key.op, self.op)
            and fnmatchcase(cell.key.dtype, self.dtype)
            and fnmatchcase(cell.key.mode, self.mode)
        )

    def applies(self, versions: Mapping[str, str]) -> bool:
        """Whether the versions of this campaign are those the fault is expected with."""
        return all(
            fnmatchcase(versions.get(package, ""), wanted)
            for package, wanted in self.versions.items()
        )

    def __str__(self) -> str:
        op = "" if self.op == "*" else f" of {self.op}"
        return f"{self.backend} {self.claim}{op} ({self.reason})"


_REQUIRED = ("backend", "claim", "reason")
_VALID = tuple(f.name for f in fields(Entry))


@dataclass(frozen=True)
class Known:
    """All entries of a file, in its order."""

    entries: tuple[Entry, ...] = ()

    def reason(self, cell: Cell, finding: Finding, versions: Mapping[str, str]) -> str:
        """Why this finding is expected, with the entry's link; empty when it is not."""
        for entry in self.entries:
            if (
                entry.applies(versions)
                and entry.covers(cell)
                and fnmatchcase(finding.hint, entry.hint)
            ):
                return f"{entry.reason} <{entry.link}>" if entry.link else entry.reason
        return ""


def load(path: Path) -> Known:
    """Read and check a file; KnownError for anything that is not as the module's docstring says."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise KnownError(f"{path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise KnownError(f"{path} is not TOML: {error}") from error
    extra = sorted(set(document) - {"known"})
    tables = document.get("known", [])
    if extra or not isinstance(tables, list) or not all(isinstance(t, dict) for t in tables):
        found = extra or ["known"]
        raise KnownError(f"{path}: {found!r} is not valid at the top; valid: [[known]] tables only")
    return Known(tuple(_entry(f"{path}: entry {i}", t) for i, t in enumerate(tables, 1)))


def apply(known: Known, result: Result) -> tuple[Result, tuple[Entry, ...]]:
    """The result with ``known`` set on expected findings, and the entries that are stale."""
    cells = tuple(mark(known, cell, result.versions) for cell in result.cells)
    return replace(result, cells=cells), tuple(e for e in known.entries if _stale(e, result))


def mark(known: Known, cell: Cell, versions: Mapping[str, str]) -> Cell:
    """The cell with its finding's ``known`` set, if it has one that is expected."""
    if cell.finding is None:
        return cell
    reason = known.reason(cell, cell.finding, versions)
    return replace(cell, finding=replace(cell.finding, known=reason))


def _stale(entry: Entry, result: Result) -> bool:
    """Whether the fault is gone: its cells drew all their examples here, and none failed."""
    if entry.rare or not entry.applies(result.versions):
        return False
    return gone([(cell.verdict, cell.cut) for cell in result.cells if entry.covers(cell)])


def gone(cells: Iterable[tuple[str, bool]]) -> bool:
    """Whether a fault is gone, by verdict and ``cut`` of each cell that it was expected in."""
    found = set(cells)
    verdicts = {verdict for verdict, _ in found}
    undecided = verdicts & (BAD | {"inconclusive"}) or any(cut for _, cut in found)
    return "held" in verdicts and not undecided


def _entry(where: str, table: Mapping[str, Any]) -> Entry:
    unknown = sorted(set(table) - set(_VALID))
    missing = [key for key in _REQUIRED if not table.get(key)]
    if unknown:
        raise KnownError(f"{where}: {unknown!r} is not a key; valid: {sorted(_VALID)}")
    if missing:
        raise KnownError(f"{where}: {missing!r} must be given and not be empty")
    for key, value in table.items():
        if not _fits(key, value):
            wanted = {"versions": "a table of package = glob", "rare": "true or false"}
            raise KnownError(f"{where}: {key}={value!r} must be {wanted.get(key, 'text')}")
    return Entry(**table)


def _fits(key: str, value: Any) -> bool:
    """Whether a value is of its key's kind."""
    if key == "versions":
        return isinstance(value, dict) and all(isinstance(glob, str) for glob in value.values())
    return isinstance(value, bool if key == "rare" else str)
