"""How errors grow through the steps of a recurrence: e_t = J_t e_{t-1} + eps_t.

Running error analysis alone multiplies magnitudes step by step: its bound grows like a power of
|J|, although J contracts. Here the error of a state is a sum of parts, one for each rounding that
made it, e = A n with |n| <= 1. A step moves each part by the Jacobian, signs included, and adds new
ones, so that parts cancel or fade as they do in the recurrence itself (affine arithmetic: J. Stolfi
and L. de Figueiredo, 1997).

A step f from h^ = h + e to f^(h^) is off by

    f(h^) - f(h) = J e        for a Jacobian J between h and h^ (mean value theorem): it is within
                              dJ of J(h), where dJ is the error of J's formula for h with error E
    f^(h^) - f(h^) <= eps     with E = |A| 1: what the rules give for h with error E, less what they
                              give for it when nothing is rounded. The rules are superadditive in
                              the errors, so this is at least what they give at any h^ within E of h

    A' = [J A, diag(dJ E + eps)].

The gradient of a state is linear in the gradient after it: the same with dJ = 0, where eps holds
the errors of what the step computed on its way. Old parts are gathered into one for each element
when there are too many; that loses their signs, and no error.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from assay.spec.arithmetic import Arithmetic
from assay.spec.recurrent.cell import Cell, State
from assay.spec.recurrent.lengths import where_active
from assay.spec.rounding.carried import Carried
from assay.spec.scalars import Array

KEPT = 8
"""Steps whose errors are kept apart: 32 give bounds that are smaller by a tenth, in more time."""


@dataclass(frozen=True)
class Unrounded(Arithmetic):
    """Arithmetic that rounds nothing: what is left is inherited."""

    @cached_property
    def u_acc(self) -> float:
        """Zero."""
        return 0.0

    @cached_property
    def u_mid(self) -> float:
        """Zero."""
        return 0.0

    @cached_property
    def tau_acc(self) -> float:
        """Zero."""
        return 0.0


def _exact(x: Any, *, error: bool = False) -> Any:
    """The same values in unrounded arithmetic, without their errors unless asked."""
    if not isinstance(x, Carried):
        return x
    arithmetic = Unrounded(x.arithmetic.storage, x.arithmetic.accumulate, x.arithmetic.intermediate)
    return type(x)(x.value, x.error if error else 0.0, arithmetic)


def _value(x: Any) -> Any:
    return x.value if isinstance(x, Carried) else x


def _mapped(cell: Any, change: Callable[[Any], Any]) -> Any:
    """The cell with every parameter changed."""
    fields = {f.name: getattr(cell, f.name) for f in dataclasses.fields(cell)}
    return dataclasses.replace(cell, **{n: change(x) for n, x in fields.items()})


def _values(state: State) -> Float[np.ndarray, "*b S"]:
    return np.concatenate([_value(part) for part in state], axis=-1)


def _errors(state: State) -> Float[np.ndarray, "*b S"]:
    parts = (x.error if isinstance(x, Carried) else np.zeros(x.shape) for x in state)
    return np.concatenate(list(parts), axis=-1)


def _with_errors(state: State, errors: Float[np.ndarray, "B S"]) -> State:
    like = state[0]
    assert isinstance(like, Carried)
    split = np.split(errors, len(state), axis=-1)
    return tuple(like.of(like.like(p).value, e) for p, e in zip(state, split, strict=True))


@dataclass(frozen=True)
class Parts:
    """Errors e = A n, |n| <= 1, of a state: A [B, S, m]."""

    a: Float[np.ndarray, "B S m"]

    @property
    def total(self) -> Float[np.ndarray, "B S"]:
        """Largest error of each element."""
        return np.abs(self.a).sum(axis=-1)

    def moved(self, jacobian: Float[np.ndarray, "B S S"], own: Float[np.ndarray, "B S"]) -> Parts:
        """Moved by the Jacobian, and one new part for each element."""
        after = Parts(np.concatenate([jacobian @ self.a, _diagonal(own)], axis=-1))
        full = after.a.shape[-1] > KEPT * own.shape[-1]
        return Parts(_diagonal(after.total)) if full else after


def _diagonal(x: Float[np.ndarray, "B S"]) -> Float[np.ndarray, "B S S"]:
    return np.where(np.eye(x.shape[-1], dtype=bool), x[..., None], 0.0)


def _pulled(cell: Cell, reading: Iterable[Any], after: Iterable[Any]) -> State:
    """The way back from each unit vector: entry [i, ..., b, j] is d after[i] / d before[j] of row
    b, for one step or for all steps at once.
    """
    known = tuple(after)
    *rows, hidden = known[0].shape
    size = hidden * len(known)
    each = np.eye(size).reshape(size, *(1 for _ in rows), size)
    unit = np.broadcast_to(each, (size, *rows, size))
    d = tuple(np.split(unit, len(known), axis=-1))
    return cell.back(tuple(reading), known, d, np.zeros(()))[0]


def _settled(exists: Array | None, jacobian: Array) -> Array:
    """Beyond a row's length nothing moves."""
    if exists is None:
        return jacobian
    return np.where(exists[..., None], jacobian, np.eye(jacobian.shape[-1]))


def follow(cell: Cell, start: State, x: Any, exists: Iterable[Any]) -> list[State]:
    """The state after each step, with a bound on its error: x [T, B, I] carries errors."""
    bare = _mapped(cell, _exact)
    state: State = tuple(x.like(part) for part in start)
    parts, states = Parts(_diagonal(_errors(state))), []
    for now, there in zip(x, exists, strict=True):
        loose = tuple(_exact(part, error=True) for part in state)
        reading = bare.read(loose, _exact(now))
        after, inherited = cell.after(cell.read(state, now)), bare.after(reading)
        pulled = _pulled(bare, reading, inherited)
        jacobian, slack = (np.swapaxes(side(pulled), 0, 1) for side in (_values, _errors))
        own = _errors(after) - _errors(inherited)
        own = own + np.matmul(slack, _errors(state)[..., None])[..., 0]
        own = own if there is None else np.where(there, own, 0.0)
        parts = parts.moved(_settled(there, jacobian), own)
        after = tuple(where_active(there, a, b) for a, b in zip(after, state, strict=True))
        state = _with_errors(after, np.minimum(parts.total, _errors(after)))
        states.append(state)
    return states


def follow_back(cell: Cell, d: State, items: list[tuple[Any, ...]]) -> tuple[list[Array], State]:
    """The way back through items (reading, after, before, exists), last one first: what each step
    gives, and the gradient into the first state, with bounds on their errors.
    """
    bare, jacobians = _mapped(cell, _exact), _jacobians(cell, items)
    parts, given = Parts(_diagonal(_errors(d))), []
    for (reading, after, before, there), jacobian in zip(items, jacobians, strict=True):
        known, reached = (tuple(map(_exact, parts)) for parts in (reading, after))
        arriving, loose = _exact(before), tuple(_exact(part, error=True) for part in d)
        onward, sums = cell.back(reading, after, d, before)
        inherited, _ = bare.back(known, reached, loose, arriving)
        if there is not None:
            onward = _passing(there, onward, d, before)
            inherited = _passing(there, inherited, loose, arriving)
            sums = where_active(there, sums, 0)
        transposed = np.swapaxes(_settled(there, jacobian), -1, -2)
        parts = parts.moved(transposed, _errors(onward) - _errors(inherited))
        d = _with_errors(onward, np.minimum(parts.total, _errors(onward)))
        given.append(sums)
    return given, d


def _jacobians(cell: Cell, items: list[tuple[Any, ...]]) -> Iterable[Float[np.ndarray, "B S S"]]:
    """The Jacobian of each step, errors left out."""
    if not items:
        return []
    steps = ((map(_value, reading), map(_value, after)) for reading, after, _, _ in items)
    reading, after = (map(np.stack, zip(*part, strict=True)) for part in zip(*steps, strict=True))
    pulled = _pulled(_mapped(cell, _value), reading, after)
    return np.moveaxis(_values(pulled), 0, -2)


def _passing(there: Array, after: State, d: State, before: Array) -> State:
    passed = (d[0] + before, *d[1:])
    return tuple(where_active(there, a, b) for a, b in zip(after, passed, strict=True))
