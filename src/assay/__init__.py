"""assay: does this kernel compute what the mathematics says, and how do we know?

import assay
result = assay.run("my_kernels.py:MyBackend", profile="quick")
assay.assert_conforms(my_attention, op="attention")
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.properties.api import assert_conforms, run
    from assay.properties.results import Cell, Finding, Result

__all__ = ["Cell", "Finding", "Result", "assert_conforms", "run"]

_LAZY = {
    "run": "assay.properties.api",
    "assert_conforms": "assay.properties.api",
    "Result": "assay.properties.results",
    "Finding": "assay.properties.results",
    "Cell": "assay.properties.results",
}
_FOLDERS = ("cli", "impl", "proofs", "properties", "spec", "zoo")


def _check_folders(package: Path) -> None:
    """Each folder of a checkout is a symlink; without symlinks the package is empty."""
    missing = [name for name in _FOLDERS if not (package / name).is_dir()]
    if missing:
        raise ImportError(
            f"{package} lacks its folders {', '.join(missing)}. In a checkout they are symbolic "
            "links to the folders at its root: run `git config core.symlinks true` and "
            "`git checkout -- src/assay` there. Otherwise install assay again."
        )


_check_folders(Path(__file__).parent)


def __getattr__(name: str) -> Any:
    """Load the entry points on first use: ``import assay`` stays cheap."""
    if name not in _LAZY:
        raise AttributeError(
            f"module 'assay' has no attribute {name!r}; it offers {', '.join(__all__)}"
        )
    return getattr(importlib.import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
