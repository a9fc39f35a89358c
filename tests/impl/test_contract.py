"""What a contract accepts, and the arithmetic that follows from it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from assay.impl.contract import Contract


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "two words"}, "name='two words'"),
        ({"dtypes": ("float31",)}, "dtypes holds 'float31'"),
        ({"dtypes": "float32"}, "must be a tuple"),
        ({"dtypes": ()}, "dtypes=()"),
        ({"empty_row": "ones"}, "empty_row='ones' is not valid; valid:"),
        ({"accumulate": "int8"}, "accumulate='int8' is not a format"),
        ({"accumulate": "output"}, "accumulate='output' is not a format"),
        ({"intermediate": "half"}, "intermediate='half' is not a format"),
        ({"modes": ()}, "modes=()"),
        ({"block_sizes": (0,)}, "block_sizes=(0,)"),
        ({"least_length": 0}, "least_length=0"),
        ({"compile_seconds": -1.0}, "compile_seconds=-1.0"),
    ],
)
def test_a_wrong_field_is_named_with_what_is_valid(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Contract(**{"name": "x", **changes})


def test_sums_may_be_those_of_the_input_format_for_every_type() -> None:
    declared = Contract("x", accumulate="input")

    assert [declared.arithmetic(d).accumulate for d in ("bfloat16", "float64")] == [
        "bfloat16",
        "float64",
    ]


def test_sixteen_bit_types_accumulate_in_float32_by_default() -> None:
    assert Contract("x").arithmetic("bfloat16").accumulate == "float32"
    assert Contract("x").arithmetic("float64").accumulate == "float64"


def test_intermediates_in_the_inputs_format_follow_the_dtype() -> None:
    contract = Contract("x", intermediate="input")
    assert contract.arithmetic("bfloat16").intermediate == "bfloat16"
    assert contract.arithmetic("float16").intermediate == "float16"


def test_rows_hold_every_field() -> None:
    assert dict(Contract("x").rows())["name"] == "x"
