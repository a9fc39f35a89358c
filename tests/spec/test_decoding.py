"""A decoding session shows what its script says, and the same outputs as without a cache."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.spec.decoding import decode, pasts, recompute, steps
from tests.spec.agreement import assert_encloses, assert_notices, assert_rounded_within_bounds


def stream(tokens: int, seed: int = 0, layers: int = 2, batch: int = 2) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    shapes = {"q": (4, tokens, 3), "k": (2, tokens, 3), "v": (2, tokens, 5)}
    return {n: rng.normal(size=(layers, batch, *shape)) for n, shape in shapes.items()}


@st.composite
def sessions(draw: st.DrawFn) -> tuple[int, dict[str, Any]]:
    """Tokens of the stream, and attributes: a script of any steps for two rows that is legal."""
    rolling, capacity = draw(st.booleans()), draw(st.integers(1, 6))
    length = total = 0
    script = []
    for _ in range(draw(st.integers(1, 6))):
        free = 7 if rolling else capacity - length
        action = draw(st.sampled_from(["append", "append", "overflow", "reorder", "reset"]))
        if action == "append" or (action == "overflow" and rolling):
            count = draw(st.integers(0, free))
            script.append(f"append {count}")
            length, total = length + count, total + count
        elif action == "overflow":
            count = free + draw(st.integers(1, 2))
            script.append(f"overflow {count}")
            total += count
        elif action == "reorder":
            script.append(f"reorder {draw(st.integers(0, 1))} {draw(st.integers(0, 1))}")
        else:
            script.append("reset")
            length = 0
    pads = () if rolling else draw(st.sampled_from([(), (1, 0), (0, 3)]))
    given = {"script": tuple(script), "capacity": capacity, "pads": pads, "rolling": rolling}
    return total, given


@given(sessions(), st.integers(0, 99))
@settings(max_examples=200)
def test_a_session_gives_what_attention_over_the_whole_past_gives(
    session: tuple[int, dict[str, Any]], seed: int
) -> None:
    tokens, attributes = session
    x = stream(tokens, seed)
    np.testing.assert_allclose(
        decode(**x, **attributes).out, recompute(**x, **attributes), rtol=1e-12, atol=1e-13
    )


@given(sessions())
@settings(max_examples=100)
def test_what_is_held_is_the_end_of_the_past(session: tuple[int, dict[str, Any]]) -> None:
    tokens, attributes = session
    x, script = stream(tokens), attributes["script"]
    found = decode(**x, **attributes)
    known = pasts(script, 2, tokens)
    for index, step in enumerate(steps(script, tokens)):
        if step.action != "append":
            continue
        past = next(known)
        assert found.lengths[index] == len(past.tokens)
        count = min(len(past.tokens), attributes["capacity"])
        want = past.of(x["k"]).reshape(2, 2, 2, -1, 3)[:, :, :, len(past.tokens) - count :]
        assert (found.k[index][:, :, :, :count] == want).all()
        assert not found.k[index][:, :, :, count:].any()


def test_a_refused_step_leaves_everything_as_it_was() -> None:
    found = decode(**stream(6), script=("append 3", "overflow 2", "append 1"), capacity=4)
    assert found.refused.tolist() == [0, 1, 0]
    assert found.lengths.tolist() == [3, 3, 4]
    assert (found.k[0] == found.k[1]).all()
    assert not found.out[:, :, :, 3:5].any()


def test_positions_count_from_the_first_real_token_and_again_after_a_reset() -> None:
    script = ("append 2", "reorder 1 1", "append 1", "reset", "append 2")
    found = decode(**stream(5), script=script, pads=(0, 1))
    assert found.positions.tolist() == [[0, 1, 1, 0, 1], [0, 0, 1, 0, 0]]


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"script": ("append 2",)}, "takes 2 tokens of a stream of 3"),
        ({"script": ("apend 3",)}, "line='apend 3' is no step"),
        ({"script": ("append",)}, "needs one number"),
        ({"script": ("append 3",), "capacity": 2}, "exceeds capacity=2"),
        ({"script": ("append 1", "overflow 2"), "capacity": 3}, "overflow of tokens=2 fits"),
        ({"script": ("reorder 0 2", "append 3")}, r"rows=\[0, 2\] must lie within 0..1"),
        ({"pads": (1,)}, "one number for each of 2 rows"),
        ({"pads": (1, 0), "rolling": True}, "must be 0 in a ring"),
    ],
)
def test_a_script_that_cannot_be_run_says_why(attributes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        decode(**stream(3), **attributes)


ATTRIBUTES: dict[str, Any] = {
    "script": ("append 3", "overflow 3", "reorder 1 1", "append 2", "reset", "append 1"),
    "capacity": 5,
    "pads": (1, 0),
}
ROLLING: dict[str, Any] = {
    "script": ("append 3", "append 1", "reorder 1 0", "append 5"),
    "capacity": 3,
    "rolling": True,
}


@pytest.mark.parametrize("attributes", [ATTRIBUTES, ROLLING], ids=["slots", "ring"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_a_rounded_session_stays_within_its_bounds(attributes: Any, dtype: str) -> None:
    assert_rounded_within_bounds("kv_cache", stream(9), attributes, dtype)


@pytest.mark.parametrize("name", ["q", "k", "v"])
def test_a_small_error_in_a_token_shows(name: str) -> None:
    x = stream(9)
    spoilt = x[name].copy()
    spoilt[0, 0, 0, 2, 0] += 1e-3
    assert_notices("kv_cache", x, ATTRIBUTES, {**x, name: spoilt})


@pytest.mark.parametrize("attributes", [ATTRIBUTES, ROLLING], ids=["slots", "ring"])
def test_balls_enclose_a_session(attributes: Any) -> None:
    assert_encloses("kv_cache", stream(9), attributes)


def test_what_is_held_are_the_fractions_that_were_appended() -> None:
    thirds = np.array([Fraction(i, 3) for i in range(4)], dtype=object).reshape(1, 1, 1, 4, 1)
    found = decode(0 * thirds, thirds, thirds, script=("append 3", "reset", "append 1"))
    assert found.k[0].ravel().tolist() == [Fraction(i, 3) for i in range(3)] + [0]
    assert found.k[2].ravel().tolist() == [1, 0, 0, 0]
