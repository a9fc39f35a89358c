"""Closed forms: a count as a sum of named terms, apart from the layout that it must equal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from assay.spec.models.layout import Size


@dataclass(frozen=True)
class Term:
    """One summand: its text in letters, and its value.

    trainable  False for what is stored and not trained
    """

    text: str
    value: Size
    trainable: bool = True


Terms = tuple[Term, ...]


def trainable_count(terms: Iterable[Term]) -> Size:
    """The sum of what training changes.

    >>> trainable_count((Term("V D", 6), Term("2 L", 4, trainable=False)))
    6
    """
    return sum(t.value for t in terms if t.trainable)


def stored_count(terms: Iterable[Term]) -> Size:
    """The sum of everything stored.

    >>> stored_count((Term("V D", 6), Term("2 L", 4, trainable=False)))
    10
    """
    return sum(t.value for t in terms)


def formula(terms: Iterable[Term]) -> str:
    """The terms that are trained, as one sum.

    >>> formula((Term("V D", 6), Term("T D", 2)))
    'V D + T D'
    """
    return " + ".join(t.text for t in terms if t.trainable)
