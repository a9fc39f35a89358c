"""The rules of running error analysis over the reals: what each says, an operation never exceeds.

The rule is run on terms x and e_x; the computed operand is any number within e_x of x, and the
operation adds what its rounding may add: a factor 1 + d with |d| <= r, and t with |t| <= tau where
it may underflow. Nothing overflows. Where the rule asks whether a number is exactly 0 or 1, each
answer is a case of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import z3

from assay.proofs.branching import decided, paths
from assay.proofs.mutants import mutant
from assay.proofs.obligation import Body, Obligation, Premise, Query, Twin
from assay.proofs.scalars.choices import Choice, choice
from assay.proofs.scalars.reals import EXP, SQRT
from assay.spec.arithmetic import gamma
from assay.spec.rounding import arrays, elementwise
from assay.spec.rounding.carried import Carried
from assay.spec.rounding.conditions import choose

Rule = Callable[..., Carried]
R, TAU = z3.Reals("r tau")
D, D2, D3, T = z3.Reals("d d2 d3 t")


def one(body: Body, name: str) -> Iterator[Query]:
    """The first case of this name alone: what a twin needs to fail."""
    yield next(q for q in body() if isinstance(q, Query) and q.name.startswith(name))


class Analysed(Carried):
    """A number and its error bound, both terms."""

    def __init__(self, value: Any, error: Any) -> None:
        self.value, self.error = _one(value), _one(error)
        self.arithmetic: Any = SimpleNamespace(
            unit=Choice(R), u_acc=Choice(R), u_mid=0, eta=Choice(R), tau_acc=Choice(TAU),
            largest=np.inf, smallest=0.0, exp2=False,
        )  # fmt: skip

    def of(self, value: Any, error: Any = 0.0) -> Any:
        """Other values under the same arithmetic."""
        return self.trusted(value, error)


def _one(x: Any) -> np.ndarray:
    made = np.empty(1, dtype=object)
    made[0] = x
    return made


def cases(run: Callable[[], Any], *given: Any) -> Iterator[tuple[Any, Any]]:
    """Condition and result of every path on which the conditions given hold."""

    def all_given() -> Any:
        return run() if all(decided(condition) for condition in given) else None

    for condition, result in paths(all_given):
        if result is not None:  # what is given is a premise already
            yield z3.And(*condition.children()[len(given) :]), result


def merged(queries: Iterator[Query]) -> Iterator[Query]:
    """Queries of the same name as one: all their goals, case by case."""
    named: dict[str, list[Query]] = {}
    for query in queries:
        named.setdefault(query.name.partition(", case")[0], []).append(query)
    for name, same in named.items():
        yield replace(same[0], name=name, goal=z3.And(*(q.goal for q in same)))


def outcomes(run: Callable[[], Carried], *given: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Condition, value and error of every path on which the conditions given hold."""
    for condition, result in cases(run, *given):
        value, error = (Choice(part.reshape(-1)[0]).term for part in (result.value, result.error))
        yield condition, value, error


def size(x: z3.ArithRef) -> z3.ArithRef:
    """|x|."""
    return z3.If(x >= 0, x, -x)


def within(x: z3.ArithRef, bound: z3.ArithRef) -> z3.BoolRef:
    """|x| <= bound."""
    return z3.And(-bound <= x, x <= bound)


def operand(name: str) -> tuple[Analysed, z3.ArithRef, Premise]:
    """x with its error e_x, a computed x that it allows, and that it does."""
    x, e, c = z3.Reals(f"{name} e{name} c{name}")
    given = z3.And(e >= 0, within(c - x, e))
    return (
        Analysed(choice(name), choice(f"e{name}")),
        c,
        Premise(rf"|\hat {name} - {name}| \le e_{name}", given),
    )


ROUNDING = Premise(
    r"|d|, |d'|, |d''| \le r < 1", z3.And(R >= 0, R < 1, *(within(d, R) for d in (D, D2, D3)))
)
UNDERFLOW = Premise(r"|t| \le \tau", z3.And(TAU >= 0, within(T, TAU)))
WITNESS = {
    "x": 4.0, "cx": 4.5, "ex": 1.0, "y": 3.0, "cy": 2.5, "ey": 1.0, "r": 0.25, "d": 0.125,
    "d2": 0.0, "d3": 0.0, "tau": 0.25, "t": 0.125,
}  # fmt: skip


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


def trivial(text: str, condition: z3.BoolRef, *zeros: z3.ArithRef) -> Premise:
    """What is exact in every format."""
    return Premise(text, z3.Implies(condition, z3.And(*(z == 0 for z in zeros))), "law")


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


def one_rounding(own: Any, times: int = 0, tau: bool = True) -> Iterator[Query]:
    """What ``computed`` adds: roundings of any number p within i of v, and an underflow."""
    v, i, p = z3.Reals("v i p")
    base = Analysed(0, 0)
    near = Premise(r"|p - v| \le i", z3.And(i >= 0, within(p - v, i)), "lemma")
    rounded = p
    for d in (D, D2, D3)[: times or (1 if own.eq(R) else 2)]:
        rounded = rounded * (1 + d)
    rounded = rounded + T if tau else rounded
    factor: Any = Choice(own)
    run = partial(base.computed, _one(Choice(v)), _one(Choice(i)), factor, tau=tau)
    for condition, value, error in outcomes(run):
        witness = {**WITNESS, "v": 2.0, "i": 1.0, "p": 2.5}
        goal = z3.Implies(condition, within(rounded - value, error))
        given = (near, ROUNDING, UNDERFLOW) if tau else (near, ROUNDING)
        yield Query("the roundings", goal, given, witness)


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


def growth(f: Callable[[Any, Any], Any]) -> Iterator[Query]:
    """(1 + u)^n <= 1 + gamma_n and (1 - u)^n >= 1 - gamma_n, by induction over n."""
    k, up, down = z3.Reals("k power fall")
    above = Premise("n u < 1", z3.And(R > 0, k >= 0, (k + 1) * R < 1))

    def run(n: Any, more: Any) -> Carried:
        return Analysed(0, 0).trusted(_one(f(n, Choice(R))), _one(f(more, Choice(R))))

    for condition, none, _ in outcomes(partial(run, 0, 0)):
        yield Query("no roundings", z3.Implies(condition, z3.And(none >= 0, none <= 0)))
    witness = {"k": 2.0, "r": 0.125, "power": 1.25, "fall": 0.75}
    for i, (condition, before, after) in enumerate(
        outcomes(partial(run, Choice(k), Choice(k + 1)), above.term)
    ):
        hypothesis = z3.And(down >= 0, down <= 1, up >= 1, up <= 1 + before, down >= 1 - before)
        given = (above, Premise("hypothesis at k", hypothesis, "lemma"))
        goal = z3.And(up * (1 + R) <= 1 + after, down * (1 - R) >= 1 - after)
        yield Query(f"one more, case {i}", z3.Implies(condition, goal), given, witness)


M1, M2, G1, G2, G = z3.Reals("m1 m2 g1 g2 g")
PARTS = Premise(
    r"m_1, m_2 \ge 1,\; (m_1 + m_2) u < 1",
    z3.And(R > 0, M1 >= 1, M2 >= 1, (M1 + M2) * R < 1),
)
SUMS = {
    "m1": 2.0, "m2": 1.0, "r": 0.125, "d2": 0.0, "d3": 0.0, "t": 0.0,
    "g1": 0.25, "g2": 0.25, "g": 1.0, "d": 0.0, "tau": 0.25,
    "S1": 1.0, "S2": 1.0, "c1": 1.0, "c2": 1.0, "I1": 0.5, "I2": 0.5, "R1": 2.0, "R2": 2.0,
}  # fmt: skip


grown_by: Any = gamma


def joins(first: Any, second: Any, whole: Any) -> z3.BoolRef:
    """One more rounding of either part is no more than the roundings of the whole."""
    return z3.And(*(z3.And(g >= 0, g + R * (1 + g) <= whole) for g in (first, second)))


def together(
    error: Callable[[int, Any], Any], less: int, facts: Sequence[Premise], **witness: Any
) -> Iterator[Query]:
    """Two parts whose sums are within their errors, added and rounded: within the whole's error.

    error  (0 for the whole, 1 or 2 for a part; terms) -> the rule's error
    less   how many roundings fewer than terms there are
    """
    c, sums = (z3.Reals("c1 c2"), z3.Reals("S1 S2"))
    counts = (M1 + M2, M1, M2)
    names = (G, G1, G2)

    def run() -> tuple[list[Any], list[Any]]:
        growths = [grown_by(Choice(m - less if less else m), Choice(R)) for m in counts]
        alone = [error(i, Choice(m)) for i, m in enumerate(counts)]
        return growths, alone + [error(i, Choice(counts[0])) for i in (1, 2)]

    for i, (condition, (growths, errors)) in enumerate(cases(run, PARTS.term)):
        grown = [Choice(g).term for g in growths]
        lemma = z3.Implies(condition, joins(grown[1], grown[2], grown[0]))
        values = {**SUMS, **witness}
        yield Query(f"gamma, case {i}", lemma, (PARTS,), values)
        free = [(term, name) for term, name in zip(grown, names, strict=True)]
        whole, *parts = (z3.substitute(Choice(e).term, *free) for e in errors)
        parts, alike = parts[:2], parts[2:]
        here = z3.substitute(condition, *free)
        known = (PARTS, Premise("gamma", joins(G1, G2, G), "lemma"), *facts)
        wider = [z3.substitute(p, (g, G)) for p, g in zip(parts, (G1, G2), strict=True)]
        # A single term has no roundings of its own yet.
        wider = [a if w.eq(p) else w for p, w, a in zip(parts, wider, alike, strict=True)]
        for j, (part, wide) in enumerate(zip(parts, wider, strict=True)):
            goal = part + R * (size(sums[j]) + part) <= wide
            yield Query(f"part {j + 1}, case {i}", z3.Implies(here, goal), known, values)
        yield Query(
            f"whole, case {i}", z3.Implies(here, wider[0] + wider[1] <= whole), known, values
        )
    p = z3.Reals("p1 p2")
    near = z3.And(*(z3.And(p[j] >= 0, within(c[j] - sums[j], p[j])) for j in range(2)))
    exact = sums[0] + sums[1]
    goal = within(
        (c[0] + c[1]) * (1 + D) - exact,
        sum((p[j] + R * (size(sums[j]) + p[j]) for j in range(2)), z3.RealVal(0)),
    )
    parts_near = Premise(r"|c_i - S_i| \le p_i", near, "lemma")
    yield Query("one rounding", goal, (parts_near, ROUNDING), {**SUMS, "p1": 1.0, "p2": 1.0})


def summation(summed: Rule, less: int = 1) -> Iterator[Query]:
    """A sum of any number of terms: one term, and two sums that are added, whatever their sizes.

    I_i bounds the errors of a part's terms, R_i their magnitudes with these errors.
    """
    base = Analysed(0, 0)
    s, i, r = (z3.Reals(f"{n}1 {n}2") for n in "SIR")
    facts = [
        Premise(
            rf"|S_{j + 1}| + I_{j + 1} \le R_{j + 1}", z3.And(i[j] >= 0, size(s[j]) + i[j] <= r[j])
        )
        for j in range(2)
    ]

    def error(part: int, terms: Any) -> Any:
        given = [(x[0] + x[1], *x)[part] for x in (s, i, r)]
        return summed(base, *(_one(Choice(x)) for x in given), terms - less).error[0]

    x, cx, about = operand("x")
    one = partial(summed, base, x.value, x.error, x.reach, 0)
    for condition, value, alone in outcomes(one, about.term):
        yield Query("one term", z3.Implies(condition, within(cx - value, alone)), (about,), WITNESS)
    yield from together(error, less, facts)


FORMS = [z3.Function(f"form {i}", z3.RealSort(), z3.RealSort(), z3.RealSort()) for i in (1, 2)]


def dotted(rule: Rule) -> Iterator[Query]:
    """A sum of any number of products: one product, and two sums of products that are added.

    x and y stand for whole rows here, and a part's sum of products for any bilinear form of them.
    """
    yield from in_steps(
        partial(_product, rule), lambda a, b: a * b, R, _nothing,
        lambda a, b: a * b * (1 + D) + T,
        lambda x, y: [trivial(r"0 \cdot x = 0", z3.Or(x == 0, y == 0), T)],
    )  # fmt: skip
    (x, _, about_x), (y, _, about_y) = operand("x"), operand("y")
    a, ea, b, eb = (t.term for t in (x.value[0], x.error[0], y.value[0], y.error[0]))
    facts = [about_x, about_y, UNDERFLOW]
    for i, form in enumerate(FORMS, 1):
        low = z3.And(*(f >= 0 for f in (form(ea, size(b) + eb), form(size(a), eb))))
        facts.append(
            Premise(rf"F_{i} \ge 0", z3.And(low, size(form(a, b)) <= form(size(a), size(b))))
        )
        facts.append(Premise(rf"S_{i} = F_{i}(x, y)", z3.Real(f"S{i}") == form(a, b), "definition"))

    def error(part: int, terms: Any) -> Any:
        return rule(
            partial(_form, FORMS if part == 0 else [FORMS[part - 1]]), x, y, terms
        ).error.item()

    given: dict[str, Any] = {f"form {i}": lambda u, v: u * v for i in (1, 2)}
    yield from together(error, 0, facts, **{**WITNESS, **SUMS, **given, "S1": 12.0, "S2": 12.0})


def _form(forms: Sequence[z3.FuncDeclRef], a: np.ndarray, b: np.ndarray) -> np.ndarray:
    parts = [f(Choice(a[0]).term, Choice(b[0]).term) for f in forms]
    return _one(Choice(z3.Sum(parts) if len(parts) > 1 else parts[0]))


def _product(rule: Rule, x: Carried, y: Carried) -> Carried:
    return rule(np.multiply, x, y, 1)


def _nothing(x: Any, ex: Any, y: Any, ey: Any) -> z3.BoolRef:
    """One of the numbers is 0, and so is the product."""
    return z3.Or(z3.And(x == 0, ex == 0), z3.And(y == 0, ey == 0))


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
DOT = mutant(arrays.bilinear, "reach + under, terms)", "reach + under, terms - 1)")

STANDARD = "the standard model of arithmetic: an operation is off by at most r of its exact result"
ANY = "any real numbers and errors, nothing overflows"


def _proved(
    claim: str, statement: str, generality: str, body: Any, twin: Any, *trust: str
) -> Obligation:
    return Obligation(
        f"bounds.{claim}/reals", f"bounds.{claim}", statement, generality, "proved", "z3",
        lambda: merged(iter(body())), Twin(twin.text, lambda: merged(iter(twin.body()))),
        (STANDARD, *trust), 60.0,
    )  # fmt: skip


OBLIGATIONS: tuple[Obligation, ...] = (
    _proved(
        "add",
        r"|(\hat x \pm \hat y)(1 + d) - (x \pm y)| \le e",
        f"{ANY}; sums are exact where they are subnormal",
        partial(added, elementwise.add),
        Twin("the larger of both errors alone", partial(one, partial(added, ADD), "the error")),
        "x + 0 is exact",
    ),
    _proved(
        "multiply",
        r"|\hat x \hat y (1 + d) + t - x y| \le e",
        ANY,
        partial(multiplied, elementwise.multiply),
        Twin("without the product of both errors", partial(multiplied, MULTIPLY)),
        "products with 0, 1 and -1 are exact",
    ),
    _proved(
        "divide",
        r"|\tfrac{\hat x}{\hat y} (1 + d)(1 + d') + t - \tfrac{x}{y}| \le e",
        f"{ANY}, |y| > e_y, and a reciprocal does not underflow",
        partial(divided, elementwise.divide),
        Twin("one rounding only", partial(divided, DIVIDE)),
        "0 / y is exact",
    ),
    _proved(
        "root",
        r"|\sqrt{\hat x} (1 + d)(1 + d')(1 + d'') - \sqrt{x}| \le e",
        f"{ANY}, x > 0 and e_x <= x",
        partial(root, elementwise.sqrt),
        Twin("one rounding only", partial(root, ROOT)),
    ),
    _proved(
        "exponential",
        r"|e^{\hat x} (1 + d) + t - e^x| \le e",
        f"{ANY}, an exponential that is good to eta",
        partial(exponential, elementwise.exp),
        Twin("to first order only: e^x e_x", partial(exponential, EXPONENTIAL)),
        "exp rises, and exp(x + y) = exp(x) exp(y)",
    ),
    _proved(
        "extreme",
        r"|\max(\hat x, \hat y) - \max(x, y)| \le e",
        f"{ANY}; minimum as well",
        partial(extreme, MAXIMUM, MINIMUM),
        Twin("the smaller of both errors", partial(extreme, _smaller_error, MINIMUM)),
    ),
    _proved(
        "choice",
        r"|[\hat x \le \hat y]\,\hat p + [\hat x > \hat y]\,\hat q"
        r" - ([x \le y]\, p + [x > y]\, q)| \le e",
        f"{ANY}: four inexact numbers",
        partial(chosen, choose),
        Twin("the error of what was chosen alone", partial(chosen, CHOOSE)),
    ),
    _proved(
        "gamma",
        r"(1 + u)^n \le 1 + \gamma_n,\quad (1 - u)^n \ge 1 - \gamma_n",
        "any n with n u < 1",
        partial(growth, gamma),
        Twin("n u instead of n u / (1 - n u)", partial(growth, lambda n, u: n * u)),
        "induction over the natural numbers",
    ),
    _proved(
        "sum",
        r"|\hat S - S| \le I + \gamma_{n - 1} R",
        "any number of terms in any order and bracketing, n u < 1, nothing overflows",
        partial(summation, Carried.summed),
        Twin("n - 2 roundings", partial(summation, Carried.summed, 2)),
        "induction over trees: a sum is one term, or two sums and a rounding",
    ),
    _proved(
        "dot",
        r"|\hat S - S| \le I + \gamma_n (R + n \tau) + n \tau",
        "any number of products in any order and bracketing, fused or not, n u < 1, nothing "
        "overflows",
        partial(dotted, arrays.bilinear),
        Twin("n - 1 roundings", partial(one, partial(dotted, DOT), "rule")),
        "induction over trees: a sum is one product, or two sums and a rounding",
    ),
)
