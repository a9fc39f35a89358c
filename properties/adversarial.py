"""What a backend that may try to look right instead of being right must not read: the spec, the
properties and proofs, and the journal with the seed and the examples.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import assay
from assay.impl.adversarial_session import Adversary

_CLOSED = ("spec", "properties", "proofs")


def adversary(seed: int | None = None, directory: Path | None = None) -> Adversary:
    """``seed``: of a campaign, None for a fresh one; ``directory``: of its journal."""
    package = Path(assay.__file__).parent
    folders = [package / name for name in _CLOSED] + ([] if directory is None else [directory])
    return Adversary(
        seed=secrets.randbits(32) if seed is None else seed,
        closed=tuple(os.path.realpath(folder) for folder in folders),
    )
