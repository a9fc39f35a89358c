"""Faults of layers, and what must find them."""

from __future__ import annotations

from assay.zoo.fault import Control, Fault, Kind

_HOME = "assay.zoo.faults.layers"
_SOUND = "assay.zoo.sound_layers"


def _fault(
    name: str, kind: Kind, target: str, summary: str, *claims: str, hint: str = "", needs: int = 5
) -> Fault:
    return Fault(name, kind, f"{_HOME}:{target}", claims, summary, hint=hint, needs=needs)


LAYER_FAULTS: tuple[Fault, ...] = (
    _fault(
        "gelu-tanh-for-erf",
        "value",
        "TanhForErf",
        "both forms are computed by tanh",
        "activation.refines",
        "activation.vjp_refines",
        "activation.gelu_variant",
        hint="tanh form for the erf form",
    ),
    _fault(
        "softplus-overflow",
        "value",
        "SoftplusOverflow",
        "log(1 + exp(x)) overflows",
        "activation.tails",
        hint="infinity",
    ),
    _fault(
        "linear-ragged",
        "tile",
        "RaggedInputs",
        "the last block of inputs is left out",
        "linear.refines",
        needs=17,
    ),
    _fault(
        "linear-gradient-mean",
        "gradient",
        "WeightGradientSmaller",
        "the weight's gradient is a mean over rows",
        "linear.vjp_refines",
    ),
    _fault(
        "embedding-short-ids",
        "value",
        "ShortIds",
        "identifiers have 15 bits",
        "embedding.large_vocabulary",
        needs=16_384,
    ),
    _fault(
        "embedding-padding-gradient",
        "gradient",
        "PaddingGradient",
        "the padding row gets a gradient",
        "embedding.vjp_refines",
        "embedding.padding_row_zero_grad",
    ),
    _fault(
        "embedding-last-use",
        "gradient",
        "LastUseWins",
        "gradients of repeated identifiers are not added",
        "embedding.vjp_refines",
    ),
    _fault(
        "embedding-rounded",
        "value",
        "TableInBfloat16",
        "rows are rounded",
        "embedding.refines",
    ),
    _fault(
        "dropout-multiplied",
        "mask",
        "MultipliedMask",
        "dropped entries are multiplied by 0",
        "dropout.dropped_zero",
        hint="NaN",
    ),
    _fault(
        "dropout-in-evaluation",
        "value",
        "AlwaysDropping",
        "masks are applied outside of training",
        "dropout.refines",
        "dropout.evaluation",
        hint="training is ignored",
    ),
    _fault(
        "dropout-gradient-unscaled",
        "gradient",
        "UnscaledGradient",
        "the gradient is not divided by 1 - p",
        "dropout.vjp_refines",
    ),
    _fault(
        "norm-folded",
        "value",
        "FoldedNorm",
        "x * rate - mean * rate does not cancel",
        "norm.one_feature",
        "norm.constant_slice",
    ),
    _fault(
        "norm-eps-outside",
        "value",
        "EpsOutside",
        "eps is added outside of the root",
        "norm.refines",
        "norm.vjp_refines",
        "norm.scale",
        hint="outside of the root",
    ),
    _fault(
        "norm-uncentred",
        "value",
        "UncentredNorm",
        "the mean is not subtracted",
        "norm.refines",
        "norm.constant_slice",
        "norm.shift",
    ),
    _fault(
        "norm-gradient-uncentred",
        "gradient",
        "GradientUncentred",
        "the gradient lacks the mean's term",
        "norm.vjp_refines",
        "norm.grad_sums_zero",
    ),
    _fault(
        "loss-unshifted",
        "value",
        "EntropyUnshifted",
        "exp overflows",
        "loss.stable_logits",
    ),
    _fault(
        "loss-short-vocabulary",
        "value",
        "ShortVocabulary",
        "classes have 15 bits",
        "loss.large_vocabulary",
        needs=32_768,
    ),
    _fault(
        "loss-ignored-multiplied",
        "mask",
        "IgnoredRowsSpread",
        "gradients into ignored rows are 0 times their logits",
        "loss.ignore_index",
        hint="NaN",
    ),
    _fault(
        "loss-ignored-counted",
        "mask",
        "IgnoredRowsCount",
        "ignored rows count in the mean",
        "loss.refines",
        "loss.all_ignored",
        "loss.reduction",
    ),
    _fault(
        "loss-smoothing-unmixed",
        "value",
        "SmoothingUnmixed",
        "smoothing is added and not mixed",
        "loss.refines",
        "loss.label_smoothing",
    ),
    _fault(
        "loss-gradient-unnormalised",
        "gradient",
        "EntropyGradientUnnormalised",
        "the gradient does not sum to 0",
        "loss.vjp_refines",
        "loss.grad_sums_zero",
    ),
    _fault(
        "loss-shift-leaks",
        "relation",
        "BiasedByShift",
        "the loss depends on the largest logit",
        "loss.refines",
        "loss.shift",
    ),
)

LAYER_CONTROLS: tuple[Control, ...] = (
    Control("gelu", f"{_SOUND}:Gelu", "GELU by erfc"),
    Control("softplus", f"{_SOUND}:Softplus", "softplus by log1p"),
    Control("linear", f"{_SOUND}:Linear", "linear maps by blocks, the last first"),
    Control("embedding", f"{_SOUND}:Embedding", "embeddings, gradients one by one"),
    Control("dropout", f"{_SOUND}:Dropout", "dropout by a choice"),
    Control("layer-norm", f"{_SOUND}:LayerNorm", "layer norm in two passes"),
    Control("cross-entropy", f"{_SOUND}:Entropy", "cross-entropy by blocks"),
)
