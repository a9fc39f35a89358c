"""Which functions of the spec take part in an obligation: observed while its body runs."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, TypeVar

import assay.spec
from assay.proofs.obligation import SpecFunction

T = TypeVar("T")
SPEC = Path(assay.spec.__file__ or "").parent


def traced(run: Callable[[], T]) -> tuple[T, tuple[SpecFunction, ...]]:
    """The result of ``run`` and the spec functions that were called, by name.

    A tracer that is already there, such as a coverage tool's, is left at work.
    """
    seen: dict[CodeType, None] = {}
    folder = str(SPEC)

    def notice(frame: FrameType, event: Any, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(folder):
            seen[frame.f_code] = None

    # A trace function sees Python calls only, so it costs less; where one is at work already, the
    # profile hook is free.
    taken = sys.gettrace() is not None
    get: Callable[[], Any] = sys.getprofile if taken else sys.gettrace
    install: Callable[[Any], None] = sys.setprofile if taken else sys.settrace
    before = get()
    install(notice)
    try:
        result = run()
    finally:
        install(before)
    named = [code for code in seen if not code.co_name.startswith("<")]
    return result, tuple(sorted((_describe(c) for c in named), key=lambda f: (f.file, f.line)))


def _describe(code: CodeType) -> SpecFunction:
    path = Path(code.co_filename)
    digest = hashlib.sha256(inspect.getsource(code).encode()).hexdigest()[:16]
    module = ".".join((*path.relative_to(SPEC).parent.parts, path.stem))
    file = f"spec/{path.relative_to(SPEC).as_posix()}"
    return SpecFunction(f"{module}.{code.co_qualname}", file, code.co_firstlineno, digest)
