"""assay: does this kernel compute what the mathematics says, and how do we know?"""

from __future__ import annotations

from pathlib import Path

_FOLDERS = ("cli", "impl", "proofs", "properties", "spec", "zoo")


def _check_folders(package: Path) -> None:
    """In a checkout each folder is a symlink, and a checkout without symlinks is an empty package."""
    missing = [name for name in _FOLDERS if not (package / name).is_dir()]
    if missing:
        raise ImportError(
            f"{package} lacks its folders {', '.join(missing)}. In a checkout they are symbolic "
            "links to the folders at its root: run `git config core.symlinks true` and "
            "`git checkout -- src/assay` there. Otherwise install assay again."
        )


_check_folders(Path(__file__).parent)
