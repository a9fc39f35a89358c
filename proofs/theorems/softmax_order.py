"""The shift by the maximum keeps the order of the scores, bit for bit: x <= y <= m gives
fl(x - m) <= fl(y - m).

Solvers take long over two free scores. It is enough to compare each number with the next one: from
any x the steps to the next number lead to any y >= x, and <= is transitive. Each step changes one
bit pattern by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import z3

from assay.proofs.mutants import mutant
from assay.proofs.obligation import Obligation, Premise, Query, Twin
from assay.proofs.scalars.ieee import BFloat16, Float, Float16, finite
from assay.proofs.scalars.terms import row
from assay.proofs.theorems.rows import Softmax
from assay.spec.softmax import masked_softmax

Kind = type[Float]
BITS = z3.BitVec("b", 16)
MINUS_ZERO = 0x8000


def exponent(f: Softmax, top: Float, score: Float) -> z3.ExprRef:
    """The argument of exp for a score beside the maximum, which stands first."""
    weight = type(score)(f(row(top, score), row(True, True))[1]).term
    numerator = weight.arg(1)  # after the rounding mode
    return numerator.arg(0)


def steps(kind: Kind) -> Iterator[tuple[str, z3.BoolRef, Float, Float, int]]:
    """A number and the next one: below 0, from 0 on, and from -0 to 0; and bits of an instance."""

    def of(bits: z3.BitVecRef) -> Float:
        return kind(z3.fpBVToFP(bits, kind.FORMAT))

    # One bit pattern less is nearer to 0 among the negative numbers, one more is farther from it
    # among the others.
    yield "x < 0", z3.UGT(BITS, MINUS_ZERO), of(BITS), of(BITS - 1), MINUS_ZERO + 2
    yield "x >= 0", z3.ULT(BITS, MINUS_ZERO), of(BITS), of(BITS + 1), 1
    yield "x = -0", BITS == MINUS_ZERO, of(BITS), of(BITS ^ MINUS_ZERO), MINUS_ZERO


def monotone(f: Softmax, kind: Kind) -> Iterator[Query]:
    """From each finite number to the next one, up to the maximum, no exponent falls."""
    top = kind.variable("m")
    for name, where, x, y, bits in steps(kind):
        given = (
            Premise(r"x, m \text{ finite}", finite(x, top)),
            Premise(r"x \le y \le m,\; y \text{ the next number}", z3.fpLEQ(y.term, top.term)),
            Premise(name, where, "definition"),
        )
        witness = {"m": kind.NUMPY(1), "b": bits}
        shifted = [exponent(f, top, score) for score in (x, y)]
        # Less a maximum that is seen to be m, the question is about two differences alone.
        larger = [kind(top.maximum(score)).term for score in (x, y)]
        same = z3.And(*(t == top.term for t in larger))
        yield Query(f"the maximum is m, {name}", same, given, witness)
        low, high = (z3.substitute(t, *((u, top.term) for u in larger)) for t in shifted)
        yield Query(f"the exponents, {name}", z3.fpLEQ(low, high), given, witness)


REVERSED = mutant(
    masked_softmax,
    "exp(select(allowed, scores, top) - top), 0)",
    "exp(top - select(allowed, scores, top)), 0)",
)


def _obligation(kind: Kind) -> Obligation:
    name = kind.NUMPY.__name__
    return Obligation(
        f"softmax.exponents/{name}-monotone",
        "softmax.exponents",
        r"x \le y \le m \;\Rightarrow\; \operatorname{fl}(x - m) \le \operatorname{fl}(y - m)",
        f"{name}: any finite m, and any finite x <= m with the next number y, from which all y "
        "follow; open in float32, where solvers find no answer",
        "bounded",
        "z3",
        partial(monotone, masked_softmax, kind),
        Twin("the score is subtracted from the maximum", partial(monotone, REVERSED, kind)),
        ("z3's theory of IEEE 754 arithmetic",),
        60.0,
    )


OBLIGATIONS: tuple[Obligation, ...] = tuple(_obligation(kind) for kind in (Float16, BFloat16))
