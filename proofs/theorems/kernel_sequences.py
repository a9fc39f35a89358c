"""Scans, trees, affine maps, bands and the key/value cache, accepted by Coq's kernel."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from assay.proofs.kernel import Agreement, Mutation, literal
from assay.proofs.obligation import Obligation
from assay.proofs.theorems.kernel_checked import REALS, kernel_checked
from assay.spec.scans.affine import affine_scan
from assay.spec.scans.algebra import IDENTITY, AffineMap, apply, compose, summary
from assay.spec.scans.causal_conv import causal_conv1d
from assay.spec.scans.runner import (
    fold_bracketed,
    run,
    run_chunked,
    run_packed,
    run_with_history,
    scan_tree,
)
from assay.spec.spectral.bands import band

ANY_STEP = (
    "any number of inputs, any step, any state, whatever its arithmetic computes: bit-identical"
)
# A step that mixes state and input, with an output that shows both; in Coq's words, and in Python.
STEP = "(fun h x => (Nat.modulo (3 * h + x + 1) 11, 2 * h + x))"
OF = f"nat nat nat {STEP}"
SEQUENCES = [list(xs) for n in range(4) for xs in itertools.product(range(3), repeat=n)]


def step(h: int, x: int) -> tuple[int, int]:
    """The same step."""
    return (3 * h + x + 1) % 11, 2 * h + x


def run_grid() -> Iterator[Agreement]:
    """The model's run is the spec's, for every sequence of up to three inputs out of three."""
    for xs in SEQUENCES:
        yield Agreement(f"run over {xs}", f"run {OF} 5 ({literal(xs)})", run(step, 5, xs))


def history_grid() -> Iterator[Agreement]:
    """The same with all states, and the taps of a convolution as a state."""
    for xs in SEQUENCES:
        term = f"run_with_history {OF} 5 ({literal(xs)})"
        yield Agreement(f"run_with_history over {xs}", term, run_with_history(step, 5, xs))
    weights = [2, 3, 5]
    dot = f"(fun w => list_sum (map (fun p => fst p * snd p) (combine {literal(weights)} w)))"
    for xs in SEQUENCES:
        x, w = np.array(xs, dtype=int).reshape(1, -1, 1), np.array(weights).reshape(-1, 1)
        out, history = causal_conv1d(x, w, history=np.array([4, 6]).reshape(1, 2, 1))
        # The spec keeps the oldest first.
        want = (out.ravel().tolist(), history.ravel().tolist()[::-1])
        term = f"run _ _ _ (windowed nat nat 3 {dot}) [6; 4] ({literal(xs)})"
        yield Agreement(f"causal_conv1d of {xs}", term, want)


def chunk_grid() -> Iterator[Agreement]:
    """The model's chunked run is the spec's, for chunks of 1, 2 and 3."""
    for xs, size in itertools.product(SEQUENCES, (1, 2, 3)):
        chunks = [xs[i : i + size] for i in range(0, len(xs), size)]
        term = f"run_chunked {OF} 5 ({literal(chunks)})"
        name = f"run_chunked over {xs} by {size}"
        yield Agreement(name, term, run_chunked(step, 5, xs, size))


def packed_grid() -> Iterator[Agreement]:
    """The model's packed run is the spec's, for every pair of short sequences."""
    for xs, ys in itertools.product(SEQUENCES[:13], repeat=2):
        starts = [i in (0, len(xs)) for i in range(len(xs) + len(ys))]
        outputs, _ = run_packed(step, 5, xs + ys, starts)
        both = literal([xs, ys])
        term = f"outputs _ _ _ (resetting {OF} 5) 5 (concat (map (marked nat) ({both})))"
        yield Agreement(f"run_packed over {xs} and {ys}", term, outputs)


def tree_grid() -> Iterator[Agreement]:
    """Concatenation shows order and completeness: what the spec's tree gives, the model's gives."""
    for n in range(1, 9):
        items = [[i] for i in range(n)]
        want = scan_tree(lambda a, b: a + b, items)
        yield Agreement(
            f"scan_tree of {n}", f"inclusive (list nat) (@app nat) [] {literal(items)}", want
        )
        for name, split in (("halves", lambda m: m // 2), ("left", lambda m: m - 1)):
            tree = fold_bracketed(
                lambda a, b: f"(Node {a} {b})", [f"(Leaf [{i}])" for i in range(n)], split
            )
            swept = f"down_sweep (list nat) (@app nat) [] {tree}"
            yield Agreement(f"scan_tree of {n}, {name}", swept, want)
        chunked = [items[i : i + 3] for i in range(0, n, 3)]
        term = f"scan_chunks (list nat) (@app nat) [] ({literal(chunked)})"
        yield Agreement(f"scan_tree of {n}, in chunks", term, want)


Z = "Z 0%Z 1%Z Z.add Z.mul"
PAIRS = [AffineMap(2, 1), AffineMap(-3, 5), AffineMap(0, 4), IDENTITY]


def integer(value: Any) -> str:
    """Pairs of integers as the model writes them."""
    return f"({value[0]}, {value[1]})%Z"


def affine_grid() -> Iterator[Agreement]:
    """The model's maps are the spec's, over the integers."""
    for f, g in itertools.product(PAIRS, repeat=2):
        composed = f"compose Z Z.add Z.mul {integer(g)} {integer(f)}"
        yield Agreement(f"{g} after {f}", composed, integer(compose(g, f)))
        yield Agreement(f"{f} at 7", f"apply Z Z.add Z.mul {integer(f)} 7%Z", f"({apply(f, 7)})%Z")
    for maps in itertools.permutations(PAIRS):
        steps = f"[{'; '.join(map(integer, maps))}]"
        want = integer(summary(list(maps)))
        yield Agreement(f"summary of {maps}", f"summary Z 0%Z 1%Z Z.add Z.mul {steps}", want)


def affine_run_grid() -> Iterator[Agreement]:
    """The model's run is the last state of ``affine_scan``."""
    for maps in itertools.permutations(PAIRS):
        a, b = (np.array([[int(f[i])] for f in maps]) for i in (0, 1))
        want = affine_scan(a, b, np.ones((len(maps), 1), dtype=int), np.array([7]))[-1, 0]
        steps = f"[{'; '.join(map(integer, maps))}]"
        yield Agreement(f"affine_scan of {maps}", f"run Z Z.add Z.mul 7%Z {steps}", f"({want})%Z")


def band_grid() -> Iterator[Agreement]:
    """The model's band is the spec's, for all lengths and modes up to 12."""
    for n in range(13):
        want = [np.flatnonzero(band(n, m)).tolist() for m in range(13)]
        yield Agreement(f"bands of {n}", f"map (band {n}) (seq 0 13)", want)


ONE_STEP = f"outputs {OF} 5"
OBLIGATIONS: tuple[Obligation, ...] = (
    *(
        kernel_checked(
            f"{family}.prefix",
            "Scans",
            ("prefix_causality", "future_independence", "output_count"),
            r"f(h, x \frown y)_{\le |x|} = f(h, x)",
            ANY_STEP,
            run_grid,
            "what is appended is put in front",
            Mutation(
                "firstn (length xs) (outputs h (xs ++ ys)) = outputs h xs.",
                "firstn (length xs) (outputs h (ys ++ xs)) = outputs h xs.",
                f"firstn 1 ({ONE_STEP} [2; 1])",
                f"{ONE_STEP} [1]",
            ),
        )
        for family in ("scan", "recurrent")
    ),
    *(
        kernel_checked(
            f"{family}.streaming",
            "Scans",
            ("streaming",),
            r"f(h, x \frown y) = f(h, x) \frown f(h_{|x|}, y)",
            ANY_STEP,
            run_grid,
            "the second part starts from the first state",
            Mutation(
                "(outputs h xs ++ outputs (final h xs) ys, final (final h xs) ys).",
                "(outputs h xs ++ outputs h ys, final h ys).",
                f"run {OF} 5 [1; 2]",
                f"({ONE_STEP} [1] ++ {ONE_STEP} [2], final {OF} 5 [2])",
            ),
        )
        for family in ("scan", "recurrent")
    ),
    kernel_checked(
        "scan.chunk_independent",
        "Scans",
        ("chunked_equals_sequential",),
        r"\operatorname{chunked}(h, x_1, \dots, x_m) = f(h, x_1 \frown \dots \frown x_m)",
        f"{ANY_STEP}; chunks of any sizes, empty ones too",
        chunk_grid,
        "each chunk starts from the first state",
        Mutation(
            "let (zs, last) := run_chunked h1 rest in",
            "let (zs, last) := run_chunked h rest in",
            f"run_chunked {OF} 5 [[1]; [2]]",
            f"run {OF} 5 [1; 2]",
        ),
    ),
    kernel_checked(
        "scan.history",
        "Scans",
        ("history_agrees", "window_suffices"),
        r"s = (x_{t-K+2}, \dots, x_t) \text{ is enough},\quad h_t = f(h_0, x_{\le t})",
        ANY_STEP,
        history_grid,
        "one input less is kept",
        Mutation(
            "(firstn (pred taps) (x :: past), f (firstn taps (x :: past))).",
            "(firstn (pred (pred taps)) (x :: past), f (firstn taps (x :: past))).",
            "outputs _ _ _ (windowed nat _ 2 (fun w => w)) [0] [1; 2]",
            "outputs _ _ _ (whole nat _ 2 (fun w => w)) [0] [1; 2]",
        ),
    ),
    kernel_checked(
        "scan.packed_reset",
        "Scans",
        ("packed_equals_single",),
        r"f(x_1 \frown \dots \frown x_m; \text{reset}) = f(x_1) \frown \dots \frown f(x_m)",
        f"{ANY_STEP}; any number of sequences of any lengths",
        packed_grid,
        "the state is not reset",
        Mutation(
            "step (if snd p then first else now) (fst p).",
            "step now (fst p).",
            f"outputs _ _ _ (resetting {OF} 5) 5 [(1, true); (2, true)]",
            f"{ONE_STEP} [1] ++ {ONE_STEP} [2]",
        ),
    ),
    kernel_checked(
        "scan.packed_reset",
        "Affine",
        ("reset_forgets",),
        r"a_t = 0 \Rightarrow h_{\ge t} = f(b_t, x_{> t})",
        "any number of steps before and after, any ring, commutative or not",
        affine_run_grid,
        "the factor is 1",
        Mutation(
            "run h (before ++ (zero, b) :: after) = run b after.",
            "run h (before ++ (one, b) :: after) = run b after.",
            "run Z Z.add Z.mul 7%Z [(1, 2)%Z]",
            "run Z Z.add Z.mul 2%Z []",
        ),
        variant="kernel_factor",
    ),
    kernel_checked(
        "scan.parallel_equals_sequential",
        "Trees",
        (
            "tree_equals_sequential",
            "bracketing_is_irrelevant",
            "blelloch_equals_sequential",
            "chunks_equal_sequential",
        ),
        r"\text{sweep}_T(c) = (c \circ x_1,\; c \circ x_1 \circ x_2, \dots)",
        "any tree over any number of pieces, any associative operation; Blelloch's two sweeps, and "
        "chunks that are scanned apart",
        tree_grid,
        "the right subtree is not given what lies to its left",
        Mutation(
            "down_sweep carry l ++ down_sweep (op carry (fold_tree l)) r",
            "down_sweep carry l ++ down_sweep carry r",
            "down_sweep nat Nat.add 0 (Node (Leaf 1) (Leaf 2))",
            "inclusive nat Nat.add 0 [1; 2]",
        ),
    ),
    kernel_checked(
        "scan.compose_associative",
        "Affine",
        ("compose_associative", "compose_apply", "summary_is_run"),
        r"(f_3 \circ f_2) \circ f_1 = f_3 \circ (f_2 \circ f_1),\quad (g \circ f)(h) = g(f(h))",
        "any ring, commutative or not: numbers, channels side by side, square matrices",
        affine_grid,
        "the factors are multiplied in the order of time",
        Mutation(
            "  (mul (fst later) (fst earlier), add",
            "  (mul (fst earlier) (fst later), add",
            "fst (compose (list nat) (fun _ y => y) (@app nat) ([1], []) ([2], []))",
            "[1; 2]",
        ),
    ),
    kernel_checked(
        "scan.compose_identity",
        "Affine",
        ("compose_identity",),
        r"(1, 0)(a, b) = (a, b) = (a, b)(1, 0)",
        "any ring, commutative or not",
        affine_grid,
        "the identity adds 1",
        Mutation(
            "Definition identity : map := (one, zero).",
            "Definition identity : map := (one, one).",
            "compose Z Z.add Z.mul (identity Z 1%Z) (2, 3)%Z",
            "(2, 3)%Z",
        ),
    ),
    kernel_checked(
        "scan.nonexpansive",
        "Nonexpansive",
        ("nonexpansive",),
        r"|a_t| \le 1 \Rightarrow |h_t - h'_t| \le |h_0 - h'_0|",
        "any number of steps, any real factors of at most 1 in magnitude, any inputs and states",
        affine_run_grid,
        "factors of at most 2",
        Mutation(
            "  (forall a b, In (a, b) steps -> Rabs a <= 1) ->",
            "  (forall a b, In (a, b) steps -> Rabs a <= 2) ->",
            "(run Z Z.add Z.mul 1 [(2, 0)] - run Z Z.add Z.mul 0 [(2, 0)] <=? 1 - 0)%Z",
            "true",
        ),
        axioms={name: text for name, text in REALS.items() if not name.endswith("sig_not_dec")},
    ),
    kernel_checked(
        "spectral.band",
        "Bands",
        ("band_count", "band_covers"),
        r"|\{k < n : k < m \lor n - m \le k\}| = \min(2 m, n)",
        "any axis length n and any number of modes m",
        band_grid,
        "frequency n - m is not kept",
        Mutation(
            "(k <? m) || (n - m <=? k).",
            "(k <? m) || (n - m <? k).",
            "length (band 5 1)",
            "Nat.min (2 * 1) 5",
        ),
    ),
)
