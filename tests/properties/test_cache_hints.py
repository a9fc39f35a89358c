"""A finding in a decoder names the known fault that it looks like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from assay.properties.campaign import run_backend
from assay.properties.recipes.caches import EVERYTHING
from assay.spec.decoding import decode, recompute
from tests.properties.spec_backend import Arrays, SpecBackend

Wrong = Callable[[dict[str, Any], dict[str, Any]], np.ndarray]


def without(word: str) -> Wrong:
    """The lines of the script that begin with ``word`` are skipped."""

    def wrong(stream: dict[str, Any], given: dict[str, Any]) -> np.ndarray:
        script = tuple(line for line in given.get("script", ()) if not line.startswith(word))
        return recompute(**stream, **{**given, "script": script})

    return wrong


def unpadded(stream: dict[str, Any], given: dict[str, Any]) -> np.ndarray:
    return recompute(**stream, **{**given, "pads": ()})


def too_wide(stream: dict[str, Any], given: dict[str, Any]) -> np.ndarray:
    return recompute(**stream, **{**given, "capacity": given["capacity"] + 1})


@pytest.mark.parametrize(
    ("claim", "wrong", "hint"),
    [
        ("cache.decode_equals_full", without("reset"), "reset is ignored"),
        ("cache.decode_equals_full", without("reorder"), "reorder is ignored"),
        ("cache.decode_equals_full", unpadded, "padding is seen"),
        ("cache.rolling_window", too_wide, "the ring holds one token too many"),
    ],
)
def test_a_finding_says_what_it_looks_like(claim: str, wrong: Wrong, hint: str) -> None:
    def spoil(backend: SpecBackend, name: str, call: dict[str, Any], right: Arrays) -> Arrays:
        stream = {n: call[n].astype(np.float64) for n in ("q", "k", "v")}
        given = {n: x for n, x in call.items() if n not in stream}
        return {**right, "out": wrong(stream, given).astype(right["out"].dtype)}

    result = run_backend(SpecBackend("kv_cache", spoil=spoil), claims=(claim,), dtypes=("float32",))

    assert [hint in finding.hint for finding in result.findings] == [True]


def test_scripts_hold_every_action() -> None:
    x = np.ones((1, 2, 1, 5, 1))
    script = ("append 2", "overflow 2", "reorder 1 0", "reset", "append 1")
    assert {line.split()[0] for line in script} == set(EVERYTHING)
    assert decode(x, x, x, script=script, capacity=3).lengths.tolist() == [2, 2, 2, 0, 1]
