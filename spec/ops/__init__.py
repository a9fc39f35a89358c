"""The catalogue of operators: names, symbolic shapes, attributes, spec functions and bounds."""

from __future__ import annotations

from assay.spec.ops.activation import ACTIVATION
from assay.spec.ops.attention import ATTENTION
from assay.spec.ops.block import BLOCK
from assay.spec.ops.cache import KV_CACHE
from assay.spec.ops.entry import Arrays, Attribute, Input, Op
from assay.spec.ops.linear import LINEAR
from assay.spec.ops.loss import LOSS
from assay.spec.ops.model import MODEL
from assay.spec.ops.norm import NORM
from assay.spec.ops.recurrent import RECURRENT
from assay.spec.ops.scans import SCANS
from assay.spec.ops.softmax import MASKED_SOFTMAX
from assay.spec.ops.spatial import SPATIAL
from assay.spec.ops.spectral import SPECTRAL
from assay.spec.ops.training import TRAINING

__all__ = ["OPS", "Arrays", "Attribute", "Input", "Op", "op"]

OPS: tuple[Op, ...] = (
    MASKED_SOFTMAX,
    ATTENTION,
    KV_CACHE,
    *NORM,
    *LOSS,
    *LINEAR,
    *ACTIVATION,
    *RECURRENT,
    *SPATIAL,
    *SPECTRAL,
    *SCANS,
    *BLOCK,
    *MODEL,
    *TRAINING,
)


def op(name: str) -> Op:
    """The op with this name; KeyError names the valid ones.

    >>> op("attention").required
    ('q', 'k', 'v')
    """
    for entry in OPS:
        if entry.name == name:
            return entry
    raise KeyError(f"op {name!r} does not exist; valid: {', '.join(o.name for o in OPS)}")
