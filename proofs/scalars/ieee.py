"""z3 floating-point terms, rounded to nearest even: the spec's body bit for bit, in its own
order.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import z3

from assay.proofs.scalars.terms import Term

NEAREST = z3.RNE()


class Float(Term):
    """An IEEE number; subclasses fix the format. exp is an uninterpreted function of the format."""

    __slots__ = ()
    FORMAT: z3.FPSortRef
    NUMPY: Any

    @classmethod
    def constant(cls, x: Any) -> z3.ExprRef:
        """The number rounded to the format."""
        return z3.FPVal(float(x), cls.FORMAT)

    @classmethod
    def sort(cls) -> z3.SortRef:
        """The format."""
        return cls.FORMAT

    @classmethod
    def exponential(cls) -> z3.FuncDeclRef:
        """The uninterpreted exp of this format."""
        return z3.Function("exponential", cls.FORMAT, cls.FORMAT)

    @classmethod
    def apply(cls, operation: str, *terms: z3.ExprRef) -> z3.ExprRef:
        """One correctly rounded operation; max propagates NaN, as numpy's does."""
        a, b = terms[0], terms[-1]
        match operation:
            case "add":
                return z3.fpAdd(NEAREST, a, b)
            case "sub":
                return z3.fpSub(NEAREST, a, b)
            case "mul":
                return z3.fpMul(NEAREST, a, b)
            case "div":
                return z3.fpDiv(NEAREST, a, b)
            case "neg":
                return z3.fpNeg(a)
            case "max":
                return z3.If(z3.Or(z3.fpIsNaN(a), z3.fpGEQ(a, b)), a, b)
            case _:
                return cls.exponential()(a)

    @classmethod
    def variable(cls, name: str) -> Float:
        """A variable of the format; it may be NaN or infinite."""
        return cls(z3.FP(name, cls.FORMAT))


class Float32(Float):
    """binary32."""

    __slots__ = ()
    FORMAT = z3.Float32()
    NUMPY = np.float32


class Float16(Float):
    """binary16."""

    __slots__ = ()
    FORMAT = z3.Float16()
    NUMPY = np.float16


class BFloat16(Float):
    """The upper half of binary32."""

    __slots__ = ()
    FORMAT = z3.FPSort(8, 8)
    NUMPY = ml_dtypes.bfloat16


FLOATS = (np.floating, ml_dtypes.bfloat16)
"""Types of the numbers that a term of these formats is evaluated to."""


def numbers_of(sort: z3.FPSortRef) -> Any:
    """The type of a format's numbers: those that are computed with outside the solver."""
    kinds = {kind.FORMAT: kind for kind in (Float16, BFloat16, Float32)}
    return kinds[sort].NUMPY


def finite(*xs: Float) -> z3.BoolRef:
    """None of them is NaN or infinite."""
    return z3.And(*[z3.Not(z3.Or(z3.fpIsNaN(x.term), z3.fpIsInf(x.term))) for x in xs])
