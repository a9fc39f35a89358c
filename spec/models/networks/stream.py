"""Layers that carry a state through time: y, state' = f(x, state), and stacks of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from jaxtyping import Int, Shaped

from assay.spec.layers.layer import Gradients, Layer, Params, sequential
from assay.spec.layers.leaves import linear_layer
from assay.spec.models.lstm_lm import GATES
from assay.spec.recurrent.exchange import split_gates, stack_gates
from assay.spec.recurrent.lstm import lstm, lstm_backward
from assay.spec.recurrent.rnn import rnn, rnn_backward
from assay.spec.scalars import Array

States = Sequence[Any]


@dataclass(frozen=True)
class Cell:
    """A layer over [B, T, I] that can be continued.

    run(params, x, state)  (outputs, state after the last step); state None is the initial one
    layer                  the same from the initial state, with its gradient
    """

    run: Callable[[Params, Array, Any], tuple[Array, Any]]
    layer: Layer


def cell(
    names: tuple[str, ...],
    run: Callable[[Params, Array, Any], tuple[Array, Any]],
    backward: Callable[[Params, Array, Array], tuple[Array, Gradients]],
) -> Cell:
    """The cell whose layer is ``run`` from the initial state."""
    return Cell(run, Layer(names, lambda params, x: run(params, x, None)[0], backward))


def rnn_cell(path: str) -> Cell:
    """Elman cell; the state is h."""
    weight, bias = f"{path}.weight", f"{path}.bias"

    def run(params: Params, x: Array, state: Any) -> tuple[Array, Any]:
        found = rnn(x, params[weight], params[bias], state)
        return found.outputs, found.h

    def backward(params: Params, x: Array, cotangent: Array) -> tuple[Array, Gradients]:
        found = rnn_backward(x, params[weight], params[bias], cotangent)
        return found.x, {weight: found.weight, bias: found.bias}

    return cell((weight, bias), run, backward)


def lstm_cell(path: str) -> Cell:
    """LSTM cell, eight arrays; the state is (h, c)."""
    weights = [f"{path}.{gate}.weight" for gate in GATES]
    biases = [f"{path}.{gate}.bias" for gate in GATES]

    def gates(params: Params) -> tuple[Array, Array]:
        return stack_gates(*(params[n] for n in weights)), stack_gates(*(params[n] for n in biases))

    def run(params: Params, x: Array, state: Any) -> tuple[Array, Any]:
        found = lstm(x, *gates(params), *(state or (None, None)))
        return found.outputs, (found.h, found.c)

    def backward(params: Params, x: Array, cotangent: Array) -> tuple[Array, Gradients]:
        found = lstm_backward(x, *gates(params), cotangent)
        of_weights = zip(weights, split_gates(found.weight), strict=True)
        of_biases = zip(biases, split_gates(found.bias), strict=True)
        return found.x, {**dict(of_weights), **dict(of_biases)}

    names = tuple(n for pair in zip(weights, biases, strict=True) for n in pair)
    return cell(names, run, backward)


HEAD = linear_layer("head.weight", "head.bias")
"""The same linear map at every time."""


class Run(Protocol):
    """(config, parameters by name, x [B, T, I], states) -> (outputs [B, T, O], states)."""

    def __call__(
        self, config: Any, params: Params, x: Array, states: States | None = None
    ) -> tuple[Array, States]:
        """Outputs of a chunk, and the states that the next chunk starts from."""
        ...


def streaming(cells: Callable[[Any], Sequence[Cell]]) -> tuple[Callable[[Any], Layer], Run]:
    """The network of cells above each other and a linear head, and its run over chunks.

    network(config) is x [B, T, I] -> outputs [B, T, O] from the initial state. run(config, params,
    x, states) continues from the states that the chunk before left, so that chunks give what one
    run over all of them gives.
    """

    def network(config: Any) -> Layer:
        return sequential(*(each.layer for each in cells(config)), HEAD)

    def run(
        config: Any, params: Params, x: Array, states: States | None = None
    ) -> tuple[Array, States]:
        column, after = cells(config), []
        for each, state in zip(column, states or [None] * len(column), strict=True):
            x, state = each.run(params, x, state)
            after.append(state)
        return HEAD.forward(params, x), tuple(after)

    return network, run


def one_hot(
    ids: Int[np.ndarray, "*b"], vocabulary: int, dtype: Any = np.float64
) -> Shaped[np.ndarray, "*b V"]:
    """1 at the symbol, 0 elsewhere.

    >>> one_hot(np.array([1]), 3).tolist()
    [[0.0, 1.0, 0.0]]
    """
    return (np.asarray(ids)[..., None] == np.arange(vocabulary)).astype(dtype)
