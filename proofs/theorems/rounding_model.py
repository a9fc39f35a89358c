"""What the rules of running error analysis are proved about: numbers with errors, as terms.

The rule is run on terms x and e_x; the computed operand is any number within e_x of x, and the
operation adds what its rounding may add: a factor 1 + d with |d| <= r, and t with |t| <= tau where
it may underflow. Nothing overflows. Where the rule asks whether a number is exactly 0 or 1, each
answer is a case of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import z3

from assay.proofs.branching import decided, paths
from assay.proofs.obligation import Body, Obligation, Premise, Query, Twin
from assay.proofs.scalars.choices import Choice, choice
from assay.spec.rounding.carried import Carried

Rule = Callable[..., Carried]
R, TAU = z3.Reals("r tau")
D, D2, D3, T = z3.Reals("d d2 d3 t")


def one(body: Body, name: str) -> Iterator[Query]:
    """The first case of this name alone: what a twin needs to fail."""
    yield next(q for q in body() if isinstance(q, Query) and q.name.startswith(name))


class Analysed(Carried):
    """A number and its error bound, both terms."""

    def __init__(self, value: Any, error: Any) -> None:
        self.value, self.error = single(value), single(error)
        self.arithmetic: Any = SimpleNamespace(
            unit=Choice(R), u_acc=Choice(R), u_mid=0, eta=Choice(R), tau_acc=Choice(TAU),
            largest=np.inf, smallest=0.0, exp2=False,
        )  # fmt: skip

    def of(self, value: Any, error: Any = 0.0) -> Any:
        """Other values under the same arithmetic."""
        return self.trusted(value, error)


def single(x: Any) -> np.ndarray:
    """An array of one element."""
    made = np.empty(1, dtype=object)
    made[0] = x
    return made


def cases(run: Callable[[], Any], *given: Any) -> Iterator[tuple[Any, Any]]:
    """Condition and result of every path on which the conditions given hold."""

    def all_given() -> Any:
        return run() if all(decided(condition) for condition in given) else None

    for condition, result in paths(all_given):
        if result is not None:  # what is given is a premise already
            yield z3.And(*condition.children()[len(given) :]), result


def merged(queries: Iterator[Query]) -> Iterator[Query]:
    """Queries of the same name as one: all their goals, case by case."""
    named: dict[str, list[Query]] = {}
    for query in queries:
        named.setdefault(query.name.partition(", case")[0], []).append(query)
    for name, same in named.items():
        yield replace(same[0], name=name, goal=z3.And(*(q.goal for q in same)))


def outcomes(run: Callable[[], Carried], *given: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Condition, value and error of every path on which the conditions given hold."""
    for condition, result in cases(run, *given):
        value, error = (Choice(part.reshape(-1)[0]).term for part in (result.value, result.error))
        yield condition, value, error


def size(x: z3.ArithRef) -> z3.ArithRef:
    """|x|."""
    return z3.If(x >= 0, x, -x)


def within(x: z3.ArithRef, bound: z3.ArithRef) -> z3.BoolRef:
    """|x| <= bound."""
    return z3.And(-bound <= x, x <= bound)


def operand(name: str) -> tuple[Analysed, z3.ArithRef, Premise]:
    """x with its error e_x, a computed x that it allows, and that it does."""
    x, e, c = z3.Reals(f"{name} e{name} c{name}")
    given = z3.And(e >= 0, within(c - x, e))
    return (
        Analysed(choice(name), choice(f"e{name}")),
        c,
        Premise(rf"|\hat {name} - {name}| \le e_{name}", given),
    )


ROUNDING = Premise(
    r"|d|, |d'|, |d''| \le r < 1", z3.And(R >= 0, R < 1, *(within(d, R) for d in (D, D2, D3)))
)
UNDERFLOW = Premise(r"|t| \le \tau", z3.And(TAU >= 0, within(T, TAU)))
WITNESS = {
    "x": 4.0, "cx": 4.5, "ex": 1.0, "y": 3.0, "cy": 2.5, "ey": 1.0, "r": 0.25, "d": 0.125,
    "d2": 0.0, "d3": 0.0, "tau": 0.25, "t": 0.125,
}  # fmt: skip


def trivial(text: str, condition: z3.BoolRef, *zeros: z3.ArithRef) -> Premise:
    """What is exact in every format."""
    return Premise(text, z3.Implies(condition, z3.And(*(z == 0 for z in zeros))), "law")


def one_rounding(own: Any, times: int = 0, tau: bool = True) -> Iterator[Query]:
    """What ``computed`` adds: roundings of any number p within i of v, and an underflow."""
    v, i, p = z3.Reals("v i p")
    base = Analysed(0, 0)
    near = Premise(r"|p - v| \le i", z3.And(i >= 0, within(p - v, i)), "lemma")
    rounded = p
    for d in (D, D2, D3)[: times or (1 if own.eq(R) else 2)]:
        rounded = rounded * (1 + d)
    rounded = rounded + T if tau else rounded
    factor: Any = Choice(own)
    run = partial(base.computed, single(Choice(v)), single(Choice(i)), factor, tau=tau)
    for condition, value, error in outcomes(run):
        witness = {**WITNESS, "v": 2.0, "i": 1.0, "p": 2.5}
        goal = z3.Implies(condition, within(rounded - value, error))
        given = (near, ROUNDING, UNDERFLOW) if tau else (near, ROUNDING)
        yield Query("the roundings", goal, given, witness)


STANDARD = "the standard model of arithmetic: an operation is off by at most r of its exact result"
ANY = "any real numbers and errors, nothing overflows"


def proved(
    claim: str, statement: str, generality: str, body: Any, twin: Any, *trust: str
) -> Obligation:
    """An obligation whose queries are merged where only their cases differ."""
    return Obligation(
        f"bounds.{claim}/reals", f"bounds.{claim}", statement, generality, "proved", "z3",
        lambda: merged(iter(body())), Twin(twin.text, lambda: merged(iter(twin.body()))),
        (STANDARD, *trust), 60.0,
    )  # fmt: skip
