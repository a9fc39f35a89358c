"""Selective state-space language model: one-hot symbols, selective layers, a linear head at every
time.
"""

from __future__ import annotations

from typing import Any

from assay.spec.layers.layer import Gradients, Params
from assay.spec.models.mamba_lm import MambaLanguageModelConfig
from assay.spec.models.networks.passes import passes
from assay.spec.models.networks.stream import Cell, cell, streaming
from assay.spec.scalars import Array
from assay.spec.scans.block import MambaParameters, mamba_layer, mamba_layer_backward

NAMES = tuple("conv_kernel" if n == "kernel" else n for n in MambaParameters._fields)
"""The eleven arrays of one layer, in the order of the state."""


def mamba_cell(path: str) -> Cell:
    """Selective layer; the state is that of the scan and the inputs that the taps still see."""
    names = tuple(f"{path}.{n}" for n in NAMES)

    def held(params: Params) -> MambaParameters:
        return MambaParameters(*(params[n] for n in names))

    def run(params: Params, x: Array, state: Any) -> tuple[Array, Any]:
        return mamba_layer(x, held(params), state)

    def backward(params: Params, x: Array, cotangent: Array) -> tuple[Array, Gradients]:
        found = mamba_layer_backward(x, held(params), None, cotangent)
        return found.x, dict(zip(names, found.parameters, strict=True))

    return cell(names, run, backward)


def cells(config: MambaLanguageModelConfig) -> list[Cell]:
    """Selective layers, the one that reads the symbols first."""
    return [mamba_cell(f"layer.{i}") for i in range(config.layers)]


network, run = streaming(cells)
forward, backward = passes(network)
