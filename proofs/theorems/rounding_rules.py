"""The rules of running error analysis for single operations, which never exceed what they say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import z3

from assay.proofs.mutants import mutant
from assay.proofs.obligation import Obligation, Premise, Query, Twin
from assay.proofs.scalars.choices import Choice, choice
from assay.proofs.scalars.reals import EXP, SQRT
from assay.proofs.theorems.rounding_model import (
    ANY,
    D2,
    ROUNDING,
    TAU,
    UNDERFLOW,
    WITNESS,
    Analysed,
    D,
    R,
    Rule,
    T,
    one,
    one_rounding,
    operand,
    outcomes,
    proved,
    size,
    trivial,
    within,
)
from assay.spec.rounding import elementwise
from assay.spec.rounding.carried import Carried
from assay.spec.rounding.conditions import choose


def pair(
    rule: Rule,
    exact: Callable[[Any, Any], Any],
    computed: Callable[[Any, Any], Any],
    facts: Callable[[Any, Any], Sequence[Premise]],
    *given: z3.BoolRef,
) -> Iterator[Query]:
    """An operation of two numbers: the rule's value is the exact one, and its error suffices."""
    (x, cx, about_x), (y, cy, about_y) = operand("x"), operand("y")
    a, b = (choice(n).term for n in "xy")
    premises = (about_x, about_y, ROUNDING, UNDERFLOW, *facts(cx, cy))
    inside = z3.And(*(p.term for p in (about_x, about_y)), *given)
    assumed = tuple(Premise(str(g), g) for g in given)
    for i, (condition, value, error) in enumerate(outcomes(lambda: rule(x, y), inside)):
        goal = z3.Implies(condition, within(computed(cx, cy) - value, error))
        yield Query(f"the error, case {i}", goal, (*premises, *assumed), WITNESS)
        same = z3.Implies(condition, value == exact(a, b))
        yield Query(f"the value, case {i}", same, assumed, WITNESS)


def added(rule: Rule) -> Iterator[Query]:
    """Sum and difference."""

    def facts(x: Any, y: Any) -> Sequence[Premise]:
        return [trivial(r"x \pm 0 \text{ is exact}", z3.Or(x == 0, y == 0), D)]

    yield from pair(rule, lambda a, b: a + b, lambda a, b: (a + b) * (1 + D), facts)
    less = partial(rule, sign=-1)
    yield from pair(less, lambda a, b: a - b, lambda a, b: (a - b) * (1 + D), facts)


def in_steps(
    rule: Rule,
    operation: Callable[[Any, Any], Any],
    own: Any,
    special: Callable[[Any, Any, Any, Any], z3.BoolRef],
    computed: Callable[[Any, Any], Any],
    facts: Callable[[Any, Any], Sequence[Premise]],
    *given: z3.BoolRef,
) -> Iterator[Query]:
    """A product or quotient: what is inherited, what rounding adds, and that the rule says both.

    own      the roundings of the rule, relative to the largest result
    special  where nothing, or less, is rounded: (x, e_x, y, e_y)
    """
    (x, cx, about_x), (y, cy, about_y) = operand("x"), operand("y")
    a, ea, b, eb = (t.term for t in (x.value[0], x.error[0], y.value[0], y.error[0]))
    assumed = tuple(Premise(str(g), g) for g in given)
    operands = (about_x, about_y, *assumed)
    every = (*operands, ROUNDING, UNDERFLOW, *facts(cx, cy))
    less = special(a, ea, b, eb)
    quiet = [(t, z3.RealVal(0)) for t in (R, TAU)]
    inside = z3.And(*(p.term for p in operands), R >= 0, R < 1)
    for i, (condition, value, error) in enumerate(outcomes(lambda: rule(x, y), inside)):
        inherited = z3.substitute(error, *quiet)
        goals = (
            ("value", value == operation(a, b), operands),
            ("inherited", within(operation(cx, cy) - value, inherited), operands),
            ("exact cases", z3.Implies(less, within(computed(cx, cy) - value, error)), every),
            (
                "rule",
                z3.Or(less, error >= inherited + own * (size(value) + inherited) + TAU),
                every,
            ),
        )
        for name, goal, premises in goals:
            yield Query(f"{name}, case {i}", z3.Implies(condition, goal), premises, WITNESS)
    yield from one_rounding(own)


def multiplied(rule: Rule) -> Iterator[Query]:
    """Product; by 1, -1 and 0 it is exact."""

    def facts(x: Any, y: Any) -> Sequence[Premise]:
        ones = z3.Or(x == 1, x == -1, y == 1, y == -1)
        return [
            trivial(r"\pm 1 \cdot x \text{ is exact}", ones, D, T),
            trivial(r"0 \cdot x = 0", z3.Or(x == 0, y == 0), T),
        ]

    def special(x: Any, ex: Any, y: Any, ey: Any) -> z3.BoolRef:
        return z3.Or(*(z3.And(e == 0, z3.Or(a == 0, size(a) == 1)) for a, e in ((x, ex), (y, ey))))

    def product(a: Any, b: Any) -> Any:
        return a * b

    yield from in_steps(rule, product, R, special, lambda a, b: a * b * (1 + D) + T, facts)


def divided(rule: Rule) -> Iterator[Query]:
    """Quotient, also as a product with a rounded reciprocal; 0 / y is exact."""

    def facts(x: Any, _: Any) -> Sequence[Premise]:
        return [trivial("0 / y = 0", x == 0, T)]

    def special(x: Any, ex: Any, _: Any, __: Any) -> z3.BoolRef:
        return z3.And(x == 0, ex == 0)

    def quotient(a: Any, b: Any) -> Any:
        return a / b

    y, ey = z3.Reals("y ey")
    both = R * (2 + R)
    yield from in_steps(
        rule, quotient, both, special, lambda a, b: a / b * (1 + D) * (1 + D2) + T, facts,
        size(y) > ey,
    )  # fmt: skip


def root(rule: Rule) -> Iterator[Query]:
    """Square root, three roundings: it may be x times a reciprocal root."""
    x, cx, about = operand("x")
    a, e = x.value[0].term, x.error[0].term
    known = Premise(r"e_x \le x > 0", z3.And(e <= a, a > 0))
    own = R * (3 + R * (3 + R))
    premises = (about, known)
    witness = {**WITNESS, "x": 25.0, "cx": 16.0, "ex": 9.0}
    given = z3.And(about.term, known.term)
    for i, (condition, value, error) in enumerate(outcomes(lambda: rule(x), given)):
        inherited = z3.substitute(error, (R, z3.RealVal(0)))
        for name, goal in (
            ("inherited", within(SQRT(cx) - value, inherited)),
            ("rule", error == inherited + own * (size(value) + inherited)),
        ):
            yield Query(f"{name}, case {i}", z3.Implies(condition, goal), premises, witness)
    yield from one_rounding(own, 3, tau=False)


def exponential(rule: Rule) -> Iterator[Query]:
    """exp evaluated to r, which stands for eta here."""
    x, move = Analysed(choice("x"), choice("ex")), z3.Real("dx")
    a, e = x.value[0].term, x.error[0].term
    near = Premise(r"|\hat x - x| \le e_x", z3.And(e >= 0, within(move, e)))
    rising = z3.Implies(within(move, e), z3.And(EXP(move) <= EXP(e), EXP(-e) <= EXP(move)))
    law = Premise(r"x \le y \Rightarrow \exp(x) \le \exp(y)", rising, "law")
    witness = {**WITNESS, "dx": -0.5}
    for i, (condition, value, error) in enumerate(outcomes(lambda: rule(x), e >= 0)):
        inherited = z3.substitute(error, (R, z3.RealVal(0)), (TAU, z3.RealVal(0)))
        moved = Choice(a + move).exp().term - value
        for name, goal in (
            ("inherited", within(moved, inherited)),
            ("rule", error == inherited + R * (size(value) + inherited) + TAU),
        ):
            yield Query(f"{name}, case {i}", z3.Implies(condition, goal), (near, law), witness)
    yield from one_rounding(R)


def extreme(rule: Rule, smaller: Rule) -> Iterator[Query]:
    """Maximum and minimum."""
    (x, cx, about_x), (y, cy, about_y) = operand("x"), operand("y")
    inside = z3.And(about_x.term, about_y.term)
    for name, apply, first in (("max", rule, cx >= cy), ("min", smaller, cx <= cy)):
        for i, (condition, value, error) in enumerate(outcomes(partial(apply, x, y), inside)):
            goal = z3.Implies(condition, within(z3.If(first, cx, cy) - value, error))
            yield Query(f"{name}, case {i}", goal, (about_x, about_y), WITNESS)


def chosen(choose: Rule) -> Iterator[Query]:
    """p where x <= y, else q: whichever the computed numbers choose, it is within the error."""
    (x, cx, about_x), (y, cy, about_y) = operand("x"), operand("y")
    (p, cp, about_p), (q, cq, about_q) = operand("p"), operand("q")
    premises = (about_x, about_y, about_p, about_q)
    compare = elementwise.UFUNCS[np.less_equal]
    inside = z3.And(*(a.term for a in premises))
    witness = {**WITNESS, "p": 1.0, "cp": 1.0, "ep": 0.5, "q": 2.0, "cq": 2.0, "eq": 0.5}
    run = partial(_choose, choose, compare, x, y, p, q)
    for i, (condition, value, error) in enumerate(outcomes(run, inside)):
        goal = z3.Implies(condition, within(z3.If(cx <= cy, cp, cq) - value, error))
        yield Query(f"case {i}", goal, premises, witness)


def _choose(choose: Rule, compare: Any, x: Any, y: Any, p: Any, q: Any) -> Carried:
    return choose(compare(x, y), p, q)


MAXIMUM, MINIMUM = (elementwise.UFUNCS[f] for f in (np.maximum, np.minimum))


def _smaller_error(x: Carried, y: Carried) -> Carried:
    return x.of(MAXIMUM(x, y).value, np.minimum(x.error, y.error))


ADD = mutant(elementwise.add, "x.error + y.error", "np.maximum(x.error, y.error)")
MULTIPLY = mutant(
    elementwise.multiply,
    "inherited = a * y.error + b * x.error + x.error * y.error",
    "inherited = a * y.error + b * x.error",
)
DIVIDE = mutant(elementwise.divide, "own = x.unit * (2.0 + x.unit)", "own = x.unit")
ROOT = mutant(elementwise.sqrt, "own = x.unit * (3.0 + x.unit * (3.0 + x.unit))", "own = x.unit")
EXPONENTIAL = mutant(
    elementwise.exp, "np.exp(x.value + shift) * -np.expm1(-shift)", "np.exp(x.value) * shift"
)
CHOOSE = mutant(choose, "np.maximum(taken, other)", "taken")

OBLIGATIONS: tuple[Obligation, ...] = (
    proved(
        "add",
        r"|(\hat x \pm \hat y)(1 + d) - (x \pm y)| \le e",
        f"{ANY}; sums are exact where they are subnormal",
        partial(added, elementwise.add),
        Twin("the larger of both errors alone", partial(one, partial(added, ADD), "the error")),
        "x + 0 is exact",
    ),
    proved(
        "multiply",
        r"|\hat x \hat y (1 + d) + t - x y| \le e",
        ANY,
        partial(multiplied, elementwise.multiply),
        Twin("without the product of both errors", partial(multiplied, MULTIPLY)),
        "products with 0, 1 and -1 are exact",
    ),
    proved(
        "divide",
        r"|\tfrac{\hat x}{\hat y} (1 + d)(1 + d') + t - \tfrac{x}{y}| \le e",
        f"{ANY}, |y| > e_y, and a reciprocal does not underflow",
        partial(divided, elementwise.divide),
        Twin("one rounding only", partial(divided, DIVIDE)),
        "0 / y is exact",
    ),
    proved(
        "root",
        r"|\sqrt{\hat x} (1 + d)(1 + d')(1 + d'') - \sqrt{x}| \le e",
        f"{ANY}, x > 0 and e_x <= x",
        partial(root, elementwise.sqrt),
        Twin("one rounding only", partial(root, ROOT)),
    ),
    proved(
        "exponential",
        r"|e^{\hat x} (1 + d) + t - e^x| \le e",
        f"{ANY}, an exponential that is good to eta",
        partial(exponential, elementwise.exp),
        Twin("to first order only: e^x e_x", partial(exponential, EXPONENTIAL)),
        "exp rises, and exp(x + y) = exp(x) exp(y)",
    ),
    proved(
        "extreme",
        r"|\max(\hat x, \hat y) - \max(x, y)| \le e",
        f"{ANY}; minimum as well",
        partial(extreme, MAXIMUM, MINIMUM),
        Twin("the smaller of both errors", partial(extreme, _smaller_error, MINIMUM)),
    ),
    proved(
        "choice",
        r"|[\hat x \le \hat y]\,\hat p + [\hat x > \hat y]\,\hat q"
        r" - ([x \le y]\, p + [x > y]\, q)| \le e",
        f"{ANY}: four inexact numbers",
        partial(chosen, choose),
        Twin("the error of what was chosen alone", partial(chosen, CHOOSE)),
    ),
)
