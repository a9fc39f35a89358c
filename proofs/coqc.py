"""Whether Coq's compiler is installed, which one, and where the processes of a run keep what it
made.
"""

from __future__ import annotations

import atexit
import os
import secrets
import shutil
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path


def shared() -> Path:
    """The folder of one run, which may not be there yet: the first process to ask chooses its
    name, those that it starts inherit it, and the first one removes it, also after a worker that
    was killed.
    """
    name = os.environ.get("ASSAY_COQ_OBJECTS")
    if name is None:
        name = f"{tempfile.gettempdir()}/assay-coq-{secrets.token_hex(8)}"
        os.environ["ASSAY_COQ_OBJECTS"] = name
        atexit.register(shutil.rmtree, name, ignore_errors=True)
    return Path(name)


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
