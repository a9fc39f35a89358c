"""The backend's own source, and what of it a stand-alone script must carry along."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import assay

STAND_INS: tuple[str, ...] = (
    "assay",
    "assay.impl",
    "assay.impl.contract",
    "assay.impl.protocol",
    "assay.impl.jax_backend",
    "assay.impl.numpy_backend",
    "assay.impl.torch_backend",
)
"""Modules that a script replaces by a few lines: what adapters import from them is all defined
there.
"""


@dataclass(frozen=True)
class Embedded:
    """A module to carry along: its name, its file and its text."""

    name: str
    path: Path
    source: str


def embed(name: str, path: Path) -> tuple[Embedded, ...]:
    """The module in ``path`` under ``name``, after every module of assay, or file beside it, that
    it imports.
    """
    found: dict[str, Embedded] = {}
    _collect(name, path, found, set())
    return tuple(found.values())


def _collect(name: str, path: Path, found: dict[str, Embedded], open_: set[str]) -> None:
    if name in found or name in open_:
        return
    open_.add(name)
    source = path.read_text(encoding="utf-8")
    for wanted in _imports(ast.parse(source)):
        if wanted in STAND_INS:
            continue
        place = _of_assay(wanted) if wanted.startswith("assay.") else _beside(path, wanted)
        if place is not None:
            _collect(wanted, place, found, open_)
    found[name] = Embedded(name, path, source)


def _imports(tree: ast.AST) -> Iterator[str]:
    """Every dotted name that may be an imported module, nearest meaning first."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module
            if node.module not in STAND_INS[2:]:
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _of_assay(name: str) -> Path | None:
    """The file of a module of assay; None for a package (its parts are named one by one) or
    anything else. Found without importing: a backend's module would load its library.
    """
    place = Path(assay.__file__).parent.joinpath(*name.split(".")[1:]).with_suffix(".py")
    return place if place.is_file() else None


def _beside(path: Path, name: str) -> Path | None:
    """A file in the same folder that ``name`` would import."""
    place = path.with_name(f"{name}.py")
    return place if name.isidentifier() and place.is_file() else None


def quoted(source: str) -> str:
    r"""``source`` as a literal that stays readable: a raw triple-quoted string where it can be one.

    >>> print(quoted("x = 1\n"))
    r'''
    x = 1
    '''
    """
    for quote in ("'''", '"""'):
        if quote not in source and not source.endswith(("\\", quote[0])):
            # The first line break keeps the text at the margin; a blank first line does not change
            # a module.
            return f"r{quote}\n{source}{quote}"
    return "(\n" + "\n".join(f"    {line!r}" for line in source.splitlines(keepends=True)) + "\n)"
