"""The key/value cache as a state: lengths, positions, slots, rings and rows."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import z3

from assay.proofs.branching import Whole, paths
from assay.proofs.induction import by_induction, folds_of
from assay.proofs.mutants import mutant, rebound
from assay.proofs.obligation import Body, Case, Obligation, Premise, Query, Twin
from assay.proofs.scalars.courses import COURSE
from assay.proofs.scalars.integers import Integer, euclid, whole
from assay.proofs.scalars.stretches import Axis, Fold
from assay.spec.cache import (
    Cache,
    advance,
    empty,
    padded_positions,
    padded_visible,
    position,
    reorder,
    ring_position,
    ring_slot,
    roll,
    sees,
    write,
)
from assay.spec.masks import causal_visible

Function = Callable[..., Any]
ROW, J, S, T, N = z3.Ints("i j s T n")


def visible_set(rule: Function) -> Iterator[Query]:
    """What query i of a chunk at s sees among s + T slots is what token s + i sees of n tokens."""
    chunk = Premise(
        r"0 \le s,\; 0 \le i < T,\; s + T \le n",
        z3.And(S >= 0, ROW >= 0, T > ROW, S + T <= N),
    )
    cached = z3.And(J >= 0, S + T > J, rule(ROW, J, S))
    full = z3.And(J >= 0, N > J, causal_visible(position(S, ROW), J, 0))
    witness = {"s": 2, "T": 2, "i": 1, "n": 5, "j": 1}
    yield Query("the same slots", cached == full, (chunk,), witness)
    yield Query("its own slot", rule(ROW, position(S, ROW), S), (chunk,), witness)
    after = Premise("j = s + i + 1", position(S, ROW) + 1 == J)
    unseen = {**witness, "j": 4}
    yield Query("not the one after it", z3.Not(rule(ROW, J, S)), (chunk, after), unseen)


class _Sized(Cache):
    """A cache of any number of slots, of which only the number is looked at."""

    @property
    def capacity(self) -> int:
        return Whole("M")


def _any_cache() -> Cache:
    slots = np.zeros((1, 1, 1, 1, 1))
    return _Sized(slots, slots, Whole("l"))


def outcomes(grow: Function) -> list[tuple[z3.BoolRef, Any]]:
    """Every path of a growth by T tokens: its condition, and the new length or None."""

    def attempt() -> Any:
        try:
            return grow(_any_cache(), Whole("T")).length.term
        except ValueError:
            return None

    return list(paths(attempt))


LENGTH, CAPACITY = z3.Ints("l M")


def lengths(grow: Function, room: Any) -> Iterator[Query]:
    """A growth by T >= 0 tokens that fit is by T; anything else is refused."""
    fits = z3.And(T >= 0, room)
    for at, (condition, length) in enumerate(outcomes(grow)):
        told = z3.Not(fits) if length is None else z3.And(fits, length == LENGTH + T)
        yield Query(f"path {at}", z3.Implies(condition, told))
    either = z3.Or(*(condition for condition, _ in outcomes(grow)))
    yield Query("every case has a path", either)


def _grown(grow: Function, before: Any, tokens: Any) -> z3.ArithRef:
    """The length after a growth that was not refused."""
    (length,) = (x for _, x in outcomes(grow) if x is not None)
    result: z3.ArithRef = z3.substitute(length, (LENGTH, before), (T, tokens))
    return result


def _course(axis: Axis, grow: Function, tokens: Function) -> Fold:
    def after(before: z3.ExprRef, j: Any) -> z3.ExprRef:
        return _grown(grow, before, tokens(j))

    return axis.folded("length", z3.IntSort(), z3.IntVal(0), after)


def sums(grow: Function) -> Iterator[Query]:
    """After any number of steps the length is the number of tokens, and chunks follow closely."""
    axis = Axis("", Integer)
    chunk = axis.values("T")
    held = _course(axis, grow, lambda j: chunk.at(j).term)
    count = axis.sum_of(chunk)
    queries, _ = by_induction("tokens so far", axis, lambda m: held.at(m) == count.at(m))
    yield from queries
    end = position(held.at(J), chunk.at(J).term)
    one = Premise("one more step", held.at(J + 1) == held.step(held.at(J), J), "definition")
    first = position(held.at(J + 1), 0)
    yield Query("the next chunk begins at its end", first == end, (one,), {"j": 1}, folds_of(axis))


def sums_of(grow: Function) -> Iterator[Query]:
    """One step, for a given growth."""
    yield Query("one step", _grown(grow, z3.IntVal(0), T) == T)


def positions(grow: Function, place: Function) -> Iterator[Query]:
    """One token a step: the one that is appended at step t stands at t."""
    axis = Axis("")
    held = _course(axis, grow, lambda _: z3.IntVal(1))
    start = z3.IntVal(0)
    queries, lemma = by_induction("one a step", axis, lambda m: held.at(m) == start + m)
    yield from queries
    goal = place(held.at(axis.length), 0) == axis.length
    yield Query("its position", goal, (lemma,), {}, folds_of(axis))
    ahead = Premise(r"0 \le i < T", z3.And(ROW >= 0, T > ROW))
    later = place(S, ROW) < place(_grown(grow, S, T), 0)
    yield Query("before the next chunk", later, (ahead,), {"s": 2, "i": 1, "T": 3})


def positions_of(place: Function) -> Iterator[Query]:
    """The first token of an empty cache, for a given place."""
    yield Query("the first", place(z3.IntVal(0) * S, 0) == 0)


W, L, P, Q = (whole(name) for name in ("W", "l", "p", "q"))


def ring(slot_of: Function, held_at: Function) -> Iterator[Query]:
    """Slot s holds the one token t of the last W with t mod W = s; a new one pushes out t - W."""
    token, slot = whole("t"), whole("s")
    d, a, b = z3.Ints("d a b")
    width = Premise(r"W \ge 1", W.term >= 1)
    close = z3.And(a - b < W.term, b - a < W.term, a - b == W.term * d)
    near = Premise(r"-W < a - b < W,\; a - b = W d", close)
    gap = z3.And(
        z3.Implies(d >= 1, W.term * d >= W.term), z3.Implies(d <= -1, W.term * d <= -W.term)
    )
    held = {"W": 3, "a": 2, "b": 2, "d": 0, "l": 5, "t": 3, "s": 1}
    yield Query("multiples are apart", gap, (width,), held)
    lemma = Premise("the gap", gap, "lemma")
    yield Query("a remainder is the only one", a == b, (width, near, lemma), held)

    def once(x: Any, y: Any, quotient: Any) -> Premise:
        """What was just shown, of x and y."""
        close = z3.And(x - y < W.term, y - x < W.term, x - y == W.term * quotient)
        return Premise("a remainder is the only one, here", z3.Implies(close, x == y), "lemma")

    found = held_at(slot, L, W).term
    inside = Premise(r"0 \le s < W", z3.And(slot.term >= 0, slot.term < W.term))
    known = (width, inside, *euclid(found))
    last = z3.And(found < L.term, found >= L.term - W.term)
    yield Query("one of the last W", last, known, held)
    there = slot_of(Integer(found), W).term
    steps = (found / W.term) - ((L - 1 - slot).term / W.term)
    unique = once(slot.term, there, steps)
    yield Query("which belongs there", there == slot.term, (*known, *euclid(there), unique), held)
    among = Premise(r"l - W \le t < l", z3.And(token.term >= L.term - W.term, token.term < L.term))
    back = held_at(slot_of(token, W), L, W).term
    inner = (L - 1 - slot_of(token, W)).term
    turns = (inner / W.term) - (token.term / W.term)
    known = (width, among, *euclid(back), once(back, token.term, turns))
    yield Query("each of the last W is held", back == token.term, known, held)
    old, new = slot_of(token - W, W).term, slot_of(token, W).term
    turns = (token.term / W.term) - ((token - W).term / W.term) - 1
    known = (width, *euclid(old, new), once(old, new, turns))
    yield Query("it takes the slot of t - W", old == new, known, held)


def ring_listed(slot_of: Function, held_at: Function) -> Iterator[Case]:
    """The same of windows of up to 5 and up to 17 tokens, by writing them one by one."""
    for window in range(1, 6):
        slots = [s - window for s in range(window)]
        for length in range(18):
            got = [held_at(s, length, window) for s in range(window)]
            shown = [t if t >= 0 else None for t in got]
            yield Case(
                f"{length} tokens in {window} slots: {got}",
                shown == [t if t >= 0 else None for t in slots],
            )
            slots[slot_of(length, window)] = length


def _distinct(layers: int, batch: int, heads: int, slots: int, start: int) -> np.ndarray:
    """[layers, batch, heads, slots, 1] different numbers."""
    count = layers * batch * heads * slots
    return np.arange(start, start + count).reshape(layers, batch, heads, slots, 1)


def _filled(layers: int, batch: int, capacity: int, length: int) -> Cache:
    k = _distinct(layers, batch, 2, capacity, 1)
    return Cache(k, -k, length)


def appended(put: Function) -> Iterator[Case]:
    """Slots before the chunk, in it, behind it, and of the other layer; or a refusal."""
    for capacity, layer in itertools.product(range(5), range(2)):
        for length, tokens in itertools.product(range(capacity + 1), range(capacity + 2)):
            cache = _filled(2, 1, capacity, length)
            before = cache.k.copy(), cache.v.copy()
            k = _distinct(1, 1, 2, tokens, 1000)[0]
            label = f"{tokens} behind {length} of {capacity}, layer {layer}"
            try:
                after = put(cache, layer, k, -k)
            except ValueError:
                same = np.array_equal(cache.k, before[0]) and np.array_equal(cache.v, before[1])
                refused = length + tokens > capacity and same and cache.length == length
                yield Case(f"{label}: refused", refused)
                continue
            end = length + tokens
            right = end <= capacity and after.length == length
            for got, new, old in ((after.k, k, before[0]), (after.v, -k, before[1])):
                want = old.copy()
                want[layer, :, :, length:end] = new
                right = right and np.array_equal(got, want)
            yield Case(label, right and np.array_equal(cache.k, before[0]))


def once_a_step(grow: Function, layers: int) -> Iterator[Case]:
    """However many layers write, the length grows by the tokens of a step once."""
    for tokens in itertools.product(range(3), repeat=3):
        cache = empty(layers, 1, 1, 6, 1)
        for count in tokens:
            chunk = np.zeros((1, 1, count, 1))
            for layer in range(layers):
                cache = write(cache, layer, chunk, chunk)
            cache = grow(cache, count)
        yield Case(f"steps of {tokens}: {cache.length}", cache.length == sum(tokens))


def rows_carried(permute: Function) -> Iterator[Case]:
    """Row b of every layer is row rows[b] as it was, for every choice of rows."""
    for batch in range(1, 4):
        cache = _filled(2, batch, 2, 1)
        for count in range(4):
            for rows in itertools.product(range(batch), repeat=count):
                after = permute(cache, np.array(rows, dtype=int))
                right = after.length == 1 and after.k.shape[1] == count
                for b, row in enumerate(rows):
                    right = right and np.array_equal(after.k[:, b], cache.k[:, row])
                    right = right and np.array_equal(after.v[:, b], cache.v[:, row])
                yield Case(f"rows {rows} of {batch}", right)


def padding(see: Function, places: Function) -> Iterator[Case]:
    """Real tokens see the real tokens up to themselves, padding sees itself; positions count from
    the first real token.
    """
    for length, tokens in itertools.product(range(4), range(5)):
        for pads in itertools.product(range(length + tokens + 1), repeat=2):
            seen = see(np.array(pads), tokens, length)[:, 0]
            stand = places(np.array(pads), tokens, length)
            right = seen.shape == (2, tokens, length + tokens)
            for b, pad in enumerate(pads):
                for i in range(tokens):
                    t = length + i
                    want = set(range(pad, t + 1)) or {t}
                    got = set(np.flatnonzero(seen[b, i]).tolist())
                    right = right and got == want and stand[b, i] == max(t - pad, 0)
            yield Case(f"{tokens} tokens at {length}, padding {pads}", right)


def _each_layer(cache: Cache, tokens: int) -> Cache:
    return replace(cache, length=cache.length + cache.layers * tokens)


def _causal_only(pads: np.ndarray, tokens: int, length: int = 0) -> np.ndarray:
    return padded_visible(0 * pads, tokens, length)


TOP_LEFT = rebound(sees, causal_visible=lambda i, j, offset: causal_visible(i, j, 0 * offset))
EARLY = mutant(write, "start = cache.length", "start = max(cache.length - 1, 0)")
REVERSED = mutant(reorder, "v=cache.v[:, rows]", "v=cache.v[:, rows[::-1]]")
AHEAD = mutant(ring_position, "last = length - 1", "last = length")
DOUBLE = mutant(advance, "length=cache.length + tokens", "length=cache.length + 2 * tokens")
LENIENT = mutant(advance, "_room(cache, tokens)", "pass")


def _obligation(
    claim: str,
    variant: str,
    statement: str,
    generality: str,
    body: Body,
    twin: Twin,
    trust: tuple[str, ...] = (),
) -> Obligation:
    name = f"cache.{claim}"
    proved = generality.startswith("any")
    return Obligation(
        f"{name}/{variant}",
        name,
        statement,
        generality,
        "proved" if proved else "exhaustive",
        "z3" if proved else "enumeration",
        body,
        twin,
        trust,
    )


SLOTS = (
    "write, 0 to 4 slots, every number in use, chunks of up to one more, two layers; slots are "
    "numbered: no value is looked at"
)
ROOM = LENGTH + T <= CAPACITY
OBLIGATIONS: tuple[Obligation, ...] = (
    _obligation(
        "decode_equals_full",
        "visible",
        r"\{j < s + T : j \le s + i\} = \{j < n : j \le t\},\quad t = s + i",
        "any start, chunk and total length",
        partial(visible_set, sees),
        Twin("a chunk sees as if it were the first", partial(visible_set, TOP_LEFT)),
    ),
    _obligation(
        "length_once",
        "paths",
        r"\ell' = \ell + T \;(0 \le T \le M - \ell),\quad \text{else refused}",
        "any length, number of tokens and capacity: every path of advance",
        partial(lengths, advance, ROOM),
        Twin("the length grows by 2 T", partial(lengths, DOUBLE, ROOM)),
    ),
    _obligation(
        "length_once",
        "sum",
        r"\ell_n = \sum_{k<n} T_k",
        "any number of steps of any numbers of tokens that fit, by induction",
        partial(sums, advance),
        Twin("the length grows by 2 T", partial(sums_of, DOUBLE)),
        COURSE,
    ),
    _obligation(
        "length_once",
        "layers",
        r"\ell' = \ell + T",
        "write and advance, three steps of 0 to 2 tokens, three layers",
        partial(once_a_step, advance, 3),
        Twin("it grows with every layer", partial(once_a_step, _each_layer, 3)),
    ),
    _obligation(
        "capacity",
        "paths",
        r"\ell + T > M \Rightarrow \text{refused}",
        "any length, number of tokens and capacity: every path of advance",
        partial(lengths, advance, ROOM),
        Twin("there is always room", partial(lengths, LENIENT, ROOM)),
    ),
    _obligation(
        "capacity",
        "small",
        r"\ell + T > M \Leftrightarrow \text{refused},\; s' = s",
        SLOTS,
        partial(appended, write),
        Twin("the chunk is written one slot early", partial(appended, EARLY)),
    ),
    _obligation(
        "position",
        "steps",
        r"\operatorname{pos}(x_t) = t",
        "any number of steps of one token, by induction; and chunks of any sizes, one by one",
        partial(positions, advance, position),
        Twin("positions count from 1", partial(positions_of, lambda n, i: n + i + 1)),
        COURSE,
    ),
    _obligation(
        "earlier_slots_kept",
        "small",
        r"k'_j = k_j,\; v'_j = v_j \quad (j < \ell)",
        SLOTS,
        partial(appended, write),
        Twin("the chunk is written one slot early", partial(appended, EARLY)),
    ),
    _obligation(
        "append_last",
        "small",
        r"k'_{\ell + i} = k^{\text{new}}_i,\quad v'_{\ell + i} = v^{\text{new}}_i",
        SLOTS,
        partial(appended, write),
        Twin("the chunk is written one slot early", partial(appended, EARLY)),
    ),
    _obligation(
        "reorder",
        "small",
        r"s'_b = s_{\pi(b)}",
        "1 to 3 rows, every choice of 0 to 3 of them, two layers, keys and values",
        partial(rows_carried, reorder),
        Twin("values in reverse", partial(rows_carried, REVERSED)),
    ),
    _obligation(
        "left_pad",
        "small",
        r"\{j : p \le j \le t\} \cup \{t\},\quad \operatorname{pos}_t = \max(t - p, 0)",
        "chunks of 0 to 4 tokens behind 0 to 3, every padding of two rows",
        partial(padding, padded_visible, padded_positions),
        Twin("padding is seen", partial(padding, _causal_only, padded_positions)),
    ),
    _obligation(
        "rolling_window",
        "integers",
        r"s = t \bmod W,\; \ell - W \le t < \ell \;\Leftrightarrow\; t \text{ is held in slot } s",
        "any window of at least 1, any length, slot and token",
        partial(ring, ring_slot, ring_position),
        Twin("the token to come is looked for", partial(ring_listed, ring_slot, AHEAD)),
    ),
    _obligation(
        "rolling_window",
        "small",
        r"s = t \bmod W,\; \ell - W \le t < \ell \;\Leftrightarrow\; t \text{ is held in slot } s",
        "windows of 1 to 5 slots, 0 to 17 tokens written one by one",
        partial(ring_listed, ring_slot, ring_position),
        Twin("the token to come is looked for", partial(ring_listed, ring_slot, AHEAD)),
    ),
    _obligation(
        "rolling_window",
        "length",
        r"\ell' = \ell + T",
        "any length and number of tokens: every path of roll, which has always room",
        partial(lengths, roll, z3.BoolVal(True)),
        Twin("a ring can be full", partial(lengths, advance, z3.BoolVal(True))),
    ),
)
