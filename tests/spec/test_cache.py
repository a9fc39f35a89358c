"""A cache is a state machine: whatever the chunks, decoding equals the full run."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import flint
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from assay.spec.attention import attention
from assay.spec.cache import (
    Cache,
    advance,
    decode_attention,
    empty,
    held,
    padded_positions,
    padded_visible,
    position,
    reorder,
    reset,
    ring_position,
    ring_slot,
    roll,
    rolling_attention,
    sees,
    write,
)
from tests.spec.agreement import balls

ENTRIES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "golden" / "cache.json").read_text()
)


class Tokens(NamedTuple):
    """Queries, keys and values of one layer."""

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray

    def cut(self, start: int, stop: int) -> Tokens:
        return Tokens(*(x[:, :, start:stop] for x in self))


def tokens(count: int, seed: int = 0, batch: int = 2, heads: int = 4, kv_heads: int = 2) -> Tokens:
    rng = np.random.default_rng(seed)
    return Tokens(
        rng.normal(size=(batch, heads, count, 3)),
        rng.normal(size=(batch, kv_heads, count, 3)),
        rng.normal(size=(batch, kv_heads, count, 5)),
    )


def room(layers: int, capacity: int, x: Tokens) -> Cache:
    """An empty cache whose slots hold NaN: nothing may come of them."""
    batch, heads, _, width = x.k.shape
    new = empty(layers, batch, heads, capacity, width, x.v.shape[3])
    return replace(new, k=np.full_like(new.k, np.nan), v=np.full_like(new.v, np.nan))


def chunks(count: int, cuts: list[int]) -> list[tuple[int, int]]:
    ends = [0, *sorted(cuts), count]
    return list(pairwise(ends))


@given(st.data())
@settings(max_examples=60)
def test_every_split_into_chunks_gives_the_full_run_in_every_layer(data: st.DataObject) -> None:
    count, layers = data.draw(st.integers(0, 9)), data.draw(st.integers(1, 3))
    cuts = data.draw(st.lists(st.integers(0, count), max_size=4))
    runs = [tokens(count, seed) for seed in range(layers)]
    cache = room(layers, count + data.draw(st.integers(0, 2)), runs[0])
    parts: list[list[np.ndarray]] = [[] for _ in runs]
    for start, stop in chunks(count, cuts):
        for layer, x in enumerate(runs):
            assert cache.length == start
            out, cache = decode_attention(*x.cut(start, stop), cache, layer)
            parts[layer].append(out)
        cache = advance(cache, stop - start)
    assert cache.length == count
    for x, outs in zip(runs, parts, strict=True):
        full = attention(*x, causal=True)
        assert np.allclose(np.concatenate(outs, axis=2), full, rtol=1e-12, atol=1e-13)
        for layer in range(layers):
            kept = held(cache, layer)
            assert (kept.k == runs[layer].k).all()
            assert (kept.v == runs[layer].v).all()


def test_decoding_equals_torch_on_the_whole_sequence() -> None:
    x = tokens(7, heads=2)
    cache = room(1, 7, x)
    parts: list[np.ndarray] = []
    for start, stop in ((0, 3), (3, 4), (4, 7)):
        out, cache = decode_attention(*x.cut(start, stop), cache)
        cache, parts = advance(cache, stop - start), [*parts, out]
    q, k, v = (torch.tensor(a) for a in x)
    want = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert np.allclose(np.concatenate(parts, axis=2), want.numpy(), rtol=1e-12)


def test_the_flag_of_torch_hides_the_past_from_a_chunk() -> None:
    x = tokens(5, heads=2)
    _, cache = decode_attention(*x.cut(0, 3), room(1, 5, x))
    out, _ = decode_attention(*x.cut(3, 5), advance(cache, 3))
    q, k, v = (torch.tensor(a) for a in x)
    flag = torch.nn.functional.scaled_dot_product_attention(q[:, :, 3:], k, v, is_causal=True)
    # Aligned to the top left, the first query of the chunk sees the oldest key alone.
    assert np.allclose(flag[:, :, 0], x.v[:, :, 0])
    assert not np.allclose(out, flag.numpy())
    offset = torch.ones(2, 5, dtype=torch.bool).tril(3)
    right = torch.nn.functional.scaled_dot_product_attention(q[:, :, 3:], k, v, attn_mask=offset)
    assert np.allclose(out, right.numpy())


def test_decoding_runs_on_arb_balls() -> None:
    x = tokens(3, batch=1, heads=1, kv_heads=1)
    exact = Tokens(**balls(x._asdict()))
    cache = empty(1, 1, 1, 3, 3, 5, dtype=object)
    out, cache = decode_attention(*exact.cut(0, 2), cache)
    last, _ = decode_attention(*exact.cut(2, 3), advance(cache, 2))
    full = attention(*x, causal=True)
    for ball, value in zip([*out.flat, *last.flat], full.ravel(), strict=True):
        assert abs(ball - flint.arb(float(value))) < 1e-14


class Machine(RuleBasedStateMachine):
    """Beams that append, are reordered, reset and refused, beside a list of what each holds."""

    @initialize(capacity=st.integers(0, 6), layers=st.integers(1, 3))
    def start(self, capacity: int, layers: int) -> None:
        self.capacity, self.layers = capacity, layers
        self.cache = room(layers, capacity, tokens(0))
        nothing = tokens(0)
        self.model = [nothing for _ in range(layers)]

    @rule(count=st.integers(0, 4), seed=st.integers(0, 99))
    def append(self, count: int, seed: int) -> None:
        before = self.cache
        fresh = [tokens(count, seed + 100 * layer) for layer in range(self.layers)]
        if before.length + count > self.capacity:
            copies = before.k.copy(), before.v.copy()
            with pytest.raises(ValueError, match=rf"tokens={count} exceeds capacity="):
                decode_attention(*fresh[0], before)
            for old, now in zip(copies, (before.k, before.v), strict=True):
                assert np.array_equal(old, now, equal_nan=True)
            return
        for layer, x in enumerate(fresh):
            past = self.model[layer]
            self.model[layer] = Tokens(
                *(np.concatenate(pair, axis=2) for pair in zip(past, x, strict=True))
            )
            out, self.cache = decode_attention(*x, self.cache, layer)
            want = attention(*self.model[layer], causal=True)[:, :, before.length :]
            assert np.allclose(out, want, rtol=1e-12, atol=1e-13)
            assert self.cache.length == before.length
        self.cache = advance(self.cache, count)

    @rule(rows=st.lists(st.integers(0, 1), min_size=2, max_size=2))
    def choose(self, rows: list[int]) -> None:
        self.cache = reorder(self.cache, np.array(rows))
        self.model = [Tokens(*(a[rows] for a in x)) for x in self.model]

    @rule()
    def forget(self) -> None:
        self.cache = reset(self.cache)
        self.model = [tokens(0) for _ in self.model]

    @invariant()
    def holds_what_was_appended(self) -> None:
        if not hasattr(self, "cache"):
            return
        for layer, x in enumerate(self.model):
            kept = held(self.cache, layer)
            assert self.cache.length == x.k.shape[2]
            assert (kept.k == x.k).all()
            assert (kept.v == x.v).all()


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=30, stateful_step_count=12, deadline=None)


@given(st.data())
@settings(max_examples=40)
def test_left_padding_changes_nothing_for_the_real_tokens(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 6))
    pads = np.array(data.draw(st.lists(st.integers(0, 3), min_size=2, max_size=2)))
    total = count + int(pads.max())
    x = tokens(total)
    cut = data.draw(st.integers(0, total))
    cache = room(1, total, x)
    parts: list[np.ndarray] = []
    for start, stop in ((0, cut), (cut, total)):
        out, cache = decode_attention(*x.cut(start, stop), cache, pads=pads)
        cache, parts = advance(cache, stop - start), [*parts, out]
    padded = np.concatenate(parts, axis=2)
    assert np.isfinite(padded).all()
    for b, pad in enumerate(pads):
        alone = Tokens(*(a[b : b + 1, :, pad:] for a in x))
        want = attention(*alone, causal=True)[0]
        assert np.allclose(padded[b, :, pad:], want, rtol=1e-12, atol=1e-13)
        itself = np.repeat(x.v[b, :, :pad], 2, axis=0)
        assert np.allclose(padded[b, :, :pad], itself)


def test_positions_of_padded_rows_count_from_the_first_real_token() -> None:
    pads = np.array([0, 2, 3])
    whole = padded_positions(pads, 5)
    assert whole.tolist() == [[0, 1, 2, 3, 4], [0, 0, 0, 1, 2], [0, 0, 0, 0, 1]]
    assert padded_positions(pads, 2, 3).tolist() == whole[:, 3:].tolist()
    assert padded_visible(pads, 2, 3).tolist() == padded_visible(pads, 5)[:, :, 3:].tolist()


@given(st.data())
@settings(max_examples=60)
def test_ring_equals_full_attention_with_a_window_at_every_wrap(data: st.DataObject) -> None:
    window, count = data.draw(st.integers(1, 5)), data.draw(st.integers(0, 12))
    cuts = data.draw(st.lists(st.integers(0, count), max_size=5))
    runs = [tokens(count, seed) for seed in range(2)]
    cache = empty(2, 2, 2, window, 3, 5)
    parts: list[list[np.ndarray]] = [[], []]
    for start, stop in chunks(count, cuts):
        for layer, x in enumerate(runs):
            out, cache = rolling_attention(*x.cut(start, stop), cache, layer)
            parts[layer].append(out)
        cache = roll(cache, stop - start)
        for t in range(max(0, stop - window), stop):
            assert (cache.k[:, :, :, t % window] == [x.k[:, :, t] for x in runs]).all()
    for x, outs in zip(runs, parts, strict=True):
        want = attention(*x, causal=True, window=(window - 1, 0))
        assert np.allclose(np.concatenate(outs, axis=2), want, rtol=1e-12, atol=1e-13)


@given(st.integers(0, 40), st.integers(1, 9))
def test_ring_slots_and_positions_are_inverse_to_each_other(length: int, window: int) -> None:
    stands = [ring_position(slot, length, window) for slot in range(window)]
    assert sorted(stands) == list(range(length - window, length))
    assert all(ring_slot(t, window) == slot for slot, t in enumerate(stands))


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 60))
def test_a_chunk_sees_what_its_position_sees_in_the_full_run(length: int, i: int, j: int) -> None:
    assert sees(i, j, length) == sees(position(length, i), j, 0)


def test_a_beam_takes_its_own_past_along() -> None:
    x = tokens(3)
    _, cache = decode_attention(*x.cut(0, 2), room(1, 3, x))
    chosen = reorder(advance(cache, 2), np.array([1, 1]))
    out, _ = decode_attention(*x.cut(2, 3), chosen)
    past = Tokens(*(a[[1, 1], :, :2] for a in x))
    whole = (np.concatenate([p, a[:, :, 2:]], axis=2) for p, a in zip(past, x, strict=True))
    assert np.allclose(out, attention(*whole, causal=True)[:, :, 2:])


def test_what_does_not_fit_is_rejected_with_its_numbers() -> None:
    x = tokens(2)
    cache = room(2, 3, x)
    full = advance(cache, 2)
    with pytest.raises(ValueError, match=r"tokens=2 exceeds capacity=3: at most 1 more fit"):
        write(full, 0, x.k, x.v)
    with pytest.raises(ValueError, match=r"length=2 \+ tokens=2 exceeds capacity=3"):
        advance(full, 2)
    with pytest.raises(ValueError, match=r"length=2 \+ tokens=2 exceeds capacity=3"):
        held(full, 0, 2)
    with pytest.raises(ValueError, match=r"layer=2 must lie within 0\.\.1"):
        write(cache, 2, x.k, x.v)
    with pytest.raises(ValueError, match=r"v has shape \(2, 2, 1, 5\), should be"):
        write(cache, 0, x.k, x.v[:, :, :1])
    with pytest.raises(ValueError, match=r"k has shape \(2, 3\), should be"):
        write(cache, 0, np.zeros((2, 3)), x.v)
    with pytest.raises(ValueError, match=r"rows=\[0, 2\] must lie within 0\.\.1"):
        reorder(cache, np.array([0, 2]))
    for grow in (advance, roll):
        with pytest.raises(ValueError, match=r"tokens=-1 must not be negative"):
            grow(cache, -1)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["name"])
def test_appending_reproduces_worked_examples(entry: dict[str, Any]) -> None:
    assert len(entry["origin"]) > 20
    if entry["kind"] == "positions":
        steps = [position(length, 0) for length in range(len(entry["expected"]))]
        assert steps == entry["expected"]
        return
    old, new = (
        [np.array(entry[n], dtype=float)[None, None] for n in names]
        for names in (("keys", "values"), ("new_keys", "new_values"))
    )
    count = old[0].shape[2]
    cache = advance(write(empty(1, 1, 1, count + 1, 2), 0, *old), count)
    kept = held(advance(write(cache, 0, *new), 1), 0)
    assert kept.k[0, 0].tolist() == entry["expected"]["keys"]
    assert kept.v[0, 0].tolist() == entry["expected"]["values"]
