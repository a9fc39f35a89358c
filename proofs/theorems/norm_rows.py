"""Symbolic rows for the theorems on normalisation, and the lemma that all of them need: what they
are divided by is positive.
"""

from __future__ import annotations

from typing import Any

import z3

from assay.proofs.induction import by_induction
from assay.proofs.obligation import Body, Obligation, Premise, Query, Twin
from assay.proofs.scalars.reals import Real, real
from assay.proofs.scalars.stretches import Axis, Stretch
from assay.proofs.scalars.terms import row
from assay.proofs.theorems.rows import general
from assay.proofs.theorems.softmax_reals import SUMS
from assay.spec.layers.rms_norm import rate, rms_norm
from assay.spec.layers.standardize import Standardized, mean, standardize

EPS: Any = real("eps")
POSITIVE = Premise(r"\varepsilon > 0", EPS.term > 0)
ANY_ROW = "any number n >= 1 of entries, any real entries and eps > 0"
ROOT = "a square root is not negative, and squared it is its argument"
ENTRIES = "layer, group and batch normalisation standardise rows; how they are cut is not part"


class NormRow:
    """``standardize`` of a row of any length n; with ``centred`` false, ``rms_norm`` of it.

    z          the stretch of results
    ones       partial sums of ones: at n, the number that a mean divides by
    away       what is squared: x less its mean, or x
    squares    partial sums of the squares
    deviation  what each entry is divided by
    """

    def __init__(self, axis: Axis, x: Any, eps: Any = EPS, centred: bool = True) -> None:
        self.axis, self.eps = axis, eps
        self.ones = axis.sum_of(Stretch(axis, lambda _: Real(1)))
        self.away = x - mean(row(x))[0] if centred else x
        self.squares = axis.sum_of(self.away * self.away)
        if centred:
            self.rows = standardize(row(x), eps)
        else:
            self.rows = Standardized(rms_norm(row(x), eps=eps), rate(row(x), eps))
        self.z = self.rows.z[0]
        self.deviation = self.rows.rate[0].term.arg(1)

    def facts(self, *given: Premise) -> tuple[list[Query], list[Premise]]:
        """A row of one entry or more has a count of at least 1, and a positive deviation whose
        square is what the root is taken of.
        """
        axis, root, held = self.axis, self.deviation.arg(0), {"c": 2}
        queries, counted = by_induction(
            "ones count the entries", axis, self._counted, premises=given, witness=held
        )
        more, squares = by_induction(
            "no sum of squares is negative",
            axis,
            lambda m: self.squares.at(m) >= 0,
            premises=given,
            witness=held,
        )
        some = Premise(r"n \ge 1", axis.length >= 1)
        known = [*given, counted, squares, POSITIVE, some]
        inside_root = Premise("the root is of a positive number", root > 0, "lemma")
        square = self.deviation * self.deviation == root
        deviation = Premise(
            "the deviation is positive", z3.And(self.deviation > 0, square), "lemma"
        )
        for lemma in (inside_root, deviation):
            queries.append(general(lemma.text, lemma.term, known, axis, **held))
            known.append(lemma)
        return [*more, *queries], [*given, counted, deviation, some]

    def _counted(self, m: Any) -> z3.BoolRef:
        length = z3.IntVal(m) if isinstance(m, int) else m
        number = self.ones.at(m)
        return z3.And(number >= 0, z3.Implies(length > 0, number >= 1))

    def z_sums(self, known: list[Premise], x: Any) -> tuple[list[Query], Premise]:
        """Partial sums of z are those of x less the mean, divided by the deviation."""
        total, plain = self.axis.sum_of(self.z), self.axis.sum_of(x)
        middle = mean(row(x))[0].term
        return by_induction(
            "partial sums of z",
            self.axis,
            lambda m: total.at(m) * self.deviation == plain.at(m) - self.ones.at(m) * middle,
            premises=known,
        )


def two(name: str) -> Any:
    """Two real variables."""
    return row(real(f"{name}0"), real(f"{name}1"))


def proved(
    claim: str, variant: str, statement: str, generality: str, body: Body, twin: Twin, *trust: str
) -> Obligation:
    """An obligation of the family ``norm`` about rows of any length."""
    return Obligation(
        f"norm.{claim}/{variant}",
        f"norm.{claim}",
        statement,
        generality,
        "proved",
        "z3",
        body,
        twin,
        (*SUMS, ROOT, *trust),
        60.0,
    )
