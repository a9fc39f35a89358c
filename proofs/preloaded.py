"""What the process that workers are forked from loads, and does once for all of them."""

from __future__ import annotations

from assay.proofs import obligations, settling, tracing

__all__ = ["obligations", "settling"]
tracing.prepare()
