"""Ground instances of the laws of exp, log and the square root, for each that a query mentions.

exp(x) > 0, exp(0) = 1, exp(x + y) = exp(x) exp(y). The quantified law makes solvers give up; its
instances at the sums that occur are all that the proofs need. They also hold of exp = 1 and of x ->
2^x: what is proved uses nothing else of the exponential.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import z3

from assay.proofs.obligation import Premise
from assay.proofs.scalars.reals import EXP, LOG, SQRT

LAW = r"\exp(x) > 0,\; \exp(0) = 1,\; \exp(x + y) = \exp(x) \exp(y)"
LOG_LAW = r"x > 0 \Rightarrow \exp(\ln x) = x"
ROOT_LAW = r"x \ge 0 \Rightarrow \sqrt{x} \ge 0,\; \sqrt{x}^2 = x"


def subterms(terms: Sequence[z3.ExprRef]) -> Iterator[z3.ExprRef]:
    """Every subterm once."""
    seen: set[int] = set()
    stack = list(terms)
    while stack:
        term = stack.pop()
        if term.get_id() not in seen:
            seen.add(term.get_id())
            yield term
            stack.extend(term.children())


def _choice(term: z3.ExprRef) -> z3.ExprRef | None:
    choices = (t for t in subterms([term]) if z3.is_app_of(t, z3.Z3_OP_ITE))
    return next(choices, None)


def _summands(term: z3.ExprRef) -> list[tuple[int, z3.ExprRef]]:
    """term = sum of c * t with integers c; [(1, term)] when it is not such a sum."""
    result: list[tuple[int, z3.ExprRef]] = []
    for part in term.children() if z3.is_add(term) else [term]:
        factor, rest = 1, part
        if z3.is_mul(part) and z3.is_rational_value(part.arg(0)):
            if part.arg(0).denominator_as_long() != 1:
                return [(1, term)]
            factor = part.arg(0).numerator_as_long()
            rest = z3.simplify(part / factor, som=True)
        result.append((factor, rest))
    return result


def _product(factors: list[z3.ExprRef]) -> z3.ExprRef:
    return z3.Product(*factors) if len(factors) > 1 else (factors or [z3.RealVal(1)])[0]


def _instance(argument: z3.ExprRef) -> z3.BoolRef:
    """The law that takes exp(argument) apart."""
    choice = _choice(argument)
    if choice is not None:
        condition, yes, no = choice.children()
        branches = [z3.substitute(argument, (choice, b)) for b in (yes, no)]
        exps = [EXP(z3.simplify(b, som=True)) for b in branches]
        return EXP(argument) == z3.If(condition, *exps)
    if z3.is_rational_value(argument) and argument.numerator_as_long() == 0:
        return EXP(argument) == 1
    sides: dict[bool, list[z3.ExprRef]] = {True: [], False: [EXP(argument)]}
    parts = _summands(argument)
    if parts == [(1, argument)]:
        return EXP(argument) > 0
    for factor, part in parts:
        sides[factor > 0] += [EXP(part)] * abs(factor)
    return z3.And(EXP(argument) > 0, _product(sides[False]) == _product(sides[True]))


def _logarithm(argument: z3.ExprRef) -> z3.BoolRef:
    return z3.Implies(argument > 0, EXP(LOG(argument)) == argument)


def _root(argument: z3.ExprRef) -> z3.BoolRef:
    root = SQRT(argument)
    return z3.Implies(argument >= 0, z3.And(root >= 0, root * root == argument))


_LAWS = ((EXP, LAW, _instance), (LOG, LOG_LAW, _logarithm), (SQRT, ROOT_LAW, _root))


def exponential_laws(terms: Sequence[z3.ExprRef]) -> tuple[Premise, ...]:
    """Instances for every exp(t), log(t) and root in ``terms``, and for those that the instances
    bring in.
    """
    done: dict[int, Premise] = {}
    pending = list(terms)
    while pending:
        found = list(subterms(pending))
        pending = []
        for function, law, instance in _LAWS:
            for term in found:
                if term.decl().eq(function) and term.get_id() not in done:
                    done[term.get_id()] = Premise(law, instance(term.arg(0)), "law")
                    pending.append(done[term.get_id()].term)
    return tuple(done.values())
