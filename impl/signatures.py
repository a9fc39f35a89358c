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


SIGNATURES: Mapping[str, Signature] = {
    "masked_softmax": Signature(("scores",), {"mask": None}, ("weights",)),
    "attention": Signature(
        ("q", "k", "v"),
        {"mask": None, "causal": False, "offset": 0, "window": None, "scale": None},
        ("out",),
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
