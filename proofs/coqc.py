"""Whether Coq's compiler is installed, and which one."""

from __future__ import annotations

import shutil
import subprocess
from functools import lru_cache


def available() -> bool:
    """True where coqc is found."""
    return program() is not None


def program() -> str | None:
    """Its path."""
    return shutil.which("coqc")


def absent() -> str:
    """The sentence that stands in place of a result where there is no coqc."""
    return "not run: coqc is not found; to run it: apt-get install coq"


def version() -> str:
    """Coq's version, as ``8.16.1``; ``not found`` without it."""
    return _version(program())


@lru_cache
def _version(path: str | None) -> str:
    if path is None:
        return "not found"
    done = subprocess.run([path, "--print-version"], capture_output=True, text=True, timeout=60)
    return done.stdout.split()[0] if done.stdout else "of unknown version"
