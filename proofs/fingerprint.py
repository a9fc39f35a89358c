"""What an outcome rests on, as one hash: every source file that takes part, and the solvers'
versions.

The sources are found without running anything: a theorem's module, what it imports from ``proofs``
and ``spec``, what these import, and the machinery that settles it. So the hash also changes when
only a comment does. That costs a proof; a finer hash could miss a change.
"""

from __future__ import annotations

import ast
import hashlib
import platform
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path

import assay.spec
from assay.proofs import coqc

ROOT = Path(assay.spec.__file__ or "").parents[1]
MACHINERY = "assay.proofs.settling"
SOFTWARE = ("z3-solver", "cvc5", "bitwuzla", "sympy", "python-flint", "numpy")
KERNEL = "assay.proofs.kernel"
DATA = {KERNEL: "coq"}
"""Modules that read more than Python sources, and the folder beside them that they read."""


@cache
def fingerprint(theorem: str) -> str:
    """The hash for the obligations of one theorem module, such as
    ``assay.proofs.theorems.masks``.

    >>> len(fingerprint("assay.proofs.theorems.masks"))
    16
    """
    files = sources(theorem) | sources(MACHINERY)
    coq = (f"coq {coqc.version()}",) if _file(KERNEL) in files else ()
    digest = hashlib.sha256("\n".join((*versions(), *coq)).encode())
    for path in sorted(files):
        digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0")
        digest.update(_digest(path))
    return digest.hexdigest()[:16]


@cache
def versions() -> tuple[str, ...]:
    """The interpreter, the machine and what computes, each with its version."""
    own = (f"python {platform.python_version()}", platform.machine())
    return (*own, *(f"{name} {_version(name)}" for name in SOFTWARE))


@cache
def sources(module: str) -> frozenset[Path]:
    """The files of a module and of all that it imports from this package, directly or not."""
    found: set[Path] = set()
    pending = [module]
    while pending:
        name = pending.pop()
        path = _file(name)
        if path is None or path in found:
            continue
        found.add(path)
        folder = DATA.get(name)
        if folder is not None:
            found.update(p for p in (path.parent / folder).rglob("*") if p.is_file())
        pending += _imports(path)
        pending += [name.rpartition(".")[0]]
    return frozenset(found)


def _file(module: str) -> Path | None:
    """The source of a module of this package; None for others and for names in a module."""
    head, *parts = module.split(".")
    if head != "assay" or not parts:
        return None
    stem = ROOT.joinpath(*parts)
    choices = (stem.with_suffix(".py"), stem / "__init__.py")
    return next((path for path in choices if path.is_file()), None)


@cache
def _imports(path: Path) -> tuple[str, ...]:
    return tuple(_names(ast.parse(path.read_text(encoding="utf-8"))))


def _names(tree: ast.AST) -> Iterator[str]:
    """Everything imported, also within functions; what is imported from a module may be one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def _digest(path: Path) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "-"
