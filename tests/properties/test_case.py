"""A case is a complete record: the same arrays follow from it, also after a trip through JSON."""

from __future__ import annotations

import json

import ml_dtypes
import numpy as np
import pytest

from assay.properties.attention_cases import make_inputs
from assay.properties.case import Case, MaskDraw, Materials, decode, encode

CASE = Case(
    "attention",
    "bfloat16",
    "eval.grad",
    7,
    {"B": 2, "H": 2, "Hkv": 1, "L": 3, "S": 4, "D": 2, "Dv": 2},
    {"causal": True, "window": (1, None)},
    {"q": "wide"},
    MaskDraw("random", "additive", "full"),
    {"q": "strided"},
    {"cut": 3},
)


def test_json_keeps_a_case_and_its_explicit_arrays() -> None:
    array = np.array([[1.5, np.nan, -0.0]], dtype=ml_dtypes.bfloat16)
    case = Case(**{**CASE.__dict__, "arrays": {"q": array}})

    again = Case.from_json(json.loads(json.dumps(case.to_json())))

    assert again.attributes == CASE.attributes
    assert again.mask == CASE.mask
    assert again.arrays["q"].dtype == array.dtype
    assert again.arrays["q"].tobytes() == array.tobytes()


@pytest.mark.parametrize("dtype", ["bool", "float16", "bfloat16", "float32", "float64"])
def test_arrays_keep_their_bits(dtype: str) -> None:
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    array = np.array([[0, 1], [1, 0]]).astype(kind)

    again = decode(json.loads(json.dumps(encode(array))))

    assert again.dtype == array.dtype
    assert again.tobytes() == array.tobytes()


def test_the_same_case_gives_the_same_arrays_and_another_seed_others() -> None:
    first, again = (make_inputs(CASE, Materials(CASE)) for _ in range(2))
    other = Case(**{**CASE.__dict__, "seed": 8})

    assert all(first[n].tobytes() == again[n].tobytes() for n in first)
    assert make_inputs(other, Materials(other))["q"].tobytes() != first["q"].tobytes()


def test_explicit_arrays_replace_the_recipes() -> None:
    q = np.zeros((2, 2, 3, 2), dtype=ml_dtypes.bfloat16)
    case = Case(**{**CASE.__dict__, "arrays": {"q": q}})

    assert make_inputs(case, Materials(case))["q"] is q


def test_the_summary_says_sizes_and_what_is_special() -> None:
    summary = CASE.summary()

    assert summary.startswith("B=2 H=2 Hkv=1 L=3 S=4 D=2 Dv=2 causal=True window=(1,None)")
    assert "mask=random/additive/full" in summary
    assert "q:strided" in summary
