"""Recurrent and state-space language models against torch: outputs and all gradients."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.spec.agreement import FORMATS
from tests.spec.sequence_models import assert_equals_torchs


@pytest.mark.parametrize("name", ["mamba_lm", "rnn_lm"])
@given(
    seed=st.integers(0, 9999),
    steps=st.sampled_from([1, 2, 2, 3]),
    dtype=st.sampled_from(sorted(FORMATS)),
)
@settings(max_examples=200)
def test_outputs_and_gradients_equal_torchs(name: str, seed: int, steps: int, dtype: str) -> None:
    assert_equals_torchs(name, seed, steps, dtype)
