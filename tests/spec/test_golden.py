"""The spec reproduces values whose origin is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assay.spec.attention import attention, flash_attention
from assay.spec.masks import causal_mask
from assay.spec.online import online_softmax
from assay.spec.softmax import masked_softmax

ENTRIES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "golden" / "attention.json").read_text()
)


def entries(kind: str) -> pytest.MarkDecorator:
    chosen = [pytest.param(e, id=e["name"]) for e in ENTRIES if e["kind"] == kind]
    return pytest.mark.parametrize("entry", chosen)


def check(entry: dict[str, Any], got: np.ndarray) -> None:
    want = np.array(entry["expected"], dtype=np.float64)
    assert got.shape == want.shape
    assert np.max(np.abs(got - want)) <= entry["error"]


@entries("attention")
def test_attention_equals_worked_example(entry: dict[str, Any]) -> None:
    q, k, v = (np.array(entry[name], dtype=np.float64)[None, None] for name in "qkv")
    check(entry, attention(q, k, v, causal=entry["causal"])[0, 0])
    check(entry, flash_attention(q, k, v, block=2, causal=entry["causal"])[0, 0])


@entries("mask")
def test_causal_mask_equals_worked_example(entry: dict[str, Any]) -> None:
    check(entry, causal_mask(entry["queries"], entry["keys"], entry["offset"]).astype(float))


@entries("softmax")
def test_softmax_equals_worked_example(entry: dict[str, Any]) -> None:
    scores = np.array(entry["scores"], dtype=np.float64)
    allowed = np.array(entry["allowed"], dtype=bool)
    check(entry, masked_softmax(scores, allowed))
    check(entry, online_softmax(scores, allowed, block=2))


def test_every_entry_says_where_it_comes_from() -> None:
    assert len(ENTRIES) >= 12
    assert all(len(entry["origin"]) > 20 for entry in ENTRIES)
