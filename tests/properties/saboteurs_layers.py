"""A wrong backend for each property of layers."""

from __future__ import annotations

from assay.properties.recipes.layers import POINTWISE
from tests.properties.spec_backend import SpecBackend, scaled

LAYERS = {
    "activation.refines": lambda: SpecBackend(*POINTWISE, spoil=scaled(1.01)),
    "activation.vjp_refines": lambda: SpecBackend(*POINTWISE, gradients=scaled(1.01)),
    "linear.refines": lambda: SpecBackend("linear", spoil=scaled(1.01)),
    "linear.vjp_refines": lambda: SpecBackend("linear", gradients=scaled(1.01, "bias", "x")),
}
