"""Which functions of the spec take part in an obligation: observed while its body runs."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from cProfile import Profile
from pathlib import Path
from types import CodeType
from typing import TypeVar

import assay.spec
from assay.proofs.obligation import SpecFunction

T = TypeVar("T")
SPEC = Path(assay.spec.__file__ or "").parent


def traced(run: Callable[[], T]) -> tuple[T, tuple[SpecFunction, ...]]:
    """The result of ``run`` and the spec functions that were called, by name.

    They are counted in C: a trace function in Python takes as long as the body itself. Raises
    RuntimeError where a profiler is at work already, since Python has room for one.
    """
    if sys.getprofile() is not None:
        raise RuntimeError(f"sys.getprofile()={sys.getprofile()!r} is at work; valid: None")
    calls = Profile(subcalls=False, builtins=False)
    calls.enable()
    try:
        result = run()
    finally:
        calls.disable()
    codes = [entry.code for entry in calls.getstats() if isinstance(entry.code, CodeType)]
    return result, tuple(sorted(_described(codes), key=lambda f: (f.file, f.line)))


def _described(codes: Iterable[CodeType]) -> Iterator[SpecFunction]:
    """Those of the spec that have a name."""
    for code in codes:
        if code.co_filename.startswith(str(SPEC)) and not code.co_name.startswith("<"):
            yield _describe(code)


def _describe(code: CodeType) -> SpecFunction:
    path = Path(code.co_filename)
    digest = hashlib.sha256(inspect.getsource(code).encode()).hexdigest()[:16]
    module = ".".join((*path.relative_to(SPEC).parent.parts, path.stem))
    file = f"spec/{path.relative_to(SPEC).as_posix()}"
    return SpecFunction(f"{module}.{code.co_qualname}", file, code.co_firstlineno, digest)
