"""Selective state-space language model: one-hot symbols, layers of 2 I E + K E + E + E^2 + E +
3 E N + E + E O parameters, then a linear head at every time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from assay.spec.models import config as rules
from assay.spec.models.closed_form import Term, Terms
from assay.spec.models.config import Config
from assay.spec.models.costs import Kind, Step, Steps, matrix
from assay.spec.models.initialisers import ONES, ZEROS, Constant, Glorot, LogIndex, Uniform
from assay.spec.models.layout import Layout, Parameter, Section, Size, product
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


def terms(config: MambaLanguageModelConfig) -> Terms:
    """The closed form, with E inner channels, N states, K taps and Hd hidden channels."""
    v, h, e, n, k = config.vocabulary, config.hidden, config.inner, config.states, config.taps
    rest = k * e + e * e + 3 * e * n + 3 * e + e * h
    text = "K E + E² + 3 E N + 3 E + E Hd"
    return (
        Term(f"2 V E + {text}", 2 * v * e + rest),
        Term(f"(L - 1) (2 Hd E + {text})", (config.layers - 1) * (2 * h * e + rest)),
        Term("(Hd + 1) V", (h + 1) * v),
    )


SCAN_FLOPS = 7
"""For one state and step: delta A, its exponential, decay, input, their sum, output, its sum."""


def steps(config: MambaLanguageModelConfig, batch: Size = 1, length: Size | None = None) -> Steps:
    """What one forward pass writes for ``batch`` sequences of ``length`` (the context).

    The backward pass of the scan is counted as two scans.
    """
    lead = (batch, config.context if length is None else length)
    v, h = config.vocabulary, config.hidden
    return (
        *_layer_steps(config, lead, "layer.0", v, 1, 1),
        *_layer_steps(config, lead, "layer", h, 2, config.layers - 1),
        matrix("head", lead, h, v),
    )


def _layer_steps(
    config: MambaLanguageModelConfig,
    lead: tuple[Size, Size],
    name: str,
    inputs: Size,
    backward: int,
    repeat: Size,
) -> Steps:
    e, n, here = config.inner, config.states, product(lead)

    def project(part: str, fan_in: Size, fan_out: Size, back: int = 2) -> Step:
        return matrix(f"{name}.{part}", lead, fan_in, fan_out, backward=back, repeat=repeat)

    def plain(part: str) -> Step:
        return Step(f"{name}.{part}", (*lead, e), repeat=repeat)

    def contract(part: str, kind: Kind, flops: Size, *axes: Size) -> Step:
        return Step(f"{name}.{part}", (*lead, *axes), kind, flops, repeat=repeat)

    return (
        project("x_proj", inputs, e, backward),
        project("z_proj", inputs, e, backward),
        contract("convolution", "convolution", 2 * here * config.taps * e, e),
        plain("silu"),
        project("dt_proj", e, e),
        plain("softplus"),
        project("b_proj", e, n),
        project("c_proj", e, n),
        contract("states", "scan", SCAN_FLOPS * here * e * n, e, n),
        plain("read"),
        plain("gate"),
        plain("gated"),
        project("out_proj", e, config.hidden),
    )


def decoding_state(config: MambaLanguageModelConfig, batch: Size = 1) -> Size:
    """Scalars that one step hands to the next: the states, and K - 1 inputs of the taps."""
    channel = config.states + config.taps - 1
    return config.layers * batch * config.inner * channel
