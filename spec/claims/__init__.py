"""The claims: every statement that must hold of an op, with its formula. Evidence is supplied by
proofs and properties.
"""

from __future__ import annotations

from assay.spec.claims.activation import ACTIVATION
from assay.spec.claims.attention import ATTENTION
from assay.spec.claims.block import BLOCK
from assay.spec.claims.bounds import BOUNDS
from assay.spec.claims.cache import CACHE
from assay.spec.claims.entry import Claim, Kind
from assay.spec.claims.hygiene import HYGIENE
from assay.spec.claims.linear import LINEAR
from assay.spec.claims.loss import LOSS
from assay.spec.claims.models import MODELS
from assay.spec.claims.norm import NORM
from assay.spec.claims.recurrent import RECURRENT
from assay.spec.claims.scans import SCANS
from assay.spec.claims.softmax import SOFTMAX
from assay.spec.claims.spatial import SPATIAL
from assay.spec.claims.spectral import SPECTRAL

__all__ = [
    "ACTIVATION",
    "ATTENTION",
    "BLOCK",
    "BOUNDS",
    "CACHE",
    "CLAIMS",
    "HYGIENE",
    "LINEAR",
    "LOSS",
    "MODELS",
    "NORM",
    "RECURRENT",
    "SCANS",
    "SOFTMAX",
    "SPATIAL",
    "SPECTRAL",
    "Claim",
    "Kind",
    "claim",
]

CLAIMS: tuple[Claim, ...] = (
    *SOFTMAX,
    *ATTENTION,
    *CACHE,
    *RECURRENT,
    *MODELS,
    *ACTIVATION,
    *LINEAR,
    *LOSS,
    *NORM,
    *SCANS,
    *SPATIAL,
    *SPECTRAL,
    *BLOCK,
    *BOUNDS,
    *HYGIENE,
)


def claim(claim_id: str) -> Claim:
    """The claim with this id; KeyError names the valid ones.

    >>> claim("softmax.row_sum").kind
    'value'
    """
    for entry in CLAIMS:
        if entry.id == claim_id:
            return entry
    raise KeyError(f"claim {claim_id!r} does not exist; valid: {', '.join(c.id for c in CLAIMS)}")
