"""Published values of softmax and attention, certified by Arb balls and met by the spec in
float64.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assay.proofs.scalars.balls import Ball, precision
from assay.proofs.scalars.rationals import array
from assay.spec.attention import attention
from assay.spec.softmax import masked_softmax

GOLDEN: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "golden" / "certified.json").read_text()
)
TOLERANCE = 2e-15  # two units in the last place of values below 8


def far(balls: np.ndarray, values: np.ndarray) -> float:
    pairs = zip(balls.ravel(), values.ravel(), strict=True)
    return max(Ball(b).distance(float(v)) for b, v in pairs)


@pytest.mark.parametrize("entry", GOLDEN["softmax"], ids=lambda e: e["name"])
def test_softmax(entry: dict[str, Any]) -> None:
    scores, allowed = np.array(entry["scores"], float), np.array(entry["allowed"], bool)
    with precision(120):
        balls = masked_softmax(array(scores, Ball), allowed)
        assert far(balls, np.array(entry["expected"], float)) < TOLERANCE
        assert far(balls, masked_softmax(scores, allowed)) < TOLERANCE


@pytest.mark.parametrize("entry", GOLDEN["attention"], ids=lambda e: e["name"])
def test_attention(entry: dict[str, Any]) -> None:
    q, k, v = (np.array(entry[n], float)[None, None] for n in "qkv")
    with precision(120):
        balls = attention(*(array(x, Ball) for x in (q, k, v)), causal=entry["causal"])
        assert far(balls, np.array(entry["expected"])) < TOLERANCE
        assert far(balls, attention(q, k, v, causal=entry["causal"])) < TOLERANCE


def test_a_wrong_digit_is_noticed() -> None:
    (entry,) = [e for e in GOLDEN["attention"] if e["name"] == "full, three tokens"]
    q, k, v = (array(np.array(entry[n], float)[None, None], Ball) for n in "qkv")
    wrong = np.array(entry["expected"])
    wrong[1, 0] += 1e-14
    with precision(120):
        assert far(attention(q, k, v), wrong) > TOLERANCE
