"""The product of affine maps: its laws, any bracketing of it, and scans by trees and in chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import sympy
import z3

from assay.proofs.induction import by_induction, folds_of, starts
from assay.proofs.mutants import mutant, rebound
from assay.proofs.obligation import Case, Obligation, Premise, Query, Twin
from assay.proofs.scalars.courses import COURSE
from assay.proofs.scalars.reals import Real, real
from assay.proofs.scalars.stretches import Axis
from assay.proofs.scalars.terms import row
from assay.proofs.theorems.scan_affine import Scan, column, course, obligation
from assay.spec.scans.affine import (
    affine_scan,
    affine_scan_chunked,
    affine_scan_tree,
)
from assay.spec.scans.algebra import IDENTITY, AffineMap, apply, compose, composed, summary
from assay.spec.scans.runner import fold_bracketed, scan_tree

ITEM = z3.DeclareSort("Item")
COMBINE = z3.Function("combine", ITEM, ITEM, ITEM)
Compose = Callable[[AffineMap, AffineMap], AffineMap]


def _free(name: str) -> AffineMap:
    """A map over any ring: nothing commutes."""
    return AffineMap(*(sympy.Symbol(f"{part}_{name}", commutative=False) for part in "ab"))


def _zero(difference: Any) -> bool:
    return bool(sympy.expand(difference) == 0)


def associative(after: Compose) -> Iterator[Case]:
    """The product of three maps does not depend on brackets, and applies them in turn."""
    f, g, k = (_free(name) for name in "123")
    left, right = after(after(k, g), f), after(k, after(g, f))
    for name, one, two in zip(("factor", "added"), left, right, strict=True):
        shown = (rf"{sympy.latex(sympy.expand(one))} = {sympy.latex(sympy.expand(two))}",)
        yield Case(f"{name} of three maps", _zero(one - two), shown)
    h = sympy.Symbol("h", commutative=False)
    both = apply(after(g, f), h) - apply(g, apply(f, h))
    yield Case("one after the other", _zero(both))


def associative_reals(after: Compose) -> Iterator[Query]:
    """The same of real numbers."""
    f, g, k = (AffineMap(real(f"a{i}"), real(f"b{i}")) for i in "123")
    for name, one, two in zip(
        ("factor", "added"), after(after(k, g), f), after(k, after(g, f)), strict=True
    ):
        yield Query(f"{name} of three maps", one.term == two.term)
    h = real("h")
    in_turn = apply(g, apply(f, h))
    yield Query("one after the other", apply(after(g, f), h).term == in_turn.term)


def neutral(identity: AffineMap) -> Iterator[Case]:
    """(1, 0) on either side."""
    f = _free("1")
    for name, product in (
        ("left", compose(identity, f)),
        ("right", compose(f, identity)),
        ("summary", compose(summary([f]), identity)),
    ):
        same = all(_zero(x - y) for x, y in zip(product, f, strict=True))
        yield Case(f"{name}: {product}", same)
    h = sympy.Symbol("h", commutative=False)
    yield Case("it moves nothing", _zero(apply(identity, h) - h))


def summarised(after: Compose) -> Iterator[Query]:
    """The product of the first k maps, applied to h, is the state after k steps."""
    axis = Axis("", Real)
    maps = AffineMap(axis.values("a"), axis.values("b"))
    h = real("h")

    def grown(part: int) -> Callable[[Any, Any], Any]:
        def grow(before: Any, j: Any) -> Any:
            earlier = AffineMap(Real(factor.at(j)), Real(before))
            earlier = AffineMap(Real(before), Real(0)) if part == 0 else earlier
            return after(AffineMap(*(x.at(j) for x in maps)), earlier)[part].term

        return grow

    one, zero = (Real(x).term for x in IDENTITY)
    factor = axis.folded("factor", z3.RealSort(), one, grown(0))
    moved = axis.folded("added", z3.RealSort(), zero, grown(1))
    state = course(axis, maps, h)

    def holds(m: Any) -> z3.BoolRef:
        product = AffineMap(Real(factor.at(m)), Real(moved.at(m)))
        return apply(product, h).term == state.states.at(m)

    queries, _ = by_induction("a product of maps is a run", axis, holds)
    yield from queries
    few = [AffineMap(real(f"a{i}"), real(f"b{i}")) for i in range(6)]
    for n in range(len(few) + 1):
        end = h
        for f in few[:n]:
            end = apply(f, end)
        yield Query(f"summary of {n}", apply(summary(few[:n]), h).term == end.term)


def summarised_of(after: Compose) -> Iterator[Query]:
    """Two maps, for a given product."""
    f, g, h = AffineMap(*map(real, "ab")), AffineMap(*map(real, "cd")), real("h")
    product = rebound(summary, compose=after)([f, g])
    yield Query("two maps", apply(product, h).term == apply(g, apply(f, h)).term)


def bracketed() -> Iterator[Query]:
    """The product of a stretch is that of its parts, wherever it is parted."""
    first, second, whole = Axis("L"), Axis("R"), Axis("W")
    left, right = (z3.Function(name, z3.IntSort(), ITEM) for name in ("l", "r"))
    n, m = first.length, second.length

    def both(j: Any) -> Any:
        return z3.If(j <= n, left(j), right(j - n - 1))

    # A product of j + 1 items: there is no product of none.
    products = [
        axis.folded("product", ITEM, z3.simplify(item(z3.IntVal(0))), _product(item))
        for axis, item in ((first, left), (second, right))
    ]
    p, q = products
    r = whole.folded("product", ITEM, both(z3.IntVal(0)), _product(both))
    sizes = Premise(
        r"n_L, n_R \ge 0,\; n_W = n_L + n_R + 1",
        z3.And(n >= 0, m >= 0, whole.length == n + m + 1),
        "definition",
    )
    witness = {"nL": 2, "nR": 2, "nW": 5, "combine": lambda a, b: a}
    known = [sizes, *starts(first), *starts(second), *starts(whole)]
    axes = (first, second, whole)
    queries, agrees = by_induction(
        "the left part",
        first,
        lambda k: r.at(k) == p.at(k),
        pointwise=lambda k: [_more(r, k)],
        premises=known,
        witness=witness,
        others=axes,
    )
    yield from queries
    start = _more(r, n)

    def split(k: Any) -> z3.BoolRef:
        return r.at(n + 1 + k) == COMBINE(p.at(n), q.at(z3.IntVal(0) + k))

    def law(k: Any) -> Premise:
        x, y, z = p.at(n), q.at(k), right(k + 1)
        equal = COMBINE(COMBINE(x, y), z) == COMBINE(x, COMBINE(y, z))
        return Premise(r"(x \cdot y) \cdot z = x \cdot (y \cdot z)", equal)

    queries, lemma = by_induction(
        "both parts",
        second,
        split,
        pointwise=lambda k: [_more(r, n + 1 + k), law(k)],
        premises=[*known, agrees, start],
        witness=witness,
        others=axes,
    )
    yield from queries
    got = fold_bracketed(COMBINE, [p.at(n), q.at(m)], lambda _: 1)
    goal = got == r.at(whole.length)
    yield Query("the spec's product", goal, (sizes, lemma), witness, folds_of(*axes))
    alone = fold_bracketed(COMBINE, [p.at(n)], lambda _: 1)
    yield Query("one part", alone == p.at(n), (), {}, folds_of(*axes))


def _product(item: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda before, j: COMBINE(before, item(j + 1))


def _more(fold: Any, k: Any) -> Premise:
    return Premise("one more of both", fold.at(k + 1) == fold.step(fold.at(k), k), "definition")


def bracketed_of(fold: Callable[..., Any]) -> Iterator[Query]:
    """Three items, for a given product."""
    x, y, z = (z3.Const(name, ITEM) for name in "xyz")
    want = COMBINE(x, COMBINE(y, z))
    yield Query("three items", fold(COMBINE, [x, y, z], lambda _: 1) == want)


def trees(scan: Callable[..., Any], most: int) -> Iterator[Case]:
    """Words under concatenation: what holds of them holds of every associative operation."""
    calls = 0

    def join(earlier: tuple[int, ...], later: tuple[int, ...]) -> tuple[int, ...]:
        nonlocal calls
        calls += 1
        return earlier + later

    for n in range(most + 1):
        calls = 0
        got = scan(join, [(i,) for i in range(n)])
        want = [tuple(range(t + 1)) for t in range(n)]
        yield Case(f"{n} items in {calls} calls", got == want and calls <= 2 * n)


def arranged(tree: Scan, chunk: Scan, most: int) -> Iterator[Query]:
    """The scan by a tree and the scan in chunks are the scan step by step, as polynomials."""
    for steps in range(most + 1):
        a, b, x = (column(*[real(f"{n}{t}") for t in range(steps)]) for n in "abx")
        h = row(real("h"))
        want = affine_scan(a, b, x, h)
        yield _equal(f"tree of {steps}", tree(a, b, x, h), want)
        for size in range(1, steps + 1):
            yield _equal(f"{steps} steps by {size}", chunk(a, b, x, h, chunk=size), want)


def _equal(name: str, got: np.ndarray, want: np.ndarray) -> Query:
    pairs = zip(got.flat, want.flat, strict=True)
    # Multiplied out, equal polynomials are one term.
    goals = [z3.simplify(a.term - b.term, som=True) == 0 for a, b in pairs]
    return Query(name, z3.And(True, *goals))


SWAPPED = mutant(compose, "later.a * earlier.b + later.b", "earlier.a * later.b + earlier.b")
UNSCALED = mutant(compose, "later.a * earlier.b + later.b", "earlier.b + later.b")
TURNED = mutant(
    fold_bracketed, "return combine(\n        fold_bracketed(combine, items[:at], split), "
    "fold_bracketed(combine, items[at:], split)",
    "return combine(\n        fold_bracketed(combine, items[at:], split), "
    "fold_bracketed(combine, items[:at], split)",
)  # fmt: skip
LATER_FIRST = mutant(
    scan_tree, "combine(odd[i // 2 - 1], items[i])", "combine(items[i], odd[i // 2 - 1])"
)
TREE_OF_SWAPPED = rebound(affine_scan_tree, composed=lambda f, g: composed(g, f))
ANY_RING = "any ring, commutative or not: numbers, channels side by side, square matrices"
FREE = ("an identity of polynomials whose letters do not commute holds in every ring",)
ASSOCIATIVE = (
    r"(f_3 \circ f_2) \circ f_1 = f_3 \circ (f_2 \circ f_1),\quad (g \circ f)(h) = g(f(h))"
)

OBLIGATIONS: tuple[Obligation, ...] = (
    obligation(
        "compose_associative",
        "rings",
        ASSOCIATIVE,
        ANY_RING,
        partial(associative, compose),
        Twin("the added terms change places", partial(associative, SWAPPED)),
        strength="derived",
        trust=FREE,
    ),
    obligation(
        "compose_associative",
        "reals",
        ASSOCIATIVE,
        "any real numbers",
        partial(associative_reals, compose),
        Twin("the earlier map is not scaled", partial(associative_reals, UNSCALED)),
    ),
    obligation(
        "compose_associative",
        "summary",
        r"(f_n \circ \dots \circ f_1)(h) = f_n(\dots f_1(h))",
        "any number of maps of real numbers by induction; summary itself of up to 6",
        partial(summarised, compose),
        Twin("the earlier map is not scaled", partial(summarised_of, UNSCALED)),
        trust=COURSE,
    ),
    obligation(
        "compose_identity",
        "rings",
        r"(1, 0)(a, b) = (a, b) = (a, b)(1, 0),\quad (1, 0)(h) = h",
        ANY_RING,
        partial(neutral, IDENTITY),
        Twin("the identity adds 1", partial(neutral, AffineMap(1, 1))),
        strength="derived",
        trust=FREE,
    ),
    obligation(
        "parallel_equals_sequential",
        "brackets",
        r"x_1 \cdots x_n = (x_1 \cdots x_m) (x_{m+1} \cdots x_n)",
        "any associative operation, any number of items, every way to set brackets: by induction "
        "over the tree, whose two sides hold any number of items each",
        bracketed,
        Twin("the right side comes first", partial(bracketed_of, TURNED)),
        trust=("in fold_bracketed each side stands for the product that it was shown to be",),
    ),
    obligation(
        "parallel_equals_sequential",
        "tree",
        r"\operatorname{tree}(x)_t = x_1 \cdots x_t",
        "scan_tree of 0 to 64 items, any associative operation; at most 2 n calls of it",
        partial(trees, scan_tree, 64),
        Twin("the later item comes first", partial(trees, LATER_FIRST, 8)),
        strength="bounded",
        trust=("an equation of words holds in every semigroup",),
    ),
    obligation(
        "parallel_equals_sequential",
        "affine",
        r"\operatorname{tree}(a, b, x)_t = h_t = \operatorname{chunked}_c(a, b, x)_t",
        "affine_scan_tree and affine_scan_chunked, 0 to 6 steps, every chunk size, real numbers",
        partial(arranged, affine_scan_tree, affine_scan_chunked, 6),
        Twin(
            "maps are composed in reverse",
            partial(arranged, TREE_OF_SWAPPED, affine_scan_chunked, 2),
        ),
        strength="bounded",
    ),
)
