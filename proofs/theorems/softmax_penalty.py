"""Finite penalties, exhaustively: which of them round to weight 0 in float16 and bfloat16.

bfloat16 is computed in float32 and rounded to nearest even when it is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from assay.proofs.obligation import Case, Obligation, Twin
from assay.spec.softmax import penalty_softmax

# The smallest penalty whose exponential rounds to 0: half the smallest subnormal is 2^-25 in
# float16 (25 ln 2 = 17.33), 2^-134 in bfloat16 (134 ln 2 = 92.88), and ties go to even, which is 0.
LEAST = {"float16": 17.34375, "bfloat16": 93.0}


def positive(dtype: str) -> np.ndarray:
    """Every positive finite number of the format, ascending, as float16 or (bfloat16) float32."""
    if dtype == "float16":
        return np.arange(1, 0x7C00, dtype=np.uint16).view(np.float16)
    return (np.arange(1, 0x7F80, dtype=np.uint32) << 16).view(np.float32)


def blocked_weight(scores: np.ndarray, penalty: Any, dtype: str) -> np.ndarray:
    """The spec's weight of the second, blocked entry, for each penalty at once, stored in the
    format.
    """
    with np.errstate(over="ignore", under="ignore"):
        allowed = np.array([True, False])
        weights = penalty_softmax(scores, allowed, penalty[:, None])[:, 1]
    return weights if dtype == "float16" else to_bfloat16(weights)


def to_bfloat16(x: np.ndarray) -> np.ndarray:
    """float32 rounded to nearest even bfloat16."""
    bits = np.asarray(x, np.float32).view(np.uint32)
    bias = np.uint32(0x7FFF) + ((bits >> 16) & 1)
    return ((bits + bias) & np.uint32(0xFFFF0000)).view(np.float32)


def _rows(count: int, kind: np.dtype, second: np.ndarray | None = None) -> np.ndarray:
    scores = np.zeros((count, 2), dtype=kind)
    if second is not None:
        scores[:, 1] = second
    return scores


def threshold(dtype: str, least: float) -> Iterator[Case]:
    """With equal scores, exactly the penalties from ``least`` on give the blocked key weight 0."""
    penalties = positive(dtype)
    weights = blocked_weight(_rows(len(penalties), penalties.dtype), penalties, dtype)
    for penalty, vanishes in zip(penalties.tolist(), (weights == 0).tolist(), strict=True):
        yield Case(f"penalty {penalty}: weight 0 is {vanishes}", vanishes == (penalty >= least))


def beaten(dtype: str, reach: float) -> Iterator[Case]:
    """Every penalty is beaten by some finite score: a score of ``reach`` penalties has a weight."""
    penalties = positive(dtype)
    second = (penalties * penalties.dtype.type(reach)).astype(penalties.dtype)
    weights = blocked_weight(_rows(len(penalties), penalties.dtype, second), penalties, dtype)
    for penalty, weight in zip(penalties.tolist(), weights.tolist(), strict=True):
        yield Case(f"penalty {penalty}: weight {weight}", weight > 0)


def _obligation(
    dtype: str,
    variant: str,
    statement: str,
    generality: str,
    body: Callable[[], Iterator[Case]],
    twin: Twin,
) -> Obligation:
    return Obligation(
        f"softmax.penalty_leaks/{dtype}-{variant}",
        "softmax.penalty_leaks",
        statement,
        f"{dtype}: {generality}",
        "exhaustive",
        "enumeration",
        body,
        twin,
        ("numpy's exp and rounding in float16 and float32",),
    )


OBLIGATIONS: tuple[Obligation, ...] = tuple(
    o
    for dtype, least in LEAST.items()
    for o in (
        _obligation(
            dtype,
            "threshold",
            rf"\operatorname{{softmax}}(0, 0 - c)_2 = 0 \Leftrightarrow c \ge {least}",
            "every positive finite penalty, two equal scores",
            partial(threshold, dtype, least),
            Twin(
                "a penalty one half larger is claimed to be needed",
                partial(threshold, dtype, 1.5 * least),
            ),
        ),
        _obligation(
            dtype,
            "beaten",
            r"\forall c\; \exists s\quad \operatorname{softmax}(0, s - c)_2 > 0",
            "every positive finite penalty, the finite score s = c",
            partial(beaten, dtype, 1.0),
            Twin("the score is 0 instead", partial(beaten, dtype, 0.0)),
        ),
    )
)
