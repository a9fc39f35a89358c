"""Scaling by a power of two commutes with rounded sums and products, bit for bit: scores may be
scaled before or after they are summed, as long as nothing falls below the normal numbers.

Sums are left to a solver. Products of two free significands are not: every pair of them is tried,
at every exponent of the scaled factor.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import z3

from assay.proofs.obligation import Body, Case, Obligation, Premise, Query, Status, Twin
from assay.proofs.scalars.ieee import BFloat16, Float, Float16, finite
from assay.proofs.theorems.every_number import TYPES, numbers
from assay.proofs.theorems.softmax_ieee import floats
from assay.spec.arithmetic import FORMATS
from assay.spec.scalars import total

Kind = type[Float]
FACTOR = 0.125
"""1 / sqrt(64), the scale of a head of width 64."""


def smallest(name: str) -> float:
    """The smallest number that is still normal after scaling."""
    return FORMATS[name].tiny / FACTOR


def sums(kind: Kind, edge: float) -> Iterator[Query]:
    """The scaled sum of two numbers is the sum of the scaled ones; each is 0 or at least ``edge``
    in size.
    """
    terms = floats(kind, "x", 2)
    least: Any = kind(edge)
    exact = [
        z3.Or(z3.fpIsZero(x.term), z3.fpGEQ(x.term, least.term), z3.fpLEQ(x.term, (-least).term))
        for x in terms
    ]
    before, after = total(terms * FACTOR)[0], total(terms)[0]
    given = (
        Premise(rf"x_i = 0 \vee |x_i| \ge {edge:g}", z3.And(*exact)),
        Premise(r"x_0 + x_1 \text{ finite}", finite(after)),
    )
    witness = {"x0": kind.NUMPY(1), "x1": kind.NUMPY(2)}
    yield Query("the sum", before.term == (after * FACTOR).term, given, witness)


def product(x: np.ndarray, y: Any) -> Any:
    """The spec's sum of one product, for all numbers at once."""
    alone = np.empty(1, dtype=object)
    alone[0] = x * y
    return total(alone)[0]


def products(name: str, edge: float) -> Iterator[Case]:
    """Every number from 0 on beside every one in [1/8, 1/4): where the product is 0 or at least
    ``edge``, scaling the number scales it. One case for each factor in [1/8, 1/4).

    Signs play no part in the size of a product. In one binade are all significands, and from there
    products lie on both sides of the edge.
    """
    make: Any = TYPES[name]
    every = np.unique(np.abs(numbers(name)))
    x = every[(every == 0) | (every >= smallest(name))].astype(make)
    scaled = x * make(FACTOR)  # exact: these are the numbers for which it is
    for y in every[(every >= FACTOR) & (every < 2 * FACTOR)].astype(make):
        after = product(x, y)
        asked = (x == 0) | (after >= make(edge))
        wrong = np.flatnonzero(asked & (product(scaled, y) != after * make(FACTOR)))
        where = f"x = {x[wrong[0]]}" if wrong.size else f"{asked.sum()} numbers"
        yield Case(f"{where}, y = {y}", not wrong.size)


def _obligation(
    kind: Kind, what: str, statement: str, generality: str, body: Body, twin: Twin
) -> Obligation:
    name = kind.NUMPY.__name__
    solved = what == "sums"
    strength: Status = "bounded" if solved else "exhaustive"
    trust = "z3's theory of IEEE 754 arithmetic" if solved else f"products of {name} in numpy"
    return Obligation(
        f"bounds.scaling/{name}-{what}", "bounds.scaling", statement, f"{name}: {generality}",
        strength, "z3" if solved else "enumeration", body, twin, (trust,), 40.0,
    )  # fmt: skip


def _sums(kind: Kind) -> Obligation:
    name = kind.NUMPY.__name__
    edge = smallest(name)
    return _obligation(
        kind,
        "sums",
        r"\operatorname{fl}(2^{-3} x + 2^{-3} y) = 2^{-3} \operatorname{fl}(x + y)",
        f"two numbers, each 0 or at least {edge:.3g} in size, with a finite sum; the factor 1/8; "
        "open in float32, where solvers find no answer",
        partial(sums, kind, edge),
        Twin("down to the smallest number of all", partial(sums, kind, FORMATS[name].subnormal)),
    )


def _products(kind: Kind) -> Obligation:
    name = kind.NUMPY.__name__
    edge = smallest(name)
    return _obligation(
        kind,
        "products",
        r"\operatorname{fl}((2^{-3} x)\, y) = 2^{-3} \operatorname{fl}(x y)",
        f"every x that is 0 or at least {edge:.3g} beside every y in [1/8, 1/4), where the product "
        "is 0 or as large; the factor 1/8",
        partial(products, name, edge),
        Twin(
            "products that are subnormal once scaled", partial(products, name, FORMATS[name].tiny)
        ),
    )


OBLIGATIONS: tuple[Obligation, ...] = (
    _sums(BFloat16),
    *(_products(kind) for kind in (Float16, BFloat16)),
)
