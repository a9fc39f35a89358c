"""Runs of a step over a sequence, however they are split, are one and the same run."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.spec.scans.runner import (
    fold_bracketed,
    run,
    run_chunked,
    run_packed,
    run_with_history,
    scan_tree,
)

WORDS = st.lists(st.text("abc", min_size=1, max_size=2), max_size=12)


def step(state: str, x: str) -> tuple[str, str]:
    """Depends on the order of everything before it."""
    after = f"({state}{x})"
    return after, after[::-1]


@given(WORDS, WORDS)
def test_what_is_appended_never_changes_what_was_emitted(xs: list[str], more: list[str]) -> None:
    assert run(step, "s", xs + more)[0][: len(xs)] == run(step, "s", xs)[0]


@given(WORDS, WORDS)
def test_a_run_continues_from_its_state(xs: list[str], more: list[str]) -> None:
    first, state = run(step, "s", xs)
    second, end = run(step, state, more)
    assert run(step, "s", xs + more) == (first + second, end)


@given(WORDS, st.integers(1, 14))
def test_every_chunk_size_gives_the_same_run(xs: list[str], chunk: int) -> None:
    assert run_chunked(step, "s", xs, chunk) == run(step, "s", xs)


@given(WORDS)
def test_history_is_what_each_prefix_ends_in(xs: list[str]) -> None:
    outputs, states = run_with_history(step, "s", xs)
    assert outputs == run(step, "s", xs)[0]
    assert states == [run(step, "s", xs[:t])[1] for t in range(len(xs) + 1)]


@given(st.lists(WORDS, min_size=1, max_size=4))
def test_packed_sequences_equal_single_ones(sequences: list[list[str]]) -> None:
    packed = [x for xs in sequences for x in xs]
    starts = [i == 0 for xs in sequences for i in range(len(xs))]
    outputs, _ = run_packed(step, "s", packed, starts)
    assert outputs == [y for xs in sequences for y in run(step, "s", xs)[0]]


@given(WORDS)
def test_without_a_reset_packing_lets_the_first_sequence_leak(xs: list[str]) -> None:
    outputs, _ = run_packed(step, "s", ["a", *xs, "b"], [False] * (len(xs) + 2))
    assert outputs[-1] != run(step, "s", ["b"])[0][-1]


def join(earlier: str, later: str) -> str:
    return earlier + later


@given(WORDS)
def test_tree_gives_every_prefix_of_an_associative_product(xs: list[str]) -> None:
    assert scan_tree(join, xs) == ["".join(xs[: t + 1]) for t in range(len(xs))]


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 9, 64])
def test_tree_is_as_deep_as_it_claims_and_calls_less_than_twice_each_item(n: int) -> None:
    calls = []

    def deeper(a: int, b: int) -> int:
        calls.append((a, b))
        return max(a, b) + 1

    depths = scan_tree(deeper, [0] * n)
    assert len(calls) < 2 * n
    assert max(depths) <= 2 * max(n - 1, 0).bit_length()


SPLITS: dict[str, Callable[[int], int]] = {
    "sequential": lambda n: n - 1,
    "reversed": lambda n: 1,
    "balanced": lambda n: n // 2,
    "ragged": lambda n: 1 + (7 * n) % (n - 1),
}


@pytest.mark.parametrize("split", SPLITS.values(), ids=SPLITS.keys())
@given(xs=WORDS)
def test_every_bracketing_gives_the_same_product(
    split: Callable[[int], int], xs: list[str]
) -> None:
    if xs:
        assert fold_bracketed(join, xs, split) == "".join(xs)


def test_a_product_that_is_not_associative_depends_on_its_brackets() -> None:
    minus = [fold_bracketed(lambda a, b: a - b, [4, 2, 1], s) for s in SPLITS.values()]
    assert set(minus) == {1, 3}


def test_what_does_not_fit_is_named() -> None:
    with pytest.raises(ValueError, match="chunk=0 must be at least 1"):
        run_chunked(step, "s", ["a"], 0)
    with pytest.raises(ValueError, match=r"len\(starts\)=1 must equal len\(inputs\)=2"):
        run_packed(step, "s", ["a", "b"], [True])
    with pytest.raises(ValueError, match="must hold at least one"):
        fold_bracketed(join, [], lambda n: n)
    with pytest.raises(ValueError, match=r"split\(2\)=2 must lie between 1 and 1"):
        fold_bracketed(join, ["a", "b"], lambda n: n)
