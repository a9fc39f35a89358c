"""Residual network: stem, ReLU, twice [x + conv ReLU conv x, then ReLU], mean, linear."""

from __future__ import annotations

from assay.spec.layers.layer import Layer, residual, sequential
from assay.spec.layers.leaves import activation_layer, linear_layer
from assay.spec.models.networks.images import GLOBAL_MEAN, convolution_layer
from assay.spec.models.networks.passes import passes
from assay.spec.models.resnet import BLOCKS, ResNetConfig


def network(config: ResNetConfig) -> Layer:
    """x [B, C, *n] -> logits [B, classes]. Each addition is followed by a ReLU, outside of it."""
    relu, padding = activation_layer("relu"), config.radii
    steps = [convolution_layer("stem", padding), relu]
    for path in (f"block.{i}" for i in range(BLOCKS)):
        first = convolution_layer(f"{path}.conv1", padding)
        second = convolution_layer(f"{path}.conv2", padding)
        steps += [residual(sequential(first, relu, second)), relu]
    return sequential(*steps, GLOBAL_MEAN, linear_layer("head.weight", "head.bias"))


forward, backward = passes(network)
