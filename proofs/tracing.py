"""Which functions of the spec take part in an obligation: each says so when it is called.

A profiler makes all that Python does in an obligation take twice as long. Here the spec's functions
get the code that their files compile to with one statement more: the first, which tells their line.
"""

from __future__ import annotations

import ast
import gc
import hashlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import TypeVar

import assay.spec
from assay.proofs.obligation import SpecFunction

T = TypeVar("T")
Place = tuple[str, int]
SPEC = Path(assay.spec.__file__ or "").parent
TELL = "__called__"
"""What a function of the spec tells its place; a global of its module."""

_telling: dict[Place, tuple[CodeType, SpecFunction]] = {}
_called: set[Place] = set()
_ready: set[str] = set()


def traced(run: Callable[[], T]) -> tuple[T, tuple[SpecFunction, ...]]:
    """The result of ``run`` and the spec functions that were called, by name.

    Raises RuntimeError where ``run`` loads a part of the spec, whose calls would not be noted.
    """
    prepare()
    _called.clear()
    result = run()
    if late := _loaded() - _ready:
        raise RuntimeError(f"loaded while calls are noted: {sorted(late)}; valid: none")
    found = (_telling[place][1] for place in _called)
    return result, tuple(sorted(found, key=lambda f: (f.file, f.line)))


def prepare() -> None:
    """Let every function of the spec that is loaded tell when it is called.

    It takes a second once: processes that are forked later need not do it.
    """
    fresh = _loaded() - _ready
    for file in fresh:
        _telling.update(_compiled(file))
    for x in gc.get_objects() if fresh else ():
        # Its type: some objects of other libraries do things when asked for their class.
        if type(x) is FunctionType and (place := _place(x.__code__)) in _telling:
            x.__globals__[TELL] = _called.add
            x.__code__ = _telling[place][0]
    _ready.update(fresh)


def _loaded() -> set[str]:
    """Files of the modules of the spec."""
    name = assay.spec.__name__
    return {m.__file__ or "" for n, m in list(sys.modules.items()) if n.startswith(name)}


def _compiled(file: str) -> Iterator[tuple[Place, tuple[CodeType, SpecFunction]]]:
    """For every function that has a name, the code that tells its place, and what it is."""
    text = Path(file).read_text(encoding="utf-8")
    tree, lines, ends = ast.parse(text), text.splitlines(keepends=True), {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            line = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            ends[line] = node.end_lineno
            (tell,) = ast.parse(f"{TELL}({(file, line)!r})").body
            for part in ast.walk(tell):
                ast.copy_location(part, node)
            node.body.insert(ast.get_docstring(node) is not None, tell)
    for code in _within(compile(tree, file, "exec", dont_inherit=True)):
        if TELL in code.co_names:
            source = "".join(lines[code.co_firstlineno - 1 : ends[code.co_firstlineno]])
            yield _place(code), (code, _described(code, source))


def _within(code: CodeType) -> Iterator[CodeType]:
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield part
            yield from _within(part)


def _place(code: CodeType) -> Place:
    return code.co_filename, code.co_firstlineno


def _described(code: CodeType, source: str) -> SpecFunction:
    path = Path(code.co_filename).relative_to(SPEC)
    module = ".".join((*path.parent.parts, path.stem))
    digest = hashlib.sha256(source.encode()).hexdigest()[:16]
    name = f"{module}.{code.co_qualname}"
    return SpecFunction(name, f"spec/{path.as_posix()}", code.co_firstlineno, digest)
