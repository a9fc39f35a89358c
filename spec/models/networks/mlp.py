"""Multilayer perceptron: y = W_n act(... act(W_1 x + b_1) ...) + b_n, and an optional shortcut."""

from __future__ import annotations

from assay.spec.layers.layer import Layer, add_branches, sequential
from assay.spec.layers.leaves import activation_layer, linear_layer
from assay.spec.models.mlp import MLPConfig
from assay.spec.models.networks.passes import passes


def network(config: MLPConfig) -> Layer:
    """x [..., inputs] -> [..., outputs]; the shortcut is a linear layer beside all the others."""
    count = len(config.hidden) + 1
    steps = [linear_layer("layer.0.weight", "layer.0.bias")]
    for i in range(1, count):
        steps.append(activation_layer(config.activation))
        steps.append(linear_layer(f"layer.{i}.weight", f"layer.{i}.bias"))
    deep = sequential(*steps)
    if not config.shortcut:
        return deep
    return add_branches(deep, linear_layer("shortcut.weight", "shortcut.bias"))


forward, backward = passes(network)
