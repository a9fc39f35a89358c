"""Mutants of spec functions: the function's own source with one edit, so that a twin differs in nothing else."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from typing import Any


def mutant(function: Callable[..., Any], old: str, new: str, **names: Any) -> Callable[..., Any]:
    """``function`` with its only occurrence of ``old`` replaced by ``new``; the original is untouched.

    names  globals to replace beside it, such as an inner function by its own mutant. With
           ``old`` == ``new`` nothing but these is changed.

    Raises ValueError when ``old`` does not occur exactly once: the spec has changed, and so must the twin.
    """
    source = textwrap.dedent(inspect.getsource(function))
    if source.count(old) != 1:
        raise ValueError(
            f"old={old!r} occurs {source.count(old)} times in {function.__qualname__}; valid: once"
        )
    module: Any = inspect.getmodule(function)
    namespace = {**vars(module), **names}
    exec(compile(source.replace(old, new), f"<mutant of {function.__qualname__}>", "exec"), namespace)
    return namespace[function.__name__]
