"""Affine scans: the product of maps, any bracketing of it, resets, gaps and gradients."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import sympy
import z3

from assay.proofs.derivation import differentiated
from assay.proofs.induction import by_induction, folds_of, starts
from assay.proofs.mutants import mutant, rebound
from assay.proofs.obligation import Body, Case, Obligation, Premise, Query, Twin
from assay.proofs.scalars.courses import COURSE, Course, Factors
from assay.proofs.scalars.reals import Real, real
from assay.proofs.scalars.stretches import Axis, Stretch
from assay.proofs.scalars.symbols import Symbolic, expression
from assay.proofs.scalars.terms import row
from assay.spec.scans.affine import (
    affine_scan,
    affine_scan_backward,
    affine_scan_chunked,
    affine_scan_tree,
)
from assay.spec.scans.algebra import IDENTITY, AffineMap, apply, compose, composed, summary
from assay.spec.scans.runner import fold_bracketed, scan_tree

ITEM = z3.DeclareSort("Item")
COMBINE = z3.Function("combine", ITEM, ITEM, ITEM)
Compose = Callable[[AffineMap, AffineMap], AffineMap]
Scan = Callable[..., Any]


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
    state = _course(axis, maps, h)

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


def _course(axis: Axis, maps: AffineMap, start: Any) -> Course:
    """``affine_scan`` of a stretch: a course of states."""
    a, b, x = (row(e).reshape(1, 1) for e in (Factors(maps.a), Real(1), maps.b))
    course: Course = affine_scan(a, b, x, row(start))[0, 0]
    return course


def _at(*values: Any) -> np.ndarray:
    """[T, 1]."""
    return row(*values).reshape(len(values), 1)


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
        a, b, x = (_at(*[real(f"{n}{t}") for t in range(steps)]) for n in "abx")
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


def nonexpansive() -> Iterator[Query]:
    """Two courses under the same factors: their gap never grows, and never beyond what it was."""
    a, d = z3.Reals("a d")
    small = Premise(r"|a| \le 1", z3.And(a <= 1, a >= -1))
    yield Query("one product", _size(a * d) <= _size(d), (small,), {"a": -0.5, "d": 2.0})
    axis = Axis("", Real)
    maps = AffineMap(axis.values("a"), axis.values("v"))
    one, two = (_course(axis, maps, real(name)).states for name in ("h", "g"))

    def gap(m: Any) -> Any:
        return one.at(m) - two.at(m)

    def facts(k: Any) -> list[Premise]:
        f = maps.a.at(k).term
        within = z3.And(f <= 1, f >= -1)
        product = z3.Implies(within, _size(f * gap(k)) <= _size(gap(k)))
        return [
            Premise(r"|a_t| \le 1", within),
            Premise("one product, of the gap", product, "lemma"),
        ]

    queries, _ = by_induction(
        "the gap",
        axis,
        lambda m: _size(gap(m)) <= _size(gap(0)),
        pointwise=facts,
        premises=starts(axis),
        witness={"a": lambda j: 0.5},
    )
    yield from queries


def _size(x: Any) -> Any:
    return z3.If(x >= 0, x, -x)


def nonexpansive_of(largest: int) -> Iterator[Query]:
    """Two steps, for factors up to ``largest``."""
    a, v = (_at(*[real(f"{n}{t}") for t in range(2)]) for n in "av")
    ones = _at(Real(1), Real(1))
    one, two = (affine_scan(a, ones, v, row(real(n)))[1, 0].term for n in ("h", "g"))
    small = Premise(
        rf"|a_t| \le {largest}",
        z3.And(*[_size(f.term) <= largest for f in a.flat]),
    )
    gap = (real("h") - real("g")).term
    yield Query("two steps", _size(one - two) <= _size(gap), (small,))


def reset() -> Iterator[Query]:
    """Behind a factor of 0 the states are those of a run that starts there."""
    past, rest = Axis("W"), Axis("R")
    before, after = (
        AffineMap(x.values(f"a{x.name}"), x.values(f"x{x.name}")) for x in (past, rest)
    )
    a = _at(Factors(before.a), Real(0), Factors(after.a))
    b = _at(real("b0"), real("b1"), real("b2"))
    x = _at(before.b, real("x"), after.b)
    whole = affine_scan(a, b, x, row(real("h")))[1:, 0]
    alone = affine_scan(a[1:], b[1:], x[1:])[:, 0]
    yield Query("the first state", whole[0].term == alone[0].term)
    one, two = (y[1].states for y in (whole, alone))
    queries, _ = by_induction(
        "the states after it", rest, lambda m: one.at(m) == two.at(m), others=[past]
    )
    yield from queries


def reset_of(factor: int) -> Iterator[Query]:
    """Two steps, the second with a given factor."""
    a, ones = _at(real("a"), Real(factor)), _at(Real(1), Real(1))
    x = _at(real("x"), real("y"))
    whole = affine_scan(a, ones, x, row(real("h")))[1, 0]
    yield Query("two steps", whole.term == affine_scan(a[1:], ones[1:], x[1:])[0, 0].term)


def gaps() -> Iterator[Query]:
    """Any number of steps that keep everything and add nothing leave the state as it is."""
    axis = Axis("")
    kept = Stretch(axis, lambda j: Real(1))
    course = affine_scan(_at(Factors(kept)), _at(Real(0)), _at(axis.values("x")), row(real("h")))
    states = course[0, 0].states
    queries, _ = by_induction("padding", axis, lambda m: states.at(m) == real("h").term)
    yield from queries


def gaps_of(factor: int) -> Iterator[Query]:
    """One step with a given factor."""
    x, h = _at(real("x")), row(real("h"))
    kept = affine_scan(_at(Real(factor)), _at(Real(0)), x, h)
    yield Query("one step", kept[0, 0].term == real("h").term)


def adjoint() -> Iterator[Query]:
    """l_t = g_t + a_{t+1} l_{t+1} moves every cotangent back to what the states came from.

    For tangents dh_t = a_t dh_{t-1} + dv_t + da_t h_{t-1}, the partial sums of g dh, and what is
    still to come of it, equal those of l (dv + h da).
    """
    axis = Axis("")
    slope = z3.Function("l", z3.IntSort(), z3.RealSort())
    a, v, da, dv, g = (axis.values(n) for n in ("a", "v", "da", "dv", "g"))
    states = _course(axis, AffineMap(a, v), real("h")).states

    def moved(j: Any) -> Real:
        return dv.at(j) + da.at(j) * Real(states.at(j))

    tangent = _course(axis, AffineMap(a, Stretch(axis, moved)), real("dh")).states
    seen = axis.sum_of(Stretch(axis, lambda j: g.at(j) * Real(tangent.at(j + 1))))
    back = axis.sum_of(Stretch(axis, lambda j: Real(slope(j)) * moved(j)))

    def into(j: Any) -> Real:
        return a.at(j) * Real(slope(j))

    def holds(m: Any) -> z3.BoolRef:
        m = z3.IntVal(0) + m if isinstance(m, int) else m
        to_come = (into(m) * Real(tangent.at(m))).term
        return seen.at(m) + to_come == back.at(m) + (into(z3.IntVal(0)) * real("dh")).term

    def recursion(k: Any) -> list[Premise]:
        later = slope(k) == g.at(k).term + into(k + 1).term
        return [Premise(r"l_t = g_t + a_{t+1} l_{t+1}", later, "definition")]

    witness = {"a": lambda j: 0, "l": lambda j: 2, "g": lambda j: 2}
    queries, lemma = by_induction("sums so far", axis, holds, pointwise=recursion, witness=witness)
    yield from queries
    n = axis.length
    none = Premise(r"a_{T+1} = 0", a.at(n).term == 0, "definition")
    want = back.at(n) + (into(z3.IntVal(0)) * real("dh")).term
    yield Query("in all", seen.at(n) == want, (lemma, none), witness, folds_of(axis))


def _symbols(name: str, count: int) -> np.ndarray:
    """[count, 1]."""
    return _at(*(Symbolic(sympy.Symbol(f"{name}{t}")) for t in range(count)))


def is_derivative(backward: Scan, most: int) -> Iterator[Case]:
    """The gradient of sum g h, entry by entry; factors for each step, and one shared by all."""
    for steps, shared in itertools.product(range(most + 1), (False, True)):
        a, b = (_symbols(n, 1)[0] if shared else _symbols(n, steps) for n in "ab")
        x, g, h = _symbols("x", steps), _symbols("g", steps), _symbols("h", 1)[0]
        loss = sum((affine_scan(a, b, x, h) * g).flat, Symbolic(0)).value
        gradients = backward(a, b, x, h, g)
        for name, given, found in zip("abxh", (a, b, x, h), gradients, strict=True):
            for i, (symbol, got) in enumerate(zip(given.flat, found.flat, strict=True)):
                rest = sympy.expand(sympy.diff(loss, symbol.value) - expression(got))
                shown = name == "a" and steps == 2 and i == 0 and not shared
                formulas = (loss, symbol.value, expression(got), rest)
                label = f"{steps} steps, {name}{i}, shared={shared}: remains {rest}"
                yield Case(label, rest == 0, differentiated(*formulas) if shown else ())


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
UNMOVED = rebound(affine_scan_backward, reverse=lambda a, cotangent: cotangent)
ANY_RING = "any ring, commutative or not: numbers, channels side by side, square matrices"
FREE = ("an identity of polynomials whose letters do not commute holds in every ring",)


def _obligation(
    claim: str,
    variant: str,
    statement: str,
    generality: str,
    body: Body,
    twin: Twin,
    *,
    strength: Any = "proved",
    trust: tuple[str, ...] = (),
) -> Obligation:
    method: Any = {"derived": "sympy", "exhaustive": "enumeration"}.get(strength, "z3")
    name = f"scan.{claim}"
    return Obligation(
        f"{name}/{variant}", name, statement, generality, strength, method, body, twin, trust
    )


ASSOCIATIVE = (
    r"(f_3 \circ f_2) \circ f_1 = f_3 \circ (f_2 \circ f_1),\quad (g \circ f)(h) = g(f(h))"
)
OBLIGATIONS: tuple[Obligation, ...] = (
    _obligation(
        "compose_associative",
        "rings",
        ASSOCIATIVE,
        ANY_RING,
        partial(associative, compose),
        Twin("the added terms change places", partial(associative, SWAPPED)),
        strength="derived",
        trust=FREE,
    ),
    _obligation(
        "compose_associative",
        "reals",
        ASSOCIATIVE,
        "any real numbers",
        partial(associative_reals, compose),
        Twin("the earlier map is not scaled", partial(associative_reals, UNSCALED)),
    ),
    _obligation(
        "compose_associative",
        "summary",
        r"(f_n \circ \dots \circ f_1)(h) = f_n(\dots f_1(h))",
        "any number of maps of real numbers by induction; summary itself of up to 6",
        partial(summarised, compose),
        Twin("the earlier map is not scaled", partial(summarised_of, UNSCALED)),
        trust=COURSE,
    ),
    _obligation(
        "compose_identity",
        "rings",
        r"(1, 0)(a, b) = (a, b) = (a, b)(1, 0),\quad (1, 0)(h) = h",
        ANY_RING,
        partial(neutral, IDENTITY),
        Twin("the identity adds 1", partial(neutral, AffineMap(1, 1))),
        strength="derived",
        trust=FREE,
    ),
    _obligation(
        "parallel_equals_sequential",
        "brackets",
        r"x_1 \cdots x_n = (x_1 \cdots x_m) (x_{m+1} \cdots x_n)",
        "any associative operation, any number of items, every way to set brackets: by induction "
        "over the tree, whose two sides hold any number of items each",
        bracketed,
        Twin("the right side comes first", partial(bracketed_of, TURNED)),
        trust=("in fold_bracketed each side stands for the product that it was shown to be",),
    ),
    _obligation(
        "parallel_equals_sequential",
        "tree",
        r"\operatorname{tree}(x)_t = x_1 \cdots x_t",
        "scan_tree of 0 to 64 items, any associative operation; at most 2 n calls of it",
        partial(trees, scan_tree, 64),
        Twin("the later item comes first", partial(trees, LATER_FIRST, 8)),
        strength="bounded",
        trust=("an equation of words holds in every semigroup",),
    ),
    _obligation(
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
    _obligation(
        "nonexpansive",
        "reals",
        r"|a_t| \le 1 \Rightarrow |h_t - h'_t| \le |h_0 - h'_0|",
        "any number of steps, any real factors of at most 1 in magnitude, added terms and states",
        nonexpansive,
        Twin("factors of up to 2", partial(nonexpansive_of, 2)),
        trust=COURSE,
    ),
    _obligation(
        "packed_reset",
        "factor",
        r"a_t = 0 \Rightarrow h_{\ge t} = f(0, x_{\ge t})",
        "affine_scan over any number of steps before and after, any real numbers",
        reset,
        Twin("the factor is 1", partial(reset_of, 1)),
        trust=COURSE,
    ),
    _obligation(
        "padding_neutral",
        "affine",
        r"a_t = 1,\; b_t = 0 \Rightarrow h_t = h_{t-1}",
        "affine_scan over any number of such steps, any real inputs and state",
        gaps,
        Twin("the factor is 0", partial(gaps_of, 0)),
        trust=COURSE,
    ),
    _obligation(
        "vjp_refines",
        "adjoint",
        r"\sum_t g_t\, \delta h_t = \sum_t l_t (\delta v_t + h_{t-1}\, \delta a_t)"
        r" + a_1 l_1\, \delta h_0 ,\quad l_t = g_t + a_{t+1} l_{t+1}",
        "any number of steps, any real numbers; v_t = b_t x_t, and the slopes l by their recursion",
        adjoint,
        Twin("cotangents are not moved back", partial(is_derivative, UNMOVED, 2)),
        trust=COURSE,
    ),
    _obligation(
        "vjp_refines",
        "affine",
        r"\frac{\partial}{\partial \theta} \sum_t g_t h_t(\theta) = \bar\theta,"
        r"\quad \theta = a, b, x, h_0",
        "affine_scan_backward, 0 to 4 steps, factors of each step or shared by all",
        partial(is_derivative, affine_scan_backward, 4),
        Twin("cotangents are not moved back", partial(is_derivative, UNMOVED, 2)),
        strength="derived",
        trust=("sympy's derivative of a polynomial",),
    ),
)
