"""Affine scans of any length: states that do not drift apart, resets, gaps and gradients."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import z3

from assay.proofs.derivation import FLINT, pullback_case
from assay.proofs.induction import by_induction, folds_of, starts
from assay.proofs.mutants import rebound
from assay.proofs.obligation import Body, Case, Obligation, Premise, Query, Twin
from assay.proofs.scalars.courses import COURSE, Course, Factors
from assay.proofs.scalars.reals import Real, real
from assay.proofs.scalars.stretches import Axis, Stretch
from assay.proofs.scalars.terms import row
from assay.spec.scans.affine import (
    affine_scan,
    affine_scan_backward,
)
from assay.spec.scans.algebra import AffineMap

Scan = Callable[..., Any]


def course(axis: Axis, maps: AffineMap, start: Any) -> Course:
    """``affine_scan`` of a stretch: a course of states."""
    a, b, x = (row(e).reshape(1, 1) for e in (Factors(maps.a), Real(1), maps.b))
    course: Course = affine_scan(a, b, x, row(start))[0, 0]
    return course


def column(*values: Any) -> np.ndarray:
    """[T, 1]."""
    return row(*values).reshape(len(values), 1)


def nonexpansive() -> Iterator[Query]:
    """Two courses under the same factors: their gap never grows, and never beyond what it was."""
    a, d = z3.Reals("a d")
    small = Premise(r"|a| \le 1", z3.And(a <= 1, a >= -1))
    yield Query("one product", _size(a * d) <= _size(d), (small,), {"a": -0.5, "d": 2.0})
    axis = Axis("", Real)
    maps = AffineMap(axis.values("a"), axis.values("v"))
    one, two = (course(axis, maps, real(name)).states for name in ("h", "g"))

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
    a, v = (column(*[real(f"{n}{t}") for t in range(2)]) for n in "av")
    ones = column(Real(1), Real(1))
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
    a = column(Factors(before.a), Real(0), Factors(after.a))
    b = column(real("b0"), real("b1"), real("b2"))
    x = column(before.b, real("x"), after.b)
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
    a, ones = column(real("a"), Real(factor)), column(Real(1), Real(1))
    x = column(real("x"), real("y"))
    whole = affine_scan(a, ones, x, row(real("h")))[1, 0]
    yield Query("two steps", whole.term == affine_scan(a[1:], ones[1:], x[1:])[0, 0].term)


def gaps() -> Iterator[Query]:
    """Any number of steps that keep everything and add nothing leave the state as it is."""
    axis = Axis("")
    kept = Stretch(axis, lambda j: Real(1))
    course = affine_scan(
        column(Factors(kept)), column(Real(0)), column(axis.values("x")), row(real("h"))
    )
    states = course[0, 0].states
    queries, _ = by_induction("padding", axis, lambda m: states.at(m) == real("h").term)
    yield from queries


def gaps_of(factor: int) -> Iterator[Query]:
    """One step with a given factor."""
    x, h = column(real("x")), row(real("h"))
    kept = affine_scan(column(Real(factor)), column(Real(0)), x, h)
    yield Query("one step", kept[0, 0].term == real("h").term)


def adjoint() -> Iterator[Query]:
    """l_t = g_t + a_{t+1} l_{t+1} moves every cotangent back to what the states came from.

    For tangents dh_t = a_t dh_{t-1} + dv_t + da_t h_{t-1}, the partial sums of g dh, and what is
    still to come of it, equal those of l (dv + h da).
    """
    axis = Axis("")
    slope = z3.Function("l", z3.IntSort(), z3.RealSort())
    a, v, da, dv, g = (axis.values(n) for n in ("a", "v", "da", "dv", "g"))
    states = course(axis, AffineMap(a, v), real("h")).states

    def moved(j: Any) -> Real:
        return dv.at(j) + da.at(j) * Real(states.at(j))

    tangent = course(axis, AffineMap(a, Stretch(axis, moved)), real("dh")).states
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


def is_derivative(backward: Scan, most: int) -> Iterator[Case]:
    """The gradient of sum g h, entry by entry; factors for each step, and one shared by all."""
    for steps, shared in itertools.product(range(most + 1), (False, True)):
        factors = (1,) if shared else (steps, 1)
        shapes = {"a": factors, "b": factors, "x": (steps, 1), "h0": (1,)}
        shown = "a" if steps == 2 and not shared else ""
        yield pullback_case(
            f"{steps} steps, shared={shared}", _states, backward, shapes, {"cotangent": "g"}, shown
        )


def _states(**given: Any) -> tuple[np.ndarray]:
    return (affine_scan(**given),)


UNMOVED = rebound(affine_scan_backward, reverse=lambda a, cotangent: cotangent)


def obligation(
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
    """An obligation about scans; the method follows from its class."""
    method: Any = {"derived": "sympy", "exhaustive": "enumeration"}.get(strength, "z3")
    name = f"scan.{claim}"
    return Obligation(
        f"{name}/{variant}", name, statement, generality, strength, method, body, twin, trust
    )


OBLIGATIONS: tuple[Obligation, ...] = (
    obligation(
        "nonexpansive",
        "reals",
        r"|a_t| \le 1 \Rightarrow |h_t - h'_t| \le |h_0 - h'_0|",
        "any number of steps, any real factors of at most 1 in magnitude, added terms and states",
        nonexpansive,
        Twin("factors of up to 2", partial(nonexpansive_of, 2)),
        trust=COURSE,
    ),
    obligation(
        "packed_reset",
        "factor",
        r"a_t = 0 \Rightarrow h_{\ge t} = f(0, x_{\ge t})",
        "affine_scan over any number of steps before and after, any real numbers",
        reset,
        Twin("the factor is 1", partial(reset_of, 1)),
        trust=COURSE,
    ),
    obligation(
        "padding_neutral",
        "affine",
        r"a_t = 1,\; b_t = 0 \Rightarrow h_t = h_{t-1}",
        "affine_scan over any number of such steps, any real inputs and state",
        gaps,
        Twin("the factor is 0", partial(gaps_of, 0)),
        trust=COURSE,
    ),
    obligation(
        "vjp_refines",
        "adjoint",
        r"\sum_t g_t\, \delta h_t = \sum_t l_t (\delta v_t + h_{t-1}\, \delta a_t)"
        r" + a_1 l_1\, \delta h_0 ,\quad l_t = g_t + a_{t+1} l_{t+1}",
        "any number of steps, any real numbers; v_t = b_t x_t, and the slopes l by their recursion",
        adjoint,
        Twin("cotangents are not moved back", partial(is_derivative, UNMOVED, 2)),
        trust=COURSE,
    ),
    obligation(
        "vjp_refines",
        "affine",
        r"\frac{\partial}{\partial \theta} \sum_t g_t h_t(\theta) = \bar\theta,"
        r"\quad \theta = a, b, x, h_0",
        "affine_scan_backward, 0 to 4 steps, factors of each step or shared by all",
        partial(is_derivative, affine_scan_backward, 4),
        Twin("cotangents are not moved back", partial(is_derivative, UNMOVED, 2)),
        strength="derived",
        trust=("the derivative of a polynomial", FLINT),
    ),
)
