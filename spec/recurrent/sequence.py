"""A cell over a sequence: state_t = step(state_{t-1}, x_t), and its first part is the output."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Shaped

from assay.spec.recurrent.cell import Cell, State
from assay.spec.recurrent.growth import follow, follow_back
from assay.spec.recurrent.lengths import Lengths, active, reversed_rows, where_active
from assay.spec.scalars import Array
from assay.spec.scans.runner import run


def carries_errors(x: Array) -> bool:
    """True for an array of running error analysis: its errors are followed with their signs."""
    return hasattr(x, "arithmetic")


class Arranged(NamedTuple):
    """Inputs as the cell reads them: time first, reversed where asked, padding blanked.

    exists [T, B, 1] says which steps are within the row's length; None: all are.
    """

    x: Shaped[np.ndarray, "T B I"]
    exists: Bool[np.ndarray, "T B 1"] | None

    @property
    def each(self) -> Any:
        """``exists`` step by step."""
        return [None] * self.x.shape[0] if self.exists is None else self.exists


def arranged(x: Shaped[np.ndarray, "B T I"], lengths: Lengths | None, reverse: bool) -> Arranged:
    """Time first, last step first where ``reverse``; what lies beyond a row's length becomes 0."""
    exists = active(lengths, x.shape[0], x.shape[1])
    rows = np.swapaxes(reversed_rows(x, lengths) if reverse else x, 0, 1)
    return Arranged(where_active(exists, rows, 0), exists)


def restored(
    y: Shaped[np.ndarray, "T B W"], lengths: Lengths | None, reverse: bool
) -> Shaped[np.ndarray, "B T W"]:
    """Batch first again, every step at its own position."""
    rows = np.swapaxes(y, 0, 1)
    return reversed_rows(rows, lengths) if reverse else rows


def history(cell: Cell, state: State, steps: Arranged) -> tuple[Array, ...]:
    """Every part of the state before the first step and after each one: arrays [T+1, B, Hd].

    A step beyond a row's length leaves its state as it is.
    """

    def advance(state: State, item: tuple[Array, Any]) -> tuple[State, State]:
        x, exists = item
        new = zip(cell.after(cell.read(state, x)), state, strict=True)
        after = tuple(where_active(exists, a, b) for a, b in new)
        return after, after

    if carries_errors(steps.x):
        after = follow(cell, state, steps.x, steps.each)
    else:
        after, _ = run(advance, state, list(zip(steps.x, steps.each, strict=True)))
    return tuple(np.stack(part) for part in zip(state, *after, strict=True))


def outputs_of(h: Shaped[np.ndarray, "T1 B Hd"], steps: Arranged) -> Shaped[np.ndarray, "T B Hd"]:
    """The state after each step, and 0 beyond a row's length."""
    return where_active(steps.exists, h[1:], 0)


class Cotangents(NamedTuple):
    """What arrives at a state from its own output: at the last state, and before each step."""

    last: Shaped[np.ndarray, "B Hd"]
    before: Shaped[np.ndarray, "T B Hd"]


def cotangents(
    outputs: Shaped[np.ndarray, "B T Hd"],
    final: Shaped[np.ndarray, "B Hd"] | None,
    steps: Arranged,
    lengths: Lengths | None,
    reverse: bool,
) -> Cotangents:
    """The cotangent of the outputs, shifted by one: state t - 1 is what step t reads.

    A cotangent beyond a row's length has no influence: the output there is 0 whatever the inputs.
    """
    rows = np.swapaxes(reversed_rows(outputs, lengths) if reverse else outputs, 0, 1)
    rows = where_active(steps.exists, rows, 0)
    none = np.zeros((1, *rows.shape[1:]), dtype=rows.dtype)
    shifted = np.concatenate([none, rows], axis=0)
    last = shifted[-1] if final is None else shifted[-1] + final
    return Cotangents(last, shifted[:-1])


def back_through(
    cell: Cell,
    states: tuple[Array, ...],
    last: State,
    before: Shaped[np.ndarray, "T B Hd"],
    steps: Arranged,
) -> tuple[list[Array], State]:
    """From the last step to the first: gradients into the gates' sums of each step, and into the
    state before the first.

    ``last`` is the gradient into the last state, ``before`` the cotangent of the output before each
    step. Beyond a row's length a step only adds that, and gives 0.
    """

    def advance(d: State, item: tuple[Any, ...]) -> tuple[State, Array]:
        reading, after, before, exists = item
        new, sums = cell.back(reading, after, d, before)
        if exists is None:
            return new, sums
        passed = (d[0] + before, *d[1:])
        kept = tuple(where_active(exists, a, b) for a, b in zip(new, passed, strict=True))
        return kept, where_active(exists, sums, 0)

    reading = cell.read(tuple(part[:-1] for part in states), steps.x)
    after = zip(*(part[1:] for part in states), strict=True)
    items = list(zip(zip(*reading, strict=True), after, before, steps.each, strict=True))[::-1]
    if carries_errors(steps.x):
        sums, first = follow_back(cell, last, items)
    else:
        sums, first = run(advance, last, items)
    return sums[::-1], first


def stacked(each: list[Array], steps: Arranged, width: int) -> Shaped[np.ndarray, "T B W"]:
    """One array for each step on a leading axis, which may be empty."""
    empty = np.zeros((0, steps.x.shape[1], width), dtype=steps.x.dtype)
    return np.stack(each) if each else empty


def initial(name: str, given: Array | None, steps: Arranged, hidden: int) -> Array:
    """The given initial state, or zeros [B, Hd]."""
    shape = (steps.x.shape[1], hidden)
    if given is None:
        return np.zeros(shape, dtype=steps.x.dtype)
    if given.shape != shape:
        raise ValueError(f"{name} has shape {given.shape}, should be [batch, hidden] {shape}")
    return given
