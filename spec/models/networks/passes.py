"""Forward and backward of a model, from the layer that its configuration describes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from assay.spec.layers.layer import Gradients, Layer, Params
from assay.spec.scalars import Array

Config = TypeVar("Config", contravariant=True)

INPUT = "inputs"
"""The name under which the gradient into a model's input is returned; integers have none."""


class Forward(Protocol[Config]):
    """(config, parameters by name, inputs) -> outputs."""

    def __call__(self, config: Config, params: Params, inputs: Array) -> Array:
        """The outputs."""
        ...


class Backward(Protocol[Config]):
    """(config, parameters by name, inputs, cotangent of the outputs) -> gradients by name."""

    def __call__(
        self, config: Config, params: Params, inputs: Array, cotangent: Array
    ) -> Gradients:
        """The gradients."""
        ...


def gradients(layer: Layer, params: Params, inputs: Array, cotangent: Array) -> Gradients:
    """Gradients of sum(y * cotangent) into every parameter that the layer reads, and into the
    inputs where they are not integers.

    >>> from assay.spec.layers.layer import IDENTITY
    >>> import numpy as np
    >>> gradients(IDENTITY, {}, np.ones(1), np.ones(1))
    {'inputs': array([1.])}
    """
    dx, found = layer.backward(params, inputs, cotangent)
    return found if dx is None else {**found, INPUT: dx}


def passes(network: Callable[[Any], Layer]) -> tuple[Forward[Any], Backward[Any]]:
    """forward(config, params, inputs) and backward(config, params, inputs, cotangent) of the layer
    ``network(config)``.
    """

    def forward(config: Any, params: Params, inputs: Array) -> Array:
        return network(config).forward(params, inputs)

    def backward(config: Any, params: Params, inputs: Array, cotangent: Array) -> Gradients:
        return gradients(network(config), params, inputs, cotangent)

    return forward, backward
