"""What a recurrent layer is made of: a step, what it computed on its way, and the way back."""

from __future__ import annotations

from typing import Any, Protocol

from assay.spec.scalars import Array

State = tuple[Array, ...]
Reading = tuple[Array, ...]


class Cell(Protocol):
    """A step from one state to the next; the first part of a state is its output.

    Every method serves one step (arrays [B, ...]) and all steps at once ([T, B, ...]).
    """

    def read(self, state: State, x: Array) -> Reading:
        """What a step computes from the state before it and its input: the gates, and what they act
        on.
        """
        ...

    def after(self, reading: Any) -> State:
        """The state after the step."""
        ...

    def back(self, reading: Any, after: State, d: State, before: Array) -> tuple[State, Array]:
        """Gradients of one step, given ``d`` into the state after it: into the state before, with
        the cotangent ``before`` of its output added; into the sums of the gates.
        """
        ...
