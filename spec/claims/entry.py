"""What a claim is: one statement that must hold of ops, with its formula and the evidence owed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Kind = Literal["shape", "value", "derivative", "invariance", "state", "resource"]


@dataclass(frozen=True)
class Claim:
    """One statement that must hold.

    id        ``family.name``; the family is the op's short name, or ``hygiene`` for claims on every
              op
    ops       the ops it is about; empty: every op, or none where models are named
    sentence  the statement in words
    formula   the statement in LaTeX (typeset as MathML in reports)
    proof     a claim of the spec itself, for which an obligation is owed
    test      a claim about implementations, for which a property is owed
    exact     judged bitwise: no error bound takes part
    models    the models it is about (``spec.models``); empty: it is about ops
    """

    id: str
    kind: Kind
    ops: tuple[str, ...]
    sentence: str
    formula: str
    proof: bool = False
    test: bool = False
    exact: bool = False
    models: tuple[str, ...] = ()

    @property
    def family(self) -> str:
        """The part of the id before the dot."""
        return self.id.partition(".")[0]


Make = Callable[[str, Kind, str, str, str], Claim]


def family(name: str, *ops: str, models: tuple[str, ...] = ()) -> Make:
    """A maker of claims about ``ops`` or ``models``: (name, kind, sentence, formula, evidence).

    ``evidence`` holds P (obligation owed), T (property owed), X (judged bitwise).

    >>> rows = family("rows", "masked_softmax")
    >>> rows("sum", "value", "Weights sum to 1.", "1", "PT").id
    'rows.sum'
    """

    def make(claim: str, kind: Kind, sentence: str, formula: str, evidence: str) -> Claim:
        flags = {"proof": "P" in evidence, "test": "T" in evidence, "exact": "X" in evidence}
        return Claim(f"{name}.{claim}", kind, ops, sentence, formula, **flags, models=models)

    return make
