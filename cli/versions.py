"""Versions of this package, of Python and of the machine, for reports."""

from __future__ import annotations

import platform
from importlib import metadata

UNINSTALLED = "0 (not installed)"
"""Shown when the package runs from a source tree that was never installed."""


def own_version() -> str:
    """The installed version of assay."""
    try:
        return metadata.version("assay")
    except metadata.PackageNotFoundError:
        return UNINSTALLED


def machine() -> str:
    """The machine in a few words: system, processor, Python."""
    return f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
