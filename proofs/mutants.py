"""Mutants of spec functions: the function's own source with one edit, so that a twin differs in
nothing else.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from typing import Any


def mutant(function: Callable[..., Any], old: str, new: str) -> Callable[..., Any]:
    """``function`` with its only occurrence of ``old`` replaced by ``new``; the original is
    untouched.

    Raises ValueError when ``old`` does not occur exactly once: the spec has changed, and so must
    the twin.
    """
    source = textwrap.dedent(inspect.getsource(function))
    if source.count(old) != 1:
        raise ValueError(
            f"old={old!r} occurs {source.count(old)} times in {function.__qualname__}; valid: once"
        )
    return _run(function, source.replace(old, new), {})


def rebound(function: Callable[..., Any], **names: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` with the spec functions that it calls replaced, as by a mutant of an inner
    one.
    """
    missing = sorted(set(names) - set(function.__code__.co_names))
    if missing:
        raise ValueError(f"names={missing!r} are not used by {function.__qualname__}")
    return _run(function, textwrap.dedent(inspect.getsource(function)), names)


def _run(function: Callable[..., Any], source: str, names: dict[str, Any]) -> Callable[..., Any]:
    namespace = {**vars(inspect.getmodule(function)), **names}
    label = f"<mutant of {function.__qualname__}>"
    # Later annotations are text in the original module, and must stay so here.
    exec(compile("from __future__ import annotations\n" + source, label, "exec"), namespace)
    return namespace[function.__name__]
