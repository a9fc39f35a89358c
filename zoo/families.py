"""Families of faults that are reported of kernels and models, and members of the zoo that show them
on a CPU.
"""

from __future__ import annotations

from collections.abc import Mapping

FAMILIES: Mapping[str, tuple[str, ...]] = {
    "causal frontier and edges of bands": ("top-left", "self-unseen", "cache-chunk-top-left"),
    "masks lost, inverted or applied in the wrong place": (
        "polarity-flipped",
        "corner-mask-before-scale",
        "block-padding-seen-in-evaluation",
        "cache-one-row-unpadded",
    ),
    "rows that see nothing, and finite sentinels": (
        "empty-row-nan",
        "finite-penalty",
        "softmax-sentinel",
        "corner-softmax-empty-row-gradient",
    ),
    "state, positions and bookkeeping of caches": (
        "cache-length-per-layer",
        "cache-ring-wraps-late",
        "cache-padding-stays",
        "decode-padded-length",
        "corner-long-run-from-zeros",
    ),
    "tails of blocks and special sizes": (
        "ragged-tile-dropped",
        "no-keys-refused",
        "corner-padded-lanes-count",
        "corner-last-rows-unsummed",
        "corner-short-history-lost",
    ),
    "strides, layout and broadcasting": (
        "strides-ignored",
        "corner-broadcast-tail",
        "corner-states-exchanged",
        "block-time-first",
    ),
    "order of axes, heads and features": (
        "heads-modulo",
        "tokens-by-column",
        "corner-mask-heads-by-group",
        "model-features-interleaved",
    ),
    "precision and cancellation": (
        "norm-folded",
        "corner-mean-in-input-format",
        "corner-weights-in-input-format",
        "attack-brain-precision",
    ),
    "numbers that depend on the batch or on the order of calls": (
        "length-scale",
        "last-bit-random",
        "cache-quantized-when-long",
    ),
    "rewrites by compilers and exporters": (
        "scale-magnitude",
        "modes-disagree",
        "loss-smoothing-unmixed",
    ),
    "answers without work": (
        "attack-zeros",
        "attack-memo-by-pointer",
        "attack-every-eighth-call",
        "attack-reference-read",
    ),
    "terms of gradients that are missing or mis-scaled": (
        "query-gradient-zero",
        "corner-first-block-statistics",
        "corner-transposed-when-square",
    ),
    "spectra that are not Hermitian": (
        "nyquist-imaginary",
        "corner-nyquist-doubled",
        "odd-reversed",
    ),
    "random numbers, dropout and modes": ("dropout-in-evaluation", "model-left-in-training"),
    "checks that are too weak": ("attack-zeros", "attack-nan"),
    "indices that are too narrow, here by fewer bits": (
        "embedding-short-ids",
        "corner-short-offset",
        "corner-mask-wraps",
    ),
    "parameters, ties and checkpoints": (
        "model-head-untied",
        "model-step-bias-forgotten",
        "model-first-block-only",
        "training-tied-counted-twice",
    ),
}
