"""What an op is: names, symbolic shapes, attributes, the spec's functions and error bounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from assay.spec.arithmetic import Arithmetic
from assay.spec.inexact import running_bound

Arrays = Mapping[str, np.ndarray]
Attributes = Mapping[str, Any]
Forward = Callable[[Arrays, Attributes], dict[str, np.ndarray]]
Backward = Callable[[Arrays, Arrays, Attributes], dict[str, np.ndarray]]
Bound = Callable[[Arrays, Attributes, Arithmetic], dict[str, np.ndarray]]
BackwardBound = Callable[[Arrays, Arrays, Attributes, Arithmetic], dict[str, np.ndarray]]


@dataclass(frozen=True)
class Input:
    """One array: symbolic dims, whether gradients flow into it, whether it may be left out.

    holds  what its elements are: numbers of the backend's format, integers or truth values
    """

    name: str
    dims: tuple[str, ...]
    differentiable: bool = True
    optional: bool = False
    holds: Literal["float", "int", "bool"] = "float"


@dataclass(frozen=True)
class Attribute:
    """One keyword that is not an array, and its default."""

    name: str
    default: Any
    meaning: str


def running(forward: Forward) -> Bound:
    """The bound that running error analysis gives for ``forward`` (see ``spec.inexact``)."""

    def bound(inputs: Arrays, attributes: Attributes, arithmetic: Arithmetic) -> dict[str, Any]:
        return running_bound(lambda x: forward(x, attributes), inputs, arithmetic)

    return bound


def running_backward(backward: Backward) -> BackwardBound:
    """The bound that running error analysis gives for ``backward``."""

    def bound(
        inputs: Arrays, cotangents: Arrays, attributes: Attributes, arithmetic: Arithmetic
    ) -> dict[str, Any]:
        both: dict[Any, np.ndarray] = dict(inputs)
        both |= {("cotangent", n): x for n, x in cotangents.items()}

        def apply(x: Mapping[Any, np.ndarray]) -> dict[str, np.ndarray]:
            return backward(
                {n: x[n] for n in inputs}, {n: x["cotangent", n] for n in cotangents}, attributes
            )

        return running_bound(apply, both, arithmetic)

    return bound


@dataclass(frozen=True)
class Op:
    """One operator.

    forward(inputs, attributes) -> outputs by name; backward(inputs, cotangents, attributes) ->
    gradients by input name, of the differentiable inputs that were given; bound(inputs, attributes,
    arithmetic) and backward_bound(inputs, cotangents, attributes, arithmetic) -> elementwise
    absolute error bounds, in the shapes of what they bound. Where no bound is given, running error
    analysis of forward and backward is the bound.
    """

    name: str
    summary: str
    inputs: tuple[Input, ...]
    attributes: tuple[Attribute, ...]
    outputs: Mapping[str, tuple[str, ...]]
    forward: Forward
    backward: Backward
    bound: Bound = None  # type: ignore[assignment]
    backward_bound: BackwardBound = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.bound is None:
            object.__setattr__(self, "bound", running(self.forward))
        if self.backward_bound is None:
            object.__setattr__(self, "backward_bound", running_backward(self.backward))

    @property
    def required(self) -> tuple[str, ...]:
        """Names of the inputs that every call has."""
        return tuple(i.name for i in self.inputs if not i.optional)

    @property
    def differentiable(self) -> tuple[str, ...]:
        """Names of the inputs that receive gradients, where they are given."""
        return tuple(i.name for i in self.inputs if i.differentiable)
