"""Inputs as tests of kernels have them: values from a normal distribution, sizes that are powers of
two or a little ragged, no masks but causal and padding.

Sizes follow the tests of flash-attention (lengths 113 and 203, 128 and 217, grouped heads, causal
from the last key), problems of KernelBench and samples of torch's operators, made smaller where
only the cost would differ.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from assay.properties.case import Case, MaskDraw
from assay.properties.context import Context
from assay.properties.recipe import GIVEN
from assay.spec.ops import op as catalogue


@dataclass(frozen=True)
class Typical:
    """Sizes and attributes of one call.

    given  optional inputs that are there;  mask: of attention and softmax
    """

    dims: Mapping[str, int]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    given: tuple[str, ...] = ()
    mask: MaskDraw | None = None


_PADDING = MaskDraw("prefix", "bool", "keys")
_CAUSAL = {"causal": True}


def _attention(
    queries: int,
    keys: int,
    groups: int,
    attributes: Mapping[str, Any],
    mask: MaskDraw | None = None,
) -> Typical:
    dims = {"B": 2, "H": 4, "Hkv": groups, "L": queries, "S": keys, "D": 64, "Dv": 64}
    return Typical(dims, attributes, mask=mask)


def _rows(width: str, size: int) -> dict[str, int]:
    return {"B": 2, "N": 16, width: size}


def _image(**others: int) -> dict[str, int]:
    return {"B": 2, "n1": 16, "n2": 16, **others}


def _session(sizes: Mapping[str, int], prompt: int, **attributes: Any) -> tuple[Typical, ...]:
    """A prompt and four tokens: alone, padded on the left, and with beams that change places."""
    start, one = f"append {prompt}", "append 1"
    dims = {**sizes, "B": 2, "T": prompt + 4}
    return tuple(
        Typical(dims, {**attributes, **more})
        for more in (
            {"script": (start, one, one, one, one)},
            {"script": (start, one, one, one, one), "pads": (0, 3)},
            {"script": (start, one, "reorder 1 0", one, "reorder 0 0", one, one)},
        )
    )


def _model(dims: Mapping[str, int], **fields: Any) -> tuple[Typical, ...]:
    return (Typical({"B": 2, **dims}, {"config": json.dumps(fields)}),)


_GPT = {"vocabulary": 65, "context": 16, "layers": 2, "heads": 2, "width": 16}
_TOKENS = {"T": 16}
_LAYER = {"B": 2, "T": 16, "S": 12, "F": 32, "M": 64}
_LAYERS = (
    Typical(_LAYER, {"heads": 4, "activation": "gelu"}),
    Typical(_LAYER, {"heads": 4, "norm_first": True}),
    Typical(_LAYER, {"heads": 4, "causal": True}),
    Typical(_LAYER, {"heads": 4}, ("keys",)),
)
_SEQUENCE = {"B": 2, "T": 32, "E": 8}
_CELL = {"B": 4, "T": 10, "I": 16, "Hd": 32}
_POINTWISE = (Typical(_rows("C", 128)),)

TYPICAL: Mapping[str, tuple[Typical, ...]] = {
    "attention": (
        _attention(64, 64, 4, {}),
        _attention(128, 128, 4, _CAUSAL),
        _attention(113, 203, 4, {}),
        _attention(113, 203, 4, {**_CAUSAL, "offset": 90}),
        _attention(128, 128, 2, _CAUSAL),
        _attention(128, 217, 4, {}, _PADDING),
    ),
    "masked_softmax": (
        Typical(_rows("S", 128)),
        Typical(_rows("S", 203), mask=MaskDraw("prefix", "bool", "full")),
    ),
    "layer_norm": (Typical(_rows("C", 128), given=("weight", "bias")),),
    "rms_norm": (Typical(_rows("C", 128), given=("weight",)),),
    "group_norm": (Typical(_image(C=8), {"groups": 4}, ("weight", "bias")),),
    "batch_norm": (Typical(_image(C=8), {}, ("weight", "bias")),),
    "log_softmax": (Typical(_rows("V", 100)),),
    "cross_entropy": (
        Typical({"N": 32, "V": 100}),
        Typical({"N": 32, "V": 100}, {"label_smoothing": 0.1}),
    ),
    "linear": (Typical({"B": 2, "N": 16, "I": 64, "O": 128}, given=("bias",)),),
    "embedding": (Typical({"B": 2, "N": 16, "V": 1000, "D": 64}),),
    **dict.fromkeys(("relu", "silu", "sigmoid", "tanh", "softplus"), _POINTWISE),
    "gelu": (*_POINTWISE, Typical(_rows("C", 128), {"approximate": "tanh"})),
    "dropout": (Typical(_rows("C", 128), {"p": 0.5}),),
    **{
        name: (Typical(_CELL), Typical(_CELL, given=states))
        for name, states in (("rnn", ("h0",)), ("lstm", ("h0", "c0")), ("gru", ("h0",)))
    },
    "convolution": (
        Typical(_image(Cin=3, Cout=8, k1=3, k2=3), {"padding": 1}, ("bias",)),
        Typical(_image(Cin=4, Cout=8, k1=3, k2=3), {"stride": 2, "padding": 1}),
        Typical(_image(Cin=4, Cout=8, k1=3, k2=3), {"padding": 1, "groups": 2}, ("bias",)),
    ),
    "patch_embedding": (
        Typical(_image(Cin=3, D=32, k1=4, k2=4), {}, ("bias",)),
        Typical(_image(Cin=3, D=32, k1=4, k2=4), {}, ("bias", "class_token")),
    ),
    "pooling": (
        Typical(_image(C=4), {"kind": "mean", "window": 2}),
        Typical(_image(C=4), {"kind": "max", "window": 3, "stride": 2, "padding": 1}),
    ),
    "spectral_conv": (
        Typical({"B": 2, "n1": 32, "w": 4}, {"modes": 8}),
        Typical({"B": 2, "n1": 8, "n2": 8, "w": 2}, {"modes": 2}),
    ),
    "spectral_conv_rfft": (Typical({"B": 2, "n1": 32, "w": 4, "Nf": 8}),),
    "fno_block": (Typical({"B": 2, "n1": 32, "w": 4}, {"modes": 8, "activation": "gelu"}),),
    "affine_scan": (Typical(_SEQUENCE), Typical(_SEQUENCE, given=("h0",))),
    "diagonal_ssm": (Typical({**_SEQUENCE, "I": 4, "O": 4}),),
    "compact_ssm": (Typical({**_SEQUENCE, "I": 4, "O": 4}),),
    "causal_conv1d": (Typical({**_SEQUENCE, "Kt": 4}, given=("bias",)),),
    "selective_scan": (
        Typical({**_SEQUENCE, "Ns": 4}, given=("d",)),
        Typical({**_SEQUENCE, "Ns": 4}, given=("d", "h0")),
    ),
    "selective_block": (Typical({**_SEQUENCE, "I": 4, "O": 4, "Ns": 4, "Kt": 4}),),
    "encoder_layer": _LAYERS,
    "decoder_layer": (*_LAYERS, Typical(_LAYER, {"heads": 4}, ("memory_keys",))),
    "kv_cache": (
        *_session({"Nl": 2, "H": 4, "Hkv": 4, "D": 64, "Dv": 64}, 32, capacity=64),
        *_session({"Nl": 2, "H": 4, "Hkv": 2, "D": 64, "Dv": 64}, 32, capacity=64)[:1],
    ),
    "gpt_decode": _session({}, 8, config=json.dumps(_GPT)),
    "mlp": _model({}, inputs=16, hidden=[32, 32], outputs=10),
    "resnet": _model({}, channels=3, spatial=[8, 8], hidden=4, classes=10),
    "vit": _model({}, channels=3, spatial=[8, 8], kernel=[4, 4], width=16, layers=2, classes=10),
    "gpt": _model(_TOKENS, **_GPT),
    "char_gpt": _model(_TOKENS, **_GPT) + _model(_TOKENS, **_GPT, activation="gelu", tied=True),
    "rnn_lm": _model(_TOKENS, vocabulary=27, hidden=16, layers=2),
    "lstm_lm": _model(_TOKENS, vocabulary=27, hidden=8, layers=2),
    "mamba_lm": _model(_TOKENS, vocabulary=27, hidden=8, layers=2, states=4),
    "lstm_regression": _model(_TOKENS, inputs=4, hidden=8, outputs=2, layers=2),
    "fno": _model({}, spatial=[32], modes=[8], width=4, layers=2)
    + _model({}, spatial=[8, 8], modes=[2, 2], width=4, layers=2),
    "language_step": (
        Typical({"B": 2, **_TOKENS}, {"config": json.dumps(_GPT), "optimizer": "adam"}),
        Typical(
            {"B": 2, **_TOKENS},
            {"config": json.dumps(_GPT), "optimizer": "adamw", "weight_decay": 0.01},
        ),
    ),
    "regression_step": (Typical({"B": 8}, {"optimizer": "adam"}),),
}


def typical_cases(ctx: Context, seed: int) -> list[Case]:
    """The calls of the context's op that its adapter takes, with values from ``seed``."""
    made = []
    for place, call in enumerate(TYPICAL.get(ctx.op.name, ())):
        defaults = {a.name: a.default for a in catalogue(ctx.op.name).attributes}
        kept = {n: v for n, v in call.attributes.items() if v != defaults[n]}
        wanted = [*kept, *call.given, *(("mask",) if call.mask else ())]
        dims = dict(call.dims)
        if not all(map(ctx.takes, wanted)) or not _offered(ctx, dims):
            continue
        extra = {GIVEN: list(call.given)}
        values = (seed * len(TYPICAL) + place) % 2**32
        made.append(
            Case(ctx.op.name, ctx.dtype, ctx.mode, values, dims, kept, {}, call.mask, extra=extra)
        )
    return made


def _offered(ctx: Context, dims: Mapping[str, int]) -> bool:
    """Whether the contract offers fewer key heads than query heads, where there are."""
    return ctx.contract.grouped_heads or dims.get("H") == dims.get("Hkv")
