"""Faults of whole models, of decoding with them and of transformer layers, and what must find
them.
"""

from __future__ import annotations

from assay.properties.results import Verdict
from assay.zoo.fault import Control, Fault, Hard, Kind

_HOME = "assay.zoo.faults.torch_"


def _fault(
    name: str,
    kind: Kind,
    target: str,
    summary: str,
    *claims: str,
    hint: str = "",
    needs: int = 4,
    hard: Hard = "",
    verdict: Verdict = "violated",
) -> Fault:
    """``name`` begins with its file: model, decode, training or block."""
    files = {
        "model": "models",
        "decode": "decoding",
        "training": "training",
        "block": "blocks",
    }
    place = f"{_HOME}{files[name.partition('-')[0]]}:{target}"
    return Fault(name, kind, place, claims, summary, hint, verdict, needs=needs, hard=hard)


_MODELS: tuple[Fault, ...] = (
    _fault(
        "model-features-interleaved",
        "relation",
        "FeaturesInterleaved",
        "heads are cut from the features the other way",
        "model.layout",
        hard="cancels",
    ),
    _fault(
        "model-head-untied",
        "gradient",
        "HeadUntied",
        "the head has a copy of the token table",
        "model.tied_gradient",
        "model.layout",
        hard="gradient only",
    ),
    _fault("model-state-cut", "value", "StateCut", "a state is made to fit", "model.count"),
    _fault(
        "model-defaults-for-wrong",
        "value",
        "DefaultsForWrong",
        "the default configuration stands in for a wrong one",
        "model.config_rejects",
    ),
    _fault(
        "model-first-error-only",
        "value",
        "FirstErrorOnly",
        "of several wrong fields one is named",
        "model.config_rejects",
        hard="two conditions",
    ),
    _fault(
        "model-rows-shifted",
        "relation",
        "RowsShifted",
        "positions go on from row to row",
        "model.batch_invariant",
        "model.layout",
        hard="cancels",
    ),
    _fault(
        "model-next-token-seen",
        "mask",
        "NextTokenSeen",
        "each token sees the next",
        "model.prefix",
        "model.layout",
    ),
    _fault(
        "model-explicit-without-mask",
        "mask",
        "ExplicitWithoutMask",
        "written out, the first of many tokens sees all",
        "model.sdpa_equals_manual",
        needs=5,
        hard="two conditions",
    ),
    _fault(
        "model-left-in-training",
        "state",
        "LeftInTraining",
        "dropouts drop in evaluation",
        "model.layout",
        verdict="flaky",
        hard="hidden",
    ),
    _fault(
        "model-tanh-for-erf",
        "value",
        "TanhForErf",
        "GELU by tanh where erf is asked for",
        "model.layout",
        hint="gelu_tanh",
        hard="hidden",
    ),
    _fault(
        "model-first-block-only",
        "value",
        "FirstBlockOnly",
        "every block has the parameters of the first",
        "model.layout",
        hard="cancels",
    ),
    _fault(
        "model-skip-out-by-in",
        "relation",
        "SkipOutByIn",
        "the skip is applied transposed",
        "model.layout",
        hint="skip",
        hard="cancels",
    ),
    _fault(
        "model-gates-otherwise",
        "value",
        "GatesOtherwise",
        "stored gates are taken to be in torch's order",
        "model.layout",
        hint="gates",
    ),
    _fault(
        "model-step-bias-forgotten",
        "value",
        "StepBiasForgotten",
        "the bias of the step size is not loaded",
        "model.layout",
        hint="step size",
    ),
)

_DECODING: tuple[Fault, ...] = (
    _fault(
        "decode-padded-length",
        "state",
        "PaddedLength",
        "positions count padding",
        "cache.left_pad@model",
    ),
    _fault(
        "decode-one-layer-reordered",
        "state",
        "OneLayerReordered",
        "rows are reordered in the first layer only",
        "cache.reorder@model",
        hard="cancels",
    ),
    _fault(
        "decode-reset-keeps-first",
        "state",
        "ResetKeepsFirst",
        "the first token survives a reset",
        "cache.reset@model",
    ),
    _fault(
        "decode-chunk-alone",
        "mask",
        "ChunkAlone",
        "a chunk sees nothing of what is held",
        "cache.decode_equals_full@model",
        "cache.chunk_split@model",
        hard="two conditions",
    ),
    _fault(
        "decode-context-restarts",
        "state",
        "ContextRestarts",
        "beyond the context everything is forgotten",
        "cache.capacity@model",
    ),
)

_TRAINING: tuple[Fault, ...] = (
    _fault(
        "training-decay-in-gradient",
        "gradient",
        "DecayInGradient",
        "AdamW decays as Adam does",
        "model.one_step",
        hard="two conditions",
    ),
    _fault(
        "training-saved-in-single-precision",
        "value",
        "SavedInSinglePrecision",
        "a state is saved in float32",
        "model.state_round_trip",
    ),
    _fault(
        "training-tied-counted-twice",
        "value",
        "TiedCountedTwice",
        "a tied table is counted twice",
        "model.trainable_count",
        hard="hidden",
    ),
    _fault(
        "training-library-start",
        "value",
        "LibraryStart",
        "tables start at N(0, 1)",
        "model.initial_loss",
        needs=65,
    ),
    _fault(
        "training-backward-uncounted",
        "value",
        "BackwardUncounted",
        "the backward pass is counted once",
        "model.flops",
    ),
    _fault(
        "training-keys-counted-only",
        "value",
        "KeysCountedOnly",
        "of keys and values the keys are counted",
        "model.cache_bytes",
    ),
    _fault(
        "training-shapes-turned",
        "relation",
        "ShapesTurned",
        "length and width are exchanged in shapes",
        "model.residual_shapes",
        hard="cancels",
    ),
)

_BLOCKS: tuple[Fault, ...] = (
    _fault(
        "block-norms-elsewhere",
        "relation",
        "NormsElsewhere",
        "norms stand after the additions",
        "block.refines",
        hint="after the additions",
    ),
    _fault(
        "block-projection-bias-frozen",
        "gradient",
        "ProjectionBiasFrozen",
        "a bias gets no gradient",
        "block.vjp_refines",
        hard="gradient only",
    ),
    _fault(
        "block-last-token-unpadded",
        "mask",
        "LastTokenUnpadded",
        "the last token is always a key",
        "block.refines",
        "block.padding",
        hard="two conditions",
    ),
    _fault(
        "block-padding-seen-in-evaluation",
        "mask",
        "PaddingSeenInEvaluation",
        "one of two modes sees padding",
        "block.mode_agreement",
        hard="two conditions",
    ),
    _fault(
        "block-causal-averages",
        "mask",
        "CausalAverages",
        "a causal layer reads the mean of all tokens",
        "block.prefix",
        "block.refines",
    ),
    _fault(
        "block-time-first",
        "relation",
        "TimeFirst",
        "rows and tokens are exchanged in square batches",
        "block.refines",
        hard="two conditions",
    ),
    _fault(
        "block-first-row-mixed",
        "relation",
        "FirstRowMixed",
        "each row reads a little of the first",
        "block.batch_invariant",
    ),
    _fault(
        "block-memory-padding-seen",
        "mask",
        "MemoryPaddingSeen",
        "the memory's padding is seen where there is other padding",
        "block.refines",
        hard="two conditions",
    ),
)

MODEL_FAULTS: tuple[Fault, ...] = (*_MODELS, *_DECODING, *_TRAINING, *_BLOCKS)

MODEL_CONTROLS: tuple[Control, ...] = (
    Control("transformers", "assay.zoo.torch_sound:Transformers", "both transformers in torch"),
    Control("recurrents", "assay.zoo.torch_sound:Recurrents", "LSTM and Mamba in torch"),
    Control("token-decoding", "assay.zoo.torch_sound:TokenDecoding", "a growing cache in torch"),
)
