"""Names of the ops' inputs, keywords and outputs: what an adapter is called with and what it gives
back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Signature:
    """How an adapter of one op is called.

    inputs    arrays passed by position, in this order
    keywords  passed by keyword when they differ from the default given here (an optional array has
              None)
    outputs   one name: the adapter returns the array; more: a tuple in this order
    """

    inputs: tuple[str, ...]
    keywords: Mapping[str, Any]
    outputs: tuple[str, ...]

    @property
    def cotangents(self) -> dict[str, str]:
        """The keyword of each output's cotangent: the output's name, and ``_cotangent`` behind it
        where an input is called the same.

        >>> SIGNATURES["causal_conv1d"].cotangents
        {'out': 'out', 'history': 'history_cotangent'}
        """
        taken = (*self.inputs, *self.keywords)
        return {n: f"{n}_cotangent" if n in taken else n for n in self.outputs}


STEP: Mapping[str, Any] = {
    "optimizer": "adamw",
    "lr": 1e-3,
    "betas": (0.9, 0.999),
    "eps": 1e-8,
    "weight_decay": 0.01,
    "steps": 1,
}
"""Keywords of a training step."""

_SELF = ("qkv", "qkv_bias", "out_proj", "out_proj_bias")
_REST = ("up", "up_bias", "down", "down_bias", "norm1", "norm1_bias", "norm2", "norm2_bias")
_LAYER = {"keys": None, "heads": 1, "causal": False, "norm_first": False, "activation": "relu"}

SIGNATURES: Mapping[str, Signature] = {
    "masked_softmax": Signature(("scores",), {"mask": None}, ("weights",)),
    "attention": Signature(
        ("q", "k", "v"),
        {"mask": None, "causal": False, "offset": 0, "window": None, "scale": None},
        ("out",),
    ),
    "kv_cache": Signature(
        ("q", "k", "v"),
        {"script": (), "capacity": None, "pads": (), "rolling": False},
        ("out", "positions", "keys", "values", "lengths", "refused"),
    ),
    "rnn": Signature(
        ("x", "weight", "bias"), {"h0": None, "lengths": None, "reverse": False}, ("out", "h")
    ),
    "lstm": Signature(
        ("x", "weight", "bias"),
        {"h0": None, "c0": None, "lengths": None, "reverse": False},
        ("out", "h", "c"),
    ),
    "gru": Signature(
        ("x", "weight", "bias"),
        {
            "hidden_bias": None,
            "h0": None,
            "lengths": None,
            "reverse": False,
            "reset_after": False,
        },
        ("out", "h"),
    ),
    "convolution": Signature(
        ("x", "weight"),
        {"bias": None, "stride": 1, "padding": 0, "dilation": 1, "groups": 1},
        ("out",),
    ),
    "patch_embedding": Signature(
        ("x", "weight"),
        {"bias": None, "class_token": None, "stride": None, "padding": 0},
        ("tokens",),
    ),
    "pooling": Signature(
        ("x",), {"kind": "mean", "window": None, "stride": None, "padding": 0}, ("out",)
    ),
    "spectral_conv": Signature(("x", "re", "im"), {"modes": None}, ("out",)),
    "spectral_conv_rfft": Signature(("x", "re", "im"), {}, ("out",)),
    "fno_block": Signature(
        ("x", "re", "im", "skip", "bias"),
        {"modes": None, "activation": "tanh", "half": False},
        ("out",),
    ),
    "affine_scan": Signature(("a", "b", "x"), {"h0": None}, ("states",)),
    "diagonal_ssm": Signature(
        ("x", "a", "b", "c", "d", "in_proj", "readout"), {"h0": None}, ("out", "state")
    ),
    "compact_ssm": Signature(
        ("x", "a", "b", "c", "d", "in_proj", "gate_proj", "out_proj"),
        {"h0": None},
        ("out", "state"),
    ),
    "causal_conv1d": Signature(
        ("x", "weight"), {"bias": None, "history": None}, ("out", "history")
    ),
    "selective_scan": Signature(
        ("u", "delta", "a", "b", "c"), {"d": None, "h0": None}, ("out", "state")
    ),
    "selective_block": Signature(
        (
            "x",
            "x_proj",
            "z_proj",
            "kernel",
            "conv_bias",
            "dt_proj",
            "dt_bias",
            "a",
            "b_proj",
            "c_proj",
            "d_skip",
            "out_proj",
        ),
        {"h0": None, "history": None},
        ("out", "state", "history"),
    ),
    "encoder_layer": Signature(("x", *_SELF, *_REST), _LAYER, ("out",)),
    "decoder_layer": Signature(
        (
            "x",
            "memory",
            *_SELF,
            "cross_qkv",
            "cross_qkv_bias",
            "cross_proj",
            "cross_proj_bias",
            *_REST,
            "norm3",
            "norm3_bias",
        ),
        {**_LAYER, "memory_keys": None},
        ("out",),
    ),
    "mlp": Signature(
        ("state", "x"), {"config": '{"inputs": 3, "hidden": [5], "outputs": 4}'}, ("out",)
    ),
    "resnet": Signature(
        ("state", "x"),
        {"config": '{"channels": 4, "spatial": [5, 6], "hidden": 2, "classes": 7}'},
        ("out",),
    ),
    "gpt": Signature(
        ("state", "ids"),
        {"config": '{"vocabulary": 7, "context": 6, "layers": 1, "heads": 2, "width": 4}'},
        ("out",),
    ),
    "gpt_decode": Signature(
        ("state", "ids"),
        {
            "config": '{"vocabulary": 7, "context": 6, "layers": 1, "heads": 2, "width": 4}',
            "script": (),
            "pads": (),
        },
        ("out", "lengths", "refused"),
    ),
    "char_gpt": Signature(
        ("state", "ids"),
        {"config": '{"vocabulary": 7, "context": 6, "layers": 1, "heads": 2, "width": 4}'},
        ("out",),
    ),
    "vit": Signature(
        ("state", "x"),
        {"config": '{"channels": 4, "spatial": [5, 6], "kernel": [2, 3], "classes": 7}'},
        ("out",),
    ),
    "rnn_lm": Signature(("state", "x"), {"config": '{"vocabulary": 7, "hidden": 2}'}, ("out",)),
    "lstm_lm": Signature(("state", "x"), {"config": '{"vocabulary": 7, "hidden": 2}'}, ("out",)),
    "mamba_lm": Signature(
        ("state", "x"), {"config": '{"vocabulary": 7, "hidden": 2, "states": 3}'}, ("out",)
    ),
    "lstm_regression": Signature(
        ("state", "x"), {"config": '{"inputs": 3, "hidden": 2, "outputs": 4}'}, ("out",)
    ),
    "fno": Signature(
        ("state", "x"), {"config": '{"spatial": [5, 6], "modes": [2, 2], "width": 3}'}, ("out",)
    ),
    "language_step": Signature(
        ("state", "ids", "targets"),
        {
            "model": "gpt",
            "config": '{"vocabulary": 7, "context": 6, "layers": 1, "heads": 2, "width": 4}',
            **STEP,
        },
        ("losses", "state"),
    ),
    "regression_step": Signature(
        ("state", "x", "targets"),
        {"model": "mlp", "config": '{"inputs": 3, "hidden": [5], "outputs": 4}', **STEP},
        ("losses", "state"),
    ),
    "model_state": Signature(
        ("state",),
        {"model": "mlp", "config": '{"inputs": 3, "hidden": [5], "outputs": 4}'},
        ("octets", "trained"),
    ),
    "model_trace": Signature(
        ("state",),
        {
            "model": "resnet",
            "config": '{"channels": 4, "spatial": [5, 6], "hidden": 2, "classes": 7}',
            "batch": 1,
            "tokens": 1,
        },
        ("flops", "cache", "branches"),
    ),
    "initial_loss": Signature(
        ("weights", "ids", "targets"),
        {
            "model": "gpt",
            "config": '{"vocabulary": 7, "context": 6, "layers": 1, "heads": 2, "width": 4}',
            "seed": 0,
        },
        ("loss",),
    ),
    "linear": Signature(("x", "weight"), {"bias": None}, ("out",)),
    "embedding": Signature(("ids", "table"), {"padding_idx": None}, ("out",)),
    "layer_norm": Signature(("x",), {"weight": None, "bias": None, "eps": 1e-5}, ("out",)),
    "rms_norm": Signature(("x",), {"weight": None, "eps": 1e-5}, ("out",)),
    "group_norm": Signature(
        ("x",), {"weight": None, "bias": None, "groups": 1, "eps": 1e-5}, ("out",)
    ),
    "batch_norm": Signature(("x",), {"weight": None, "bias": None, "eps": 1e-5}, ("out",)),
    "relu": Signature(("x",), {}, ("out",)),
    "gelu": Signature(("x",), {"approximate": "none"}, ("out",)),
    "silu": Signature(("x",), {}, ("out",)),
    "sigmoid": Signature(("x",), {}, ("out",)),
    "tanh": Signature(("x",), {}, ("out",)),
    "softplus": Signature(("x",), {}, ("out",)),
    "dropout": Signature(("x", "keep"), {"p": 0.5, "training": True}, ("out",)),
    "log_softmax": Signature(("x",), {}, ("out",)),
    "cross_entropy": Signature(
        ("logits", "targets"),
        {
            "ignore_index": -100,
            "label_smoothing": 0.0,
            "reduction": "mean",
            "all_ignored": "nan",
        },
        ("loss",),
    ),
}

ALIASES: Mapping[str, str] = {
    "attn_mask": "mask",
    "is_causal": "causal",
    "sm_scale": "scale",
    "softmax_scale": "scale",
}
"""Spellings that adapters may use for a keyword; both are understood."""


def signature(op: str) -> Signature:
    """The signature of ``op``; ValueError names the valid ops.

    >>> signature("attention").inputs
    ('q', 'k', 'v')
    """
    if op not in SIGNATURES:
        raise ValueError(
            f"op={op!r} is not in the catalogue; valid: {', '.join(sorted(SIGNATURES))}"
        )
    return SIGNATURES[op]
