"""What order does to sums and products, bit for bit in IEEE arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from assay.proofs.obligation import Obligation, Query, Twin
from assay.proofs.scalars.ieee import Float, Float32
from assay.proofs.scalars.terms import row
from assay.proofs.theorems.softmax_ieee import floats
from assay.spec.scalars import total

Kind = type[Float]


def commuting(kind: Kind, n: int) -> Iterator[Query]:
    """The sum of n numbers in reverse order, and the product of two, are the same bits."""
    xs = floats(kind, "x", n)
    yield Query("the sum", total(xs)[0].term == total(xs[::-1])[0].term)
    first, second = row(xs[0]), row(xs[1])
    yield Query("the product", total(first * second)[0].term == total(second * first)[0].term)


def _obligation(kind: Kind) -> Obligation:
    name = kind.NUMPY.__name__
    return Obligation(
        f"bounds.order/{name}",
        "bounds.order",
        r"x + y = y + x,\quad x y = y x",
        f"{name}: two numbers, NaN and infinity included; all NaN count as one",
        "bounded",
        "z3",
        partial(commuting, kind, 2),
        Twin("three numbers, summed from either end", partial(commuting, kind, 3)),
        ("z3's theory of IEEE 754 arithmetic",),
    )


OBLIGATIONS: tuple[Obligation, ...] = (_obligation(Float32),)
