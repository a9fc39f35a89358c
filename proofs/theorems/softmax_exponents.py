"""What the shift by the maximum does to the exponents, bit for bit, and what sentinels do instead.

The exponential is only known where its facts are listed; in 16 bits they are checked at every
number (claim ``softmax.exponential``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import z3

from assay.proofs.laws import subterms
from assay.proofs.mutants import mutant
from assay.proofs.obligation import Body, Case, Obligation, Premise, Query, Status, Twin
from assay.proofs.scalars.ieee import BFloat16, Float, Float16, Float32, finite
from assay.proofs.scalars.terms import row
from assay.proofs.theorems.every_number import judged, numbers, stored, truth, worst_ulps
from assay.proofs.theorems.rows import Softmax
from assay.proofs.theorems.softmax_ieee import exp_facts, floats
from assay.proofs.theorems.softmax_penalty import positive
from assay.spec.online import OnlineState, online_step
from assay.spec.scalars import exp
from assay.spec.softmax import masked_softmax, penalty_softmax, sentinel_softmax

Kind = type[Float]


def exponent(weights: np.ndarray, score: Float, kind: Kind) -> z3.ExprRef:
    """The argument of exp in the weights that is this score less the maximum."""
    terms = subterms([kind(w).term for w in weights])
    found = [t.arg(0) for t in terms if t.decl().eq(kind.exponential())]
    return next(t for t in found if score.term.eq(t.arg(1) if t.num_args() else t))


def shifted(f: Softmax, kind: Kind) -> Iterator[Query]:
    """Of two allowed scores the larger one has exponent 0, the other one at most 0, and 0 only
    where it is equal; a score alone has exponent 0.
    """
    scores = floats(kind, "s", 2)
    low, high = scores
    zero = kind(0).term
    given = (
        Premise(r"s \text{ finite}", finite(*scores)),
        Premise(r"s_0 \le s_1", z3.fpLEQ(low.term, high.term)),
    )
    witness = {"s0": kind.NUMPY(1), "s1": kind.NUMPY(2)}
    weights = f(scores, row(True, True))
    at_top, below = (exponent(weights, s, kind) for s in (high, low))
    alone = exponent(f(scores, row(True, False)), low, kind)
    same = z3.fpIsZero(below) == z3.fpEQ(low.term, high.term)
    for name, goal in (
        ("the maximum's is 0", z3.fpIsZero(at_top)),
        ("one alone is 0", z3.fpIsZero(alone)),
        ("the other is at most 0, and no NaN", z3.fpLEQ(below, zero)),
        ("it is 0 where the scores are equal", same),
    ):
        yield Query(name, goal, given, witness)


CAP: dict[Kind, float] = {Float16: 2.0**10, BFloat16: 2.0**7}
"""Half of the mass at which adding 1 no longer shows in the format."""


def rescaled(step: Callable[..., OnlineState], kind: Kind, start: float) -> Iterator[Query]:
    """The factor that an old sum is rescaled with lies in [0, 1], and the mass stays at least 1.

    One more key, allowed or not, after a state with a finite maximum and mass l >= 1. The factor is
    read off a sum of 1 to which a value of 0 is added.
    """
    top, mass, score = (kind.variable(n) for n in ("m", "l", "s"))
    zero, one, cap = (kind(x).term for x in (0, 1, CAP[kind]))
    given = (
        Premise(r"m, s, l \text{ finite}", finite(top, mass, score)),
        Premise(
            rf"1 \le l \le {CAP[kind]:.0f}",
            z3.And(z3.fpLEQ(one, mass.term), z3.fpLEQ(mass.term, cap)),
        ),
    )
    witness = {n: kind.NUMPY(1) for n in ("m", "l", "s")}
    values = row(kind(0)).reshape(1, 1)
    for allowed in (True, False):
        state = OnlineState(row(top), row(mass), row(kind(1)), np.array([True]))
        after = step(state, row(score), np.array([allowed]), values)
        factor, total = kind(after.acc[0]).term, kind(after.mass[0]).term
        for name, goal in (
            ("the factor", z3.And(z3.fpLEQ(zero, factor), z3.fpLEQ(factor, one))),
            ("the mass", z3.fpLEQ(one, total)),
        ):
            facts = (*given, *exp_facts(kind, goal))
            yield Query(f"{name}, allowed {allowed}", goal, facts, witness)
    empty = OnlineState(row(kind(start)), row(kind(0)), row(kind(0)), np.array([False]))
    after = step(empty, row(score), np.array([False]), values)
    still = z3.And(*[kind(x[0]).term == zero for x in (after.mass, after.acc)])
    yield Query("an all-blocked block before any key", still, exp_facts(kind, still))


def uniform(f: Softmax, kind: Kind) -> Iterator[Query]:
    """A row with every key blocked gets the same weight 1/2 twice, whatever its scores hold."""
    weights = f(floats(kind, "s", 2), row(False, False))
    half = kind(0.5).term
    goal = z3.And(*[kind(w).term == half for w in weights])
    yield Query("the weights", goal, exp_facts(kind, goal))


FAR = -104.0
"""exp of this and of less rounds to 0 in float32: half its smallest number is e^-103.97."""


def blocked_by(sentinel: float, reach: float, kind: Kind) -> Iterator[Query]:
    """With allowed scores of at most ``reach`` a blocked key has weight +0."""
    scores = floats(kind, "s", 2)
    lowest: Any = kind(sentinel)
    weight = sentinel_softmax(scores, row(True, False), lowest)[1].term
    _, part, mass = weight.children()
    zero, one, limit = (kind(x).term for x in (0, 1, reach))
    inside = z3.And(z3.fpLEQ(-limit, scores[0].term), z3.fpLEQ(scores[0].term, limit))
    given = (
        Premise(rf"|s_0| \le {reach:g}", inside),
        *exp_facts(kind, weight),
        *_far(kind, weight),
    )
    witness = {"s0": kind.NUMPY(1)}
    yield Query("its exponential", part == zero, given, witness)
    yield Query("the mass", z3.And(z3.fpLEQ(one, mass), z3.fpLEQ(mass, one + one)), given, witness)
    y = kind.variable("y").term
    bounds = Premise("1 <= mass <= 2", z3.And(z3.fpLEQ(one, y), z3.fpLEQ(y, one + one)), "lemma")
    quotient = z3.substitute(weight, (part, zero), (mass, y))
    yield Query("the quotient", quotient == zero, (bounds,), {"y": kind.NUMPY(1)})


def _far(kind: Kind, term: z3.ExprRef) -> Iterator[Premise]:
    """What is used of exp far below 0, at every argument that occurs."""
    for t in subterms([term]):
        if t.decl().eq(kind.exponential()):
            fact = z3.Implies(z3.fpLEQ(t.arg(0), kind(FAR).term), t == kind(0).term)
            yield Premise(r"x \le -104 \Rightarrow \exp(x) = 0", fact, "law")


def float16_minimum(edge: float) -> Iterator[Case]:
    """finfo.min added to every score of a row with all keys blocked, scores (s, 0) in float16.

    The row is uniform exactly where |s| < ``edge``, so that s is absorbed; from -edge on downwards
    the sum is -inf and the row prefers the other key, from edge on upwards this one.
    """
    scores = numbers("float16").astype(np.float16)
    rows = np.stack([scores, np.zeros_like(scores)], axis=-1)
    lowest: Any = np.float16(np.finfo(np.float16).min)
    with np.errstate(over="ignore"):
        blocked = np.zeros(rows.shape, dtype=bool)
        weights = penalty_softmax(rows, blocked, -lowest).tolist()
    for s, got in zip(scores.tolist(), weights, strict=True):
        want = [0.5, 0.5] if abs(s) < edge else [float(s > 0), float(s < 0)]
        yield Case(f"s = {s}: weights {got}", got == want)


def beaten_sentinels() -> Iterator[Case]:
    """Every finite sentinel is beaten: a visible score as low leaves the blocked key weight 1/2."""
    sentinels = -positive("float16")
    each: Any = sentinels[:, None]
    rows = np.stack([sentinels, np.zeros_like(sentinels)], axis=-1)
    allowed = np.array([True, False])
    weights = sentinel_softmax(rows, allowed, each)[:, 1]
    for s, weight in zip(sentinels.tolist(), weights.tolist(), strict=True):
        yield Case(f"sentinel {s}: weight {weight}", weight == 0.5)


def beaten_only(f: Callable[..., Any]) -> Iterator[Case]:
    """The same of another softmax."""
    weight = f(np.array([-4.0, 0.0], dtype=np.float16), np.array([True, False]))[1]
    yield Case(f"weight {weight}", weight == 0.5)


def exponential(name: str, function: Callable[[Any], Any]) -> Iterator[Case]:
    """At every finite number of the format: within half an ulp and a little, in [0, 1] and
    monotone up to 0, and 1 at 0. Calculated in float32.
    """
    x = np.unique(numbers(name))
    with np.errstate(over="ignore", under="ignore"):
        got = stored(function(x), name)
    true = truth(exp, name)
    order = np.unique(numbers(name), return_index=True)[1]
    finite_ones = np.isfinite(got)
    ulps = worst_ulps(got, true.at(order), name)
    yield judged("exp", "units in the last place", np.where(finite_ones, ulps, 0.0), x, 0.501)
    low = got[x <= 0]
    yield Case("exp(x) lies in [0, 1] for x <= 0", bool(((low >= 0) & (low <= 1)).all()))
    yield Case("exp is monotone", bool((np.diff(got[finite_ones]) >= 0).all()))
    yield Case("exp(0) is 1", bool(got[x == 0] == 1))


UNSHIFTED = mutant(masked_softmax, "exp(select(allowed, scores, top) - top), 0)", "exp(scores), 0)")
UNGUARDED = mutant(
    online_step,
    "rescale = select(state.seen, exp(select(state.seen, state.top, top) - top), 0)",
    "rescale = exp(state.top - state.top)",
)
FPA = "z3's theory of IEEE 754 arithmetic"
EXP = "exp(0) = 1 and 0 <= exp(x) <= 1 for x <= 0 in this format"


def _obligation(
    claim: str,
    variant: str,
    statement: str,
    generality: str,
    body: Body,
    twin: Twin,
    *trust: str,
    strength: Status = "bounded",
) -> Obligation:
    return Obligation(
        f"{claim}/{variant}", claim, statement, generality, strength,
        "z3" if strength == "bounded" else "enumeration", body, twin, trust, 40.0,
    )  # fmt: skip


def _bitwise(kind: Kind) -> Iterator[Obligation]:
    name = kind.NUMPY.__name__
    lowest: Any = kind(float(np.finfo(kind.NUMPY).min))
    yield _obligation(
        "softmax.exponents",
        name,
        r"s_j - m \le 0,\quad s_j - m = 0 \Leftrightarrow s_j = m",
        f"{name}: two keys, any finite scores, differences that overflow included",
        partial(shifted, masked_softmax, kind),
        Twin("the maximum is not subtracted", partial(shifted, UNSHIFTED, kind)),
        FPA,
    )
    yield _obligation(
        "softmax.sentinel",
        f"{name}-uniform",
        r"\neg a_0 \wedge \neg a_1 \Rightarrow w = (\tfrac12, \tfrac12)",
        f"{name}: two keys, both blocked by the lowest finite number, any scores",
        partial(uniform, lambda s, a: sentinel_softmax(s, a, lowest), kind),
        Twin("the hard mask gives zeros", partial(uniform, masked_softmax, kind)),
        FPA,
        EXP,
    )


OBLIGATIONS: tuple[Obligation, ...] = (
    *(o for kind in (Float16, Float32) for o in _bitwise(kind)),
    *(
        _obligation(
            "softmax.online",
            f"{kind.NUMPY.__name__}-factors",
            r"0 \le e^{m - m'} \le 1,\quad l \ge 1 \Rightarrow l' \ge 1",
            f"{kind.NUMPY.__name__}: one more key after any state with a finite maximum and 1 <= l "
            f"<= {CAP[kind]:.0f}, and an all-blocked block before any key",
            partial(rescaled, online_step, kind, 0.0),
            Twin(
                "the maximum starts at -inf and nothing guards the factor: -inf + inf is NaN",
                partial(rescaled, UNGUARDED, kind, -np.inf),
            ),
            FPA,
            EXP,
        )
        for kind in (Float16, BFloat16)
    ),
    _obligation(
        "softmax.sentinel",
        "float32-billion",
        r"|s_0| \le 10^6 \Rightarrow w_1 = 0",
        "float32: two keys, the second one blocked by -1e9",
        partial(blocked_by, -1e9, 1e6, Float32),
        Twin("scores of the sentinel's own size", partial(blocked_by, -1e9, 1e9, Float32)),
        FPA,
        EXP,
        "exp(x) = 0 for x <= -104",
    ),
    _obligation(
        "softmax.sentinel",
        "float16-beaten",
        r"s_0 = c \Rightarrow w_1 = \tfrac12",
        "every finite negative float16 as sentinel, two keys, the second one blocked",
        beaten_sentinels,
        Twin("the hard mask gives 0", partial(beaten_only, masked_softmax)),
        "numpy's exp and rounding in float16",
        strength="exhaustive",
    ),
    _obligation(
        "softmax.penalty_leaks",
        "float16-lowest",
        r"\operatorname{softmax}(s + \min, \min) = (\tfrac12, \tfrac12) \Leftrightarrow |s| < 16",
        "every finite float16 score s beside 0, both keys blocked by adding the lowest number",
        partial(float16_minimum, 16.0),
        Twin("absorbed below 32", partial(float16_minimum, 32.0)),
        "numpy's exp and rounding in float16",
        strength="exhaustive",
    ),
    *(
        _obligation(
            "softmax.exponential",
            name,
            r"x \le 0 \Rightarrow 0 \le \exp(x) \le 1,\quad"
            r" x \le y \Rightarrow \exp(x) \le \exp(y),\quad |\hat e - e| \le 0.501 \text{ ulp}",
            f"every finite {name}, numpy's exp in float32 rounded to {name}",
            partial(exponential, name, exp),
            Twin(
                "exp2(1.4427 x), with four digits too few",
                partial(exponential, name, lambda x: np.exp2(np.float32(1.4427) * x)),
            ),
            "numpy's rounding to 16 bits",
            "Arb's ball arithmetic",
            strength="exhaustive",
        )
        for name in ("float16", "bfloat16")
    ),
)
