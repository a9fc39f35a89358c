"""The rules of running error analysis for sums of any length, over the reals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import z3

from assay.proofs.mutants import mutant
from assay.proofs.obligation import Obligation, Premise, Query, Twin
from assay.proofs.scalars.choices import Choice
from assay.proofs.theorems.rounding_model import (
    ROUNDING,
    UNDERFLOW,
    WITNESS,
    Analysed,
    D,
    R,
    Rule,
    T,
    cases,
    one,
    operand,
    outcomes,
    proved,
    single,
    size,
    trivial,
    within,
)
from assay.proofs.theorems.rounding_rules import in_steps
from assay.spec.arithmetic import gamma
from assay.spec.rounding import arrays
from assay.spec.rounding.carried import Carried


def growth(f: Callable[[Any, Any], Any]) -> Iterator[Query]:
    """(1 + u)^n <= 1 + gamma_n and (1 - u)^n >= 1 - gamma_n, by induction over n."""
    k, up, down = z3.Reals("k power fall")
    above = Premise("n u < 1", z3.And(R > 0, k >= 0, (k + 1) * R < 1))

    def run(n: Any, more: Any) -> Carried:
        return Analysed(0, 0).trusted(single(f(n, Choice(R))), single(f(more, Choice(R))))

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
        return summed(base, *(single(Choice(x)) for x in given), terms - less).error[0]

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
    return single(Choice(z3.Sum(parts) if len(parts) > 1 else parts[0]))


def _product(rule: Rule, x: Carried, y: Carried) -> Carried:
    return rule(np.multiply, x, y, 1)


def _nothing(x: Any, ex: Any, y: Any, ey: Any) -> z3.BoolRef:
    """One of the numbers is 0, and so is the product."""
    return z3.Or(z3.And(x == 0, ex == 0), z3.And(y == 0, ey == 0))


DOT = mutant(arrays.bilinear, "reach + under, terms)", "reach + under, terms - 1)")

OBLIGATIONS: tuple[Obligation, ...] = (
    proved(
        "gamma",
        r"(1 + u)^n \le 1 + \gamma_n,\quad (1 - u)^n \ge 1 - \gamma_n",
        "any n with n u < 1",
        partial(growth, gamma),
        Twin("n u instead of n u / (1 - n u)", partial(growth, lambda n, u: n * u)),
        "induction over the natural numbers",
    ),
    proved(
        "sum",
        r"|\hat S - S| \le I + \gamma_{n - 1} R",
        "any number of terms in any order and bracketing, n u < 1, nothing overflows",
        partial(summation, Carried.summed),
        Twin("n - 2 roundings", partial(summation, Carried.summed, 2)),
        "induction over trees: a sum is one term, or two sums and a rounding",
    ),
    proved(
        "dot",
        r"|\hat S - S| \le I + \gamma_n (R + n \tau) + n \tau",
        "any number of products in any order and bracketing, fused or not, n u < 1, nothing "
        "overflows",
        partial(dotted, arrays.bilinear),
        Twin("n - 1 roundings", partial(one, partial(dotted, DOT), "rule")),
        "induction over trees: a sum is one product, or two sums and a rounding",
    ),
)
