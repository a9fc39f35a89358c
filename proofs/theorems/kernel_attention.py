"""Attention of one query to any number of keys, accepted by Coq's kernel."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from assay.proofs.kernel import Agreement, Mutation, literal
from assay.proofs.obligation import Obligation
from assay.proofs.scalars.rationals import array
from assay.proofs.theorems.kernel_checked import REALS, kernel_checked
from assay.proofs.theorems.kernel_softmax import exact, keys, online_grid, rows
from assay.spec.attention import attention, attention_backward, flash_attention

ANY_KEYS = "any number of keys, any real scores, values and mask; the real exponential"
SCORES, VALUES = (1, -2, 3, 0), (2, -1, 5, 4)


def sequence(numbers: Any) -> np.ndarray:
    """[1, 1, length, 1] rationals."""
    return array([[[[x] for x in numbers]]]).reshape(1, 1, -1, 1)


def causal_grid() -> Iterator[Agreement]:
    """Row i of the model's causal attention at an offset is the spec's."""
    for n, offset in itertools.product(range(1, 5), range(3)):
        k, v = sequence(SCORES[:n]), sequence(VALUES[:n])
        out = exact(attention(sequence([1, 1]), k, v, causal=True, offset=offset, scale=1))
        pairs = [(Fraction(s), Fraction(x)) for s, x in zip(SCORES[:n], VALUES[:n], strict=True)]
        for i in range(2):
            term = f"causal_attend (K := powers) {offset} {i} ({literal(pairs)})"
            yield Agreement(f"row {i} of {n} keys at offset {offset}", term, out[i])


def masked_grid() -> Iterator[Agreement]:
    """The model's attention under every mask of up to three keys is the spec's."""
    for scores, mask in rows():
        v = sequence(VALUES[: len(scores)])
        allowed = np.array(mask, dtype=bool).reshape(1, 1, 1, -1)
        got = attention(sequence([1]), sequence(scores), v, mask=allowed, scale=1)
        given = literal(keys(scores, mask, VALUES))
        name = f"attention to {scores} where {mask}"
        yield Agreement(name, f"attend (K := powers) (1 # 1)%Q ({given})", exact(got)[0])


def gradient_grid() -> Iterator[Agreement]:
    """The model's gradient into the values is the spec's, for two queries."""
    for first, second in itertools.product(list(rows())[7:], repeat=2):
        scores = first[0]
        mask = np.array([first[1], second[1]], dtype=bool).reshape(1, 1, 2, -1)
        v, cotangent = sequence(VALUES[: len(scores)]), sequence([3, 5])
        got = attention_backward(
            sequence([1, 1]), sequence(scores), v, cotangent, mask=mask, scale=1
        )
        given = [
            ((Fraction(1), [(Fraction(s), a) for s, a in zip(*row, strict=True)]), Fraction(g))
            for g, row in ((3, first), (5, second))
        ]
        term = f"value_gradient (K := powers) {len(scores)} ({literal(given)})"
        yield Agreement(f"dV of {scores} where {first[1]}, {second[1]}", term, exact(got.v))


def tiled_grid() -> Iterator[Agreement]:
    """The model's recurrence is the spec's tiled attention."""
    yield from online_grid()
    for (scores, mask), block in itertools.product(rows(), (1, 2)):
        every = keys(scores, mask, VALUES)
        blocks = [every[i : i + block] for i in range(0, len(every), block)]
        allowed = np.array(mask, dtype=bool).reshape(1, 1, 1, -1)
        v = sequence(VALUES[: len(scores)])
        got = flash_attention(
            sequence([1]), sequence(scores), v, mask=allowed, scale=1, block=block
        )
        name = f"flash_attention to {scores} where {mask} in blocks of {block}"
        yield Agreement(name, f"online (K := powers) ({literal(blocks)})", exact(got)[0])


def pairs(*numbers: tuple[int, int]) -> str:
    """Scores with values, as the model pairs them."""
    return f"({literal([(Fraction(s), Fraction(v)) for s, v in numbers])})"


SHORT, LONG = pairs((0, 1)), pairs((0, 1), (1, 2))
FIRST_ROW = "causal_attend (K := powers) 0 0"
SEES_AHEAD = Mutation(
    "((s, j <=? offset + i), v) :: causal offset i (S j) rest",
    "((s, j <=? S (offset + i)), v) :: causal offset i (S j) rest",
    f"{FIRST_ROW} {LONG}",
    f"{FIRST_ROW} {SHORT}",
)
ONE_SEEN = literal(keys([0, 1], [True, False], (1, 3)))
DV = "value_gradient (K := powers) 1"
ATTEND = "attend (K := powers) (0 # 1)%Q"

OBLIGATIONS: tuple[Obligation, ...] = (
    kernel_checked(
        "attention.future_zero",
        "Attention",
        ("future_zero",),
        r"x_{\le t} = x'_{\le t} \Rightarrow o_t = o'_t",
        "any number of keys, any offset and row, any scalar, whatever its operations compute",
        causal_grid,
        "a query sees the key after its own position",
        SEES_AHEAD,
    ),
    kernel_checked(
        "attention.prefix",
        "Attention",
        ("prefix_rows",),
        r"O(x_{\le t}) = O(x)_{\le t}",
        ANY_KEYS,
        causal_grid,
        "a query sees the key after its own position",
        SEES_AHEAD,
        axioms=REALS,
    ),
    kernel_checked(
        "attention.offset",
        "Attention",
        ("offset_rows",),
        r"O(q_{o..}, k, v; o)_i = O(q, k, v)_{o+i}",
        ANY_KEYS,
        causal_grid,
        "the offset is not added",
        Mutation(
            "((s, j <=? offset + i), v) :: causal offset i (S j) rest",
            "((s, j <=? i), v) :: causal offset i (S j) rest",
            f"causal_attend (K := powers) 1 0 {LONG}",
            f"causal_attend (K := powers) 0 1 {LONG}",
        ),
        axioms=REALS,
    ),
    kernel_checked(
        "attention.convex",
        "Attention",
        ("convex",),
        r"\min_{a_{ij}} v_j \le o_i \le \max_{a_{ij}} v_j",
        ANY_KEYS,
        masked_grid,
        "the output is twice as far as the lower bound",
        Mutation(
            "  lo <= attend m keys <= hi.",
            "  2 * lo <= attend m keys <= hi.",
            f"Qle_bool (2 # 1) ({ATTEND} ({ONE_SEEN}))",
            "true",
        ),
        axioms=REALS,
    ),
    kernel_checked(
        "attention.empty_row",
        "Attention",
        ("empty_row",),
        r"(\forall j\; \neg a_{ij}) \Rightarrow o_i = 0",
        ANY_KEYS,
        masked_grid,
        "the output is 1",
        Mutation(
            "seen (map scored keys) = false -> attend m keys = 0.",
            "seen (map scored keys) = false -> attend m keys = 1.",
            f"{ATTEND} []",
            "(1 # 1)%Q",
        ),
        axioms=REALS,
    ),
    kernel_checked(
        "attention.key_permutation",
        "Attention",
        ("key_permutation",),
        r"O(q, k_{\pi}, v_{\pi}; a_{\pi}) = O(q, k, v; a)",
        ANY_KEYS,
        masked_grid,
        "keys are rearranged and the output doubles",
        Mutation(
            "Permutation x y -> attend m x = attend m y.",
            "Permutation x y -> attend m x = 2 * attend m y.",
            f"{ATTEND} ({ONE_SEEN})",
            f"mul powers (2 # 1)%Q ({ATTEND} ({ONE_SEEN}))",
        ),
        axioms=REALS,
    ),
    kernel_checked(
        "attention.tile_independent",
        "Attention",
        ("tile_independent",),
        r"O(q, k \frown k', v \frown v'; a \frown 0) = O(q, k, v; a)",
        ANY_KEYS,
        masked_grid,
        "the appended keys are allowed",
        Mutation(
            "seen (map scored extra) = false -> attend m (keys ++ extra) = attend m keys.",
            "seen (map scored extra) = true -> attend m (keys ++ extra) = attend m keys.",
            f"{ATTEND} {literal(keys([0, 0], [True, True], (1, 3)))}",
            f"{ATTEND} {literal(keys([0], [True], (1,)))}",
        ),
        axioms=REALS,
    ),
    kernel_checked(
        "attention.linear_in_v",
        "Attention",
        ("linear_in_v",),
        r"O(v + c\,w) = O(v) + c\,O(w)",
        ANY_KEYS,
        masked_grid,
        "the factor is left out",
        Mutation(
            "+ c * attend m (with_values (fun _ w => w) keys).",
            "+ attend m (with_values (fun _ w => w) keys).",
            f"{ATTEND} {literal(keys([0], [True], (3,)))}",
            f"add powers ({ATTEND} {literal(keys([0], [True], (1,)))})"
            f" ({ATTEND} {literal(keys([0], [True], (1,)))})",
        ),
        axioms=REALS,
    ),
    kernel_checked(
        "attention.value_mass",
        "Attention",
        ("value_mass",),
        r"\sum_j \bar v_j = \sum_i \bar o_i",
        "any number of queries and keys, any real scores and cotangents, any mask that leaves each "
        "query a key; the real exponential",
        gradient_grid,
        "a query may see nothing",
        Mutation(
            "(forall top row g, In (top, row, g) rows -> length row = n /\\ seen row = true) ->",
            "(forall top row g, In (top, row, g) rows -> length row = n) ->",
            f"sum ({DV} [((0 # 1)%Q, [((0 # 1)%Q, false)], (3 # 1)%Q)])",
            "(3 # 1)%Q",
        ),
        axioms=REALS,
    ),
    kernel_checked(
        "attention.grad_blocked_zero",
        "Attention",
        ("unseen_value_zero_gradient",),
        r"(\forall i\; \neg a_{ij}) \Rightarrow \bar v_j = 0",
        "any number of queries and keys, any real scores, mask and cotangents; values only",
        gradient_grid,
        "queries see the key",
        Mutation(
            "exists s, nth_error row j = Some (s, false)) ->",
            "exists s, nth_error row j = Some (s, true)) ->",
            f"{DV} [((0 # 1)%Q, [((0 # 1)%Q, true)], (3 # 1)%Q)]",
            "[(0 # 1)%Q]",
        ),
        axioms=REALS,
    ),
    kernel_checked(
        "attention.blocked_independent",
        "Online",
        ("blocked_keys_independent",),
        r"(\forall j\; a_{ij} \Rightarrow (s_j, v_j) = (s'_j, v'_j)) \Rightarrow o_i = o'_i",
        "any number of keys, any mask, any scalar, whatever its operations compute",
        masked_grid,
        "blocked values are read",
        Mutation(
            "if snd (fst k) then mul K e (snd k) else zero K.",
            "if snd (fst k) then mul K e (snd k) else snd k.",
            f"{ATTEND} ({ONE_SEEN})",
            f"{ATTEND} ({literal(keys([0, 1], [True, False], (1, 4)))})",
        ),
    ),
    kernel_checked(
        "attention.flash_equals_direct",
        "Online",
        ("online_equals_direct",),
        r"\mathrm{acc} / \ell = \sum_j w_j v_j",
        "any blocks of keys of any sizes, empty and all-blocked ones too; the real exponential",
        tiled_grid,
        "the mass is not rescaled",
        Mutation(
            "(add K (mul K rescale (mass s)) (sum es))",
            "(add K (mass s) (sum es))",
            f"online (K := powers) ({literal([keys([0], [True], (1,)), keys([1], [True], (1,))])})",
            "(1 # 1)%Q",
        ),
        axioms=REALS,
    ),
)
