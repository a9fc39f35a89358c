"""Layers: y = f(x; parameters), its pullback, and how layers are joined.

    sequential(f, g)        g(f(x))
    residual(f)             x + f(x)
    add_branches(f, g)      f(x) + g(x)
    concat_branches(f, g)   f(x) and g(x), one after the other along an axis
    map_leading(f)          f(x_i) for every i of the first axes, one set of parameters

A parameter is known by its name. Two layers that name the same one share it: it is stored once,
where it is first named, and its gradient is the sum over its uses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeVar

import numpy as np

from assay.spec.scalars import Array
from assay.spec.scans.runner import Step, run

State = TypeVar("State")
Params = Mapping[str, Array]
Gradients = dict[str, Array]


@dataclass(frozen=True)
class Layer:
    """A differentiable map with named parameters.

    names                              parameters, in the order in which state is stored
    forward(params, x)                 the output y
    backward(params, x, cotangent)     (gradient into x, gradients by parameter name), with the
                                       cotangent in the shape of y; None into an x of integers

    ``params`` may hold more than the layer names.
    """

    names: tuple[str, ...]
    forward: Callable[[Params, Array], Array]
    backward: Callable[[Params, Array, Array], tuple[Array | None, Gradients]]


def combined(*parts: Gradients) -> Gradients:
    """Gradients of several uses: those of the same parameter are added.

    >>> one = np.ones(1)
    >>> {n: g.tolist() for n, g in combined({"w": one, "b": one}, {"w": one}).items()}
    {'w': [2.0], 'b': [1.0]}
    """
    result: Gradients = {}
    for part in parts:
        for name, gradient in part.items():
            result[name] = result[name] + gradient if name in result else gradient
    return result


def _names(*layers: Layer) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for layer in layers for name in layer.names))


def pointwise(
    forward: Callable[[Array], Array], backward: Callable[[Array, Array], Array]
) -> Layer:
    """The layer of a function without parameters: ``backward(x, cotangent)`` is its gradient."""
    return Layer((), lambda _, x: forward(x), lambda _, x, g: (backward(x, g), {}))


IDENTITY = pointwise(lambda x: x, lambda _, cotangent: cotangent)
"""x itself."""


def sequential(*layers: Layer) -> Layer:
    """The layers one after the other; state in the same order. None at all is the identity.

    >>> twice = pointwise(lambda x: 2 * x, lambda x, g: 2 * g)
    >>> f = sequential(twice, twice)
    >>> f.forward({}, np.ones(1)).tolist(), f.backward({}, np.ones(1), np.ones(1))[0].tolist()
    ([4.0], [4.0])
    """

    def forward(params: Params, x: Array) -> Array:
        return reduce(lambda h, layer: layer.forward(params, h), layers, x)

    def backward(params: Params, x: Array, cotangent: Array) -> tuple[Array | None, Gradients]:
        met = [x]
        for layer in layers[:-1]:
            met.append(layer.forward(params, met[-1]))
        found: list[Gradients] = []
        behind: Any = cotangent
        for layer, h in zip(reversed(layers), reversed(met), strict=False):
            behind, gradients = layer.backward(params, h, behind)
            found.append(gradients)
        return behind, combined(*reversed(found))

    return Layer(_names(*layers), forward, backward)


def add_branches(first: Layer, second: Layer) -> Layer:
    """f(x) + g(x): the state is f's list, then g's. The outputs must have the same shape.

    >>> add_branches(IDENTITY, IDENTITY).forward({}, np.ones(2)).tolist()
    [2.0, 2.0]
    """

    def forward(params: Params, x: Array) -> Array:
        a, b = first.forward(params, x), second.forward(params, x)
        if a.shape != b.shape:
            raise ValueError(
                f"branches give shapes {a.shape} and {b.shape}; they are added, so they must agree"
            )
        return a + b

    def backward(params: Params, x: Array, cotangent: Array) -> tuple[Array | None, Gradients]:
        a, of_a = first.backward(params, x, cotangent)
        b, of_b = second.backward(params, x, cotangent)
        return _sum(a, b), combined(of_a, of_b)

    return Layer(_names(first, second), forward, backward)


def _sum(a: Array | None, b: Array | None) -> Array | None:
    return b if a is None else a if b is None else a + b


def residual(layer: Layer) -> Layer:
    """x + f(x), with the state of f; f keeps the shape. Source: K. He et al., "Deep residual
    learning for image recognition" (2016), equation 1.

    >>> relu = pointwise(lambda x: np.maximum(x, 0), lambda x, g: g * (x > 0))
    >>> residual(relu).forward({}, np.array([-1.0, 2.0])).tolist()
    [-1.0, 4.0]
    """
    return add_branches(IDENTITY, layer)


def concat_branches(*layers: Layer, axis: int = 0) -> Layer:
    """f(x), g(x), ... one after the other along ``axis``, the first unless given; the other axes
    must agree.

    >>> concat_branches(IDENTITY, IDENTITY).forward({}, np.array([1.0, 2.0])).tolist()
    [1.0, 2.0, 1.0, 2.0]
    """

    def forward(params: Params, x: Array) -> Array:
        outputs = [layer.forward(params, x) for layer in layers]
        others = {tuple(np.delete(y.shape, axis).tolist()) for y in outputs}
        if len(others) > 1:
            shapes = ", ".join(str(y.shape) for y in outputs)
            raise ValueError(f"branches give shapes {shapes}; they may differ in axis {axis} only")
        return np.concatenate(outputs, axis=axis)

    def backward(params: Params, x: Array, cotangent: Array) -> tuple[Array | None, Gradients]:
        sizes = [layer.forward(params, x).shape[axis] for layer in layers]
        behind = np.split(cotangent, np.cumsum(sizes)[:-1].tolist(), axis=axis)
        pulled = [layer.backward(params, x, g) for layer, g in zip(layers, behind, strict=True)]
        return reduce(_sum, (dx for dx, _ in pulled)), combined(*(found for _, found in pulled))

    return Layer(_names(*layers), forward, backward)


def map_leading(layer: Layer, axes: int = 1) -> Layer:
    """f at each index of the first ``axes`` axes, with one set of parameters.

    Row i of the output is f(row i) whatever the other rows hold; mapping g(f(x)) is mapping f, then
    g. No rows at all give no rows: f is then asked for the shape of its output only, at zeros.
    Slow: f is called once a row.

    >>> first = pointwise(lambda x: x[:1], lambda x, g: np.concatenate([g, 0 * x[1:]]))
    >>> map_leading(first).forward({}, np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [[1.0], [3.0]]
    """

    def rows(x: Array) -> Array:
        if x.ndim < axes:
            raise ValueError(f"axes={axes} exceeds the {x.ndim} axes of x; valid: 0..{x.ndim}")
        count = int(np.prod(x.shape[:axes]))
        return x.reshape((count, *x.shape[axes:]))

    def forward(params: Params, x: Array) -> Array:
        items = rows(x)
        lead = x.shape[:axes]
        if len(items) == 0:
            shape = layer.forward(params, np.zeros(items.shape[1:], dtype=x.dtype)).shape
            return np.zeros((*lead, *shape), dtype=x.dtype)
        y = np.stack([layer.forward(params, item) for item in items])
        return y.reshape((*lead, *y.shape[1:]))

    def backward(params: Params, x: Array, cotangent: Array) -> tuple[Array | None, Gradients]:
        items, behind = rows(x), rows(cotangent)
        if len(items) == 0:
            return x, {n: np.zeros_like(params[n]) for n in layer.names}
        pulled = [layer.backward(params, h, g) for h, g in zip(items, behind, strict=True)]
        parts = [dx for dx, _ in pulled if dx is not None]
        dx = np.stack(parts).reshape(x.shape) if parts else None
        return dx, combined(*(gradients for _, gradients in pulled))

    return Layer(layer.names, forward, backward)


def map_leading_state(
    step: Step[State, Array, Array], state: State, x: Array, axes: int = 1
) -> tuple[Array, State]:
    """The same for a layer that keeps a state: (state, x_i) -> (state, y_i), indices in
    lexicographic order. x has at least one row.

    >>> count = lambda seen, row: (seen + 1, row + seen)
    >>> y, seen = map_leading_state(count, 0, np.zeros((2, 2, 1)), axes=2)
    >>> y.ravel().tolist(), seen
    ([0.0, 1.0, 2.0, 3.0], 4)
    """
    lead = x.shape[:axes]
    rows = [x[index] for index in np.ndindex(*lead)]
    if not rows:
        raise ValueError(f"the first axes={axes} axes of x hold no row: {lead}; valid: 1 or more")
    outputs, state = run(step, state, rows)
    y = np.stack(outputs)
    return y.reshape((*lead, *y.shape[1:])), state
