"""Selective state-space language model: one-hot symbols, layers of 2 I E + K E + E + E^2 + E +
3 E N + E + E O parameters, then a linear head at every time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from assay.spec.models import config as rules
from assay.spec.models.config import Config
from assay.spec.models.initialisers import ONES, ZEROS, Constant, Glorot, LogIndex, Uniform
from assay.spec.models.layout import Layout, Parameter, Section, Size
from assay.spec.models.transformer import linear

FIRST_STEP = math.log(math.expm1(0.01))
"""The bias of the step size: softplus of it is 0.01."""


@dataclass(frozen=True)
class MambaLanguageModelConfig(Config):
    """Symbols in, logits of the next symbol out.

    expansion  inner channels E per hidden channel
    states     N, states of one inner channel
    taps       K, taps of the causal convolution
    context    time steps of one sequence; costs depend on it, no parameter does
    """

    vocabulary: int = 65
    hidden: int = 32
    layers: int = 1
    expansion: int = 2
    states: int = 16
    taps: int = 4
    context: int = 16

    def problems(self) -> Iterator[str]:
        """Positive sizes."""
        yield from rules.whole(self, "vocabulary", "hidden", "layers")
        yield from rules.whole(self, "expansion", "states", "taps", "context")

    @property
    def inner(self) -> Size:
        """E = expansion times hidden."""
        return self.expansion * self.hidden


def selective(config: MambaLanguageModelConfig, inputs: Size) -> tuple[Parameter, ...]:
    """The eleven arrays of one layer; all matrices are in-by-out.

    A is stored as its logarithm, so that decay rates stay positive. Source of the first values: Gu
    and Dao, "Mamba" (2023), section 3.6 and its code.
    """
    e, n, k, out = config.inner, config.states, config.taps, config.hidden

    def matrix(name: str, fan_in: Size, fan_out: Size) -> Parameter:
        return Parameter(name, (fan_in, fan_out), "projection", Glorot(fan_in, fan_out))

    return (
        matrix("x_proj", inputs, e),
        matrix("z_proj", inputs, e),
        Parameter("conv_kernel", (k, e), "convolution", Uniform(1.0, k)),
        Parameter("conv_bias", (e,), "convolution", ZEROS),
        matrix("dt_proj", e, e),
        Parameter("dt_bias", (e,), "scan", Constant(FIRST_STEP)),
        Parameter("log_a", (e, n), "scan", LogIndex()),
        matrix("b_proj", e, n),
        matrix("c_proj", e, n),
        Parameter("d_skip", (e,), "scan", ONES),
        matrix("out_proj", e, out),
    )


def layout(config: MambaLanguageModelConfig) -> Layout:
    """Layers, the first over symbols, and the head.

    >>> from assay.spec.models.layout import tensors
    >>> tensors(layout(MambaLanguageModelConfig(layers=2)))
    24
    """
    v, h = config.vocabulary, config.hidden
    return (
        Section("layer", selective(config, v), repeat=1),
        Section("layer", selective(config, h), repeat=config.layers - 1, first=1),
        Section("", linear("head", h, v, "head")),
    )
