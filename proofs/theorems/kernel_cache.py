"""The key/value cache, accepted by Coq's kernel."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from assay.proofs.kernel import Agreement, Mutation, literal
from assay.proofs.obligation import Obligation
from assay.proofs.theorems.kernel_checked import kernel_checked
from assay.spec.cache import Cache, advance, empty, sees, write

ANY_CACHE = "any capacity, any number of slots in use, any chunk"
CAPACITY = 4


def filled(used: int) -> Cache:
    """One layer whose slots hold 10, 11, ... although only the first ones are in use."""
    slots = 10 + np.arange(CAPACITY).reshape(1, 1, 1, CAPACITY, 1)
    return replace(empty(1, 1, 1, CAPACITY, 1), k=slots, v=slots, length=used)


def cache_grid() -> Iterator[Agreement]:
    """The model's append is the spec's write and advance, or its refusal."""
    for used, tokens in itertools.product(range(CAPACITY + 1), repeat=2):
        before, chunk = filled(used), 1 + np.arange(tokens).reshape(1, 1, tokens, 1)
        given = f"(Cache {literal(before.k.ravel().tolist())} {used})"
        try:
            after = advance(write(before, 0, chunk, chunk), tokens)
            want = f"(Some (Cache {literal(after.k.ravel().tolist())} {after.length}))"
        except ValueError:
            want = "None"
        term = f"append nat {given} ({literal(chunk.ravel().tolist())})"
        yield Agreement(f"{tokens} tokens behind {used} of {CAPACITY}", term, want)


def visible_grid() -> Iterator[Agreement]:
    """The model's visible sets are the spec's, for all starts, rows and slots below 5."""
    for start in range(5):
        want = [[bool(sees(i, j, start)) for j in range(10)] for i in range(5)]
        term = f"map (fun i => map (visible {start} i) (seq 0 10)) (seq 0 5)"
        yield Agreement(f"slots that a chunk at {start} sees", term, want)


FULL = "(Cache [1; 2; 3] 2)"

OBLIGATIONS: tuple[Obligation, ...] = (
    kernel_checked(
        "cache.decode_equals_full",
        "Cache",
        ("cached_visible_set", "decode_equals_recomputation"),
        r"\{j < s + T : j \le s + i\} = \{j < n : j \le s + i\},\quad D(x)_t = f(x_{\le t})",
        "any start, chunk length and total length, any function of what is visible",
        visible_grid,
        "a query does not see its own slot",
        Mutation(
            "bool := j <=? offset + i.",
            "bool := j <? offset + i.",
            "filter (visible 1 0) (seq 0 2)",
            "[0; 1]",
        ),
    ),
    kernel_checked(
        "cache.chunk_split",
        "Cache",
        ("append_twice",),
        r"c \frown (x \frown y) = (c \frown x) \frown y",
        ANY_CACHE,
        cache_grid,
        "the length does not advance",
        Mutation(
            "      (used c + length chunk))\n  else None.",
            "      (used c))\n  else None.",
            "option_map (content nat) (append nat (Cache [0; 0] 0) [1])",
            "Some [1]",
        ),
    ),
    kernel_checked(
        "cache.earlier_slots_kept",
        "Cache",
        ("earlier_slots_kept",),
        r"j < \ell \Rightarrow k'_j = k_j",
        ANY_CACHE,
        cache_grid,
        "the chunk is written one slot early",
        Mutation(
            "(firstn (used c) (slots c) ++ chunk",
            "(firstn (pred (used c)) (slots c) ++ chunk",
            f"option_map (fun c => nth 1 (slots nat c) 0) (append nat {FULL} [7])",
            f"option_map (fun c => nth 1 (slots nat {FULL}) 0) (append nat {FULL} [7])",
        ),
    ),
    kernel_checked(
        "cache.append_last",
        "Cache",
        ("append_content",),
        r"c' = c \frown x",
        ANY_CACHE,
        cache_grid,
        "the chunk is put in front",
        Mutation(
            "append c chunk = Some after -> content after = content c ++ chunk.",
            "append c chunk = Some after -> content after = chunk ++ content c.",
            f"option_map (content nat) (append nat {FULL} [7])",
            f"Some ([7] ++ content nat {FULL})",
        ),
    ),
    kernel_checked(
        "cache.length_once",
        "Cache",
        ("append_sizes",),
        r"\ell' = \ell + T,\quad M' = M",
        ANY_CACHE,
        cache_grid,
        "the length advances by 1 more",
        Mutation(
            "used after = used c + length chunk.",
            "used after = S (used c + length chunk).",
            f"option_map (used nat) (append nat {FULL} [7])",
            f"Some (S (used nat {FULL} + 1))",
        ),
    ),
    kernel_checked(
        "cache.capacity",
        "Cache",
        ("refused_iff_full",),
        r"\ell + T > M \Leftrightarrow \text{refused}",
        ANY_CACHE,
        cache_grid,
        "a chunk that fills the last slot is refused",
        Mutation(
            "  if used c + length chunk <=? length (slots c) then",
            "  if used c + length chunk <? length (slots c) then",
            f"option_map (used nat) (append nat {FULL} [7])",
            "Some 3",
        ),
    ),
)
