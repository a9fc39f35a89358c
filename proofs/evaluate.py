"""Evaluate a solver term on concrete numbers, with the true exponential.

Reals are Arb balls, IEEE terms are numpy scalars of their format, folds are computed. Two balls are
equal when they overlap and differ when they do not: ``False`` is certain, ``True`` means "to all
digits carried".
"""

from __future__ import annotations

import itertools
import operator
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
import z3
from flint import arb

from assay.proofs.scalars.balls import precision, to_arb
from assay.proofs.scalars.ieee import FLOATS, numbers_of
from assay.proofs.scalars.stretches import Fold

BITS = 200
BEFORE = "the fold so far"


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, arb) or isinstance(b, arb):
        return bool(to_arb(a).overlaps(to_arb(b)))
    if isinstance(a, FLOATS):  # the solver's = on floats: NaN equals NaN, -0 differs from 0
        return bool(np.isnan(a) and np.isnan(b)) or bool(a == b and np.signbit(a) == np.signbit(b))
    return bool(a == b)


def _at_most(a: Any, b: Any) -> bool:
    return not bool(a > b)


def _below(a: Any, b: Any) -> bool:
    return not bool(a >= b)


def _divide(a: Any, b: Any) -> Any:
    return a / b if isinstance(a, arb) else to_arb(a) / to_arb(b)


def _exp(x: Any) -> Any:
    return np.exp(x) if isinstance(x, FLOATS) else to_arb(x).exp()


def _maximum(a: Any, b: Any) -> Any:
    return a.max(b)


def _fold_left(f: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda *xs: reduce(f, xs)


# Connectives and arithmetic of z3, by declaration kind. Rounding modes arrive as None.
RULES: dict[int, Callable[..., Any]] = {
    z3.Z3_OP_TRUE: lambda: True,
    z3.Z3_OP_FALSE: lambda: False,
    z3.Z3_OP_NOT: operator.not_,
    z3.Z3_OP_AND: lambda *xs: all(xs),
    z3.Z3_OP_OR: lambda *xs: any(xs),
    z3.Z3_OP_IMPLIES: lambda a, b: (not a) or b,
    z3.Z3_OP_EQ: _equal,
    z3.Z3_OP_DISTINCT: lambda *xs: not any(_equal(a, b) for a, b in itertools.combinations(xs, 2)),
    z3.Z3_OP_LE: _at_most,
    z3.Z3_OP_GE: lambda a, b: _at_most(b, a),
    z3.Z3_OP_LT: _below,
    z3.Z3_OP_GT: lambda a, b: _below(b, a),
    z3.Z3_OP_ADD: _fold_left(operator.add),
    z3.Z3_OP_SUB: _fold_left(operator.sub),
    z3.Z3_OP_MUL: _fold_left(operator.mul),
    z3.Z3_OP_UMINUS: operator.neg,
    z3.Z3_OP_DIV: _divide,
    # SMT-LIB leaves division by 0 open: 0 is as good as any.
    z3.Z3_OP_IDIV: lambda a, b: a // b if b else 0,
    z3.Z3_OP_MOD: lambda a, b: a % b if b else 0,
    z3.Z3_OP_TO_REAL: to_arb,
    z3.Z3_OP_FPA_RM_NEAREST_TIES_TO_EVEN: lambda: None,
    z3.Z3_OP_FPA_ADD: lambda _, a, b: a + b,
    z3.Z3_OP_FPA_SUB: lambda _, a, b: a - b,
    z3.Z3_OP_FPA_MUL: lambda _, a, b: a * b,
    z3.Z3_OP_FPA_DIV: lambda _, a, b: a / b,
    z3.Z3_OP_FPA_NEG: operator.neg,
    z3.Z3_OP_FPA_EQ: lambda a, b: bool(a == b),
    z3.Z3_OP_FPA_LT: lambda a, b: bool(a < b),
    z3.Z3_OP_FPA_GT: lambda a, b: bool(a > b),
    z3.Z3_OP_FPA_LE: lambda a, b: bool(a <= b),
    z3.Z3_OP_FPA_GE: lambda a, b: bool(a >= b),
    z3.Z3_OP_FPA_IS_NAN: lambda a: bool(np.isnan(a)),
    z3.Z3_OP_FPA_IS_INF: lambda a: bool(np.isinf(a)),
    z3.Z3_OP_FPA_IS_ZERO: lambda a: bool(a == 0),
    z3.Z3_OP_UGT: operator.gt,
    z3.Z3_OP_ULT: operator.lt,
    z3.Z3_OP_UGEQ: operator.ge,
    z3.Z3_OP_ULEQ: operator.le,
    z3.Z3_OP_BADD: operator.add,
    z3.Z3_OP_BSUB: operator.sub,
    z3.Z3_OP_BXOR: operator.xor,
}
# Uninterpreted functions that have one meaning wherever they occur.
NAMED: dict[str, Callable[..., Any]] = {
    "exponential": _exp,
    "logarithm": lambda x: to_arb(x).log(),
    "square root": lambda x: to_arb(x).sqrt(),
    "op exp": _exp,
    "op add": operator.add,
    "op sub": operator.sub,
    "op mul": operator.mul,
    "op div": _divide,
    "op neg": operator.neg,
    "op max": _maximum,
    "op tanh": lambda x: to_arb(x).tanh(),
    "op log1p": lambda x: to_arb(x).log1p(),
    "op at most": _at_most,
}


def value(term: z3.ExprRef) -> Any:
    """The number or truth value of a solver's literal; None for anything else."""
    if z3.is_true(term) or z3.is_false(term):
        return z3.is_true(term)
    if z3.is_int_value(term) or z3.is_bv_value(term):
        return term.as_long()
    if z3.is_rational_value(term):
        return arb(term.numerator_as_long()) / term.denominator_as_long()
    if z3.is_algebraic_value(term):
        return value(term.approx(60))
    return _float_value(term) if z3.is_fp_value(term) else None


def _float_value(term: Any) -> Any:
    make = numbers_of(term.sort())
    if term.isNaN():
        return make(np.nan)
    sign = -1.0 if term.isNegative() else 1.0
    if term.isInf() or term.isZero():
        return make(sign * (np.inf if term.isInf() else 0.0))
    exact = z3.simplify(z3.fpToReal(term))
    return make(float(Fraction(exact.numerator_as_long(), exact.denominator_as_long())))


def _invented(name: str, sort: z3.SortRef, arguments: tuple[Any, ...]) -> Any:
    """A value for a name that the witness leaves open: small, arbitrary, always the same."""
    key = zlib.crc32(repr((name, [str(a) for a in arguments])).encode())
    match sort.kind():
        case z3.Z3_BOOL_SORT:
            return key % 2 == 0
        case z3.Z3_INT_SORT:
            return 3 if name.startswith("n") else 1
        case z3.Z3_BV_SORT:
            return key % 65
        case z3.Z3_FLOATING_POINT_SORT:
            return numbers_of(sort)((key % 65 - 32) / 8)
        case _:
            return arb(key % 65 - 32) / 16


@dataclass(frozen=True, slots=True)
class Read:
    """A solver's term with its parts, read once: asking z3 for them takes longer than the sum.

    term     kept, so that its id stays its own
    literal  its number or truth value; None for anything else
    bits     of a bit vector; 0 for anything else
    """

    term: z3.ExprRef
    literal: Any
    kind: int
    name: str
    sort: z3.SortRef
    bits: int
    parts: tuple[Read, ...]


def _read(term: z3.ExprRef, known: dict[int, Read]) -> Read:
    key = term.get_id()
    if key not in known:
        head, sort = term.decl(), term.sort()
        bits = sort.size() if isinstance(sort, z3.BitVecSortRef) else 0
        parts = tuple(_read(part, known) for part in term.children())
        known[key] = Read(term, value(term), head.kind(), head.name(), sort, bits, parts)
    return known[key]


class Evaluation:
    """Values of terms under one witness: names to numbers, truth values, or functions of
    indices.

    ``read``: terms by id, for evaluations of the same terms under several witnesses.
    """

    def __init__(
        self,
        witness: Mapping[str, Any],
        folds: Sequence[Fold] = (),
        read: dict[int, Read] | None = None,
    ) -> None:
        self.witness = witness
        self.folds = {f.function.name(): f for f in folds}
        self.used: dict[str, Any] = {}
        self._sums: dict[tuple[str, int], Any] = {}
        self._read = {} if read is None else read
        # Shared subterms are calculated once.
        self._known: dict[int, Any] = {}

    def __call__(self, term: z3.ExprRef) -> Any:
        """The value of ``term``."""
        with precision(BITS), np.errstate(all="ignore"):
            return self._visit(_read(term, self._read))

    def _visit(self, term: Read) -> Any:
        key = id(term)
        if key not in self._known:
            self._known[key] = self._calculated(term)
        return self._known[key]

    def _calculated(self, term: Read) -> Any:
        if term.literal is not None:
            return term.literal
        if term.kind == z3.Z3_OP_ITE:  # the branch not taken may divide by zero
            return self._visit(term.parts[1 if self._visit(term.parts[0]) else 2])
        arguments = tuple(self._visit(part) for part in term.parts)
        if term.kind == z3.Z3_OP_UNINTERPRETED:
            return self._name(term.name, term.sort, arguments)
        if term.kind == z3.Z3_OP_FPA_TO_FP and term.parts[0].bits:
            unsigned = np.dtype(f"uint{term.parts[0].bits}")
            return np.array(arguments[0], unsigned).view(numbers_of(term.sort))[()]
        if term.kind not in RULES:
            raise ValueError(f"term {term.name!r} has no evaluation rule")
        result = RULES[term.kind](*arguments)
        return result % (1 << term.bits) if term.bits else result

    def _name(self, name: str, sort: z3.SortRef, arguments: tuple[Any, ...]) -> Any:
        if name in self.folds:
            return self._fold(self.folds[name], arguments[0])
        if name in NAMED and arguments:
            return NAMED[name](*arguments)
        if name.startswith("#"):  # a number of the opaque arithmetic
            return arb(float(name[1:]))
        if name in self.witness:
            given = self.witness[name]
            if z3.is_expr(given):
                return self._visit(_read(given, self._read))
            result = given(*arguments) if callable(given) else given
        else:
            result = _invented(name, sort, arguments)
        if sort.kind() in (z3.Z3_REAL_SORT, z3.Z3_UNINTERPRETED_SORT):
            result = to_arb(result)
        if name != BEFORE:
            self.used[name + (str(list(arguments)) if arguments else "")] = result
        return result

    def _fold(self, fold: Fold, length: int) -> Any:
        name = fold.function.name()
        if (name, 0) not in self._sums:
            self._sums[name, 0] = self._visit(_read(fold.start, self._read))
        before = z3.Const(BEFORE, fold.function.range())
        for j in range(length):
            if (name, j + 1) not in self._sums:
                inner = Evaluation({**self.witness, BEFORE: self._sums[name, j]}, (), self._read)
                inner.folds, inner._sums, inner.used = self.folds, self._sums, self.used
                step = _read(fold.step(before, z3.IntVal(j)), self._read)
                self._sums[name, j + 1] = inner._visit(step)
        return self._sums[name, max(length, 0)]

    def text(self) -> str:
        """The names that were looked up, with their values."""
        return ", ".join(f"{k}={_show(v)}" for k, v in sorted(self.used.items()))


def _show(x: Any) -> str:
    if isinstance(x, arb):
        return f"{float(x.mid()):.6g}"
    return str(bool(x)) if isinstance(x, bool | np.bool_) else str(x)
