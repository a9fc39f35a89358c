"""Multilayer perceptron: y = W_n act(... act(W_1 x + b_1) ...) + b_n, and an optional linear
shortcut from the inputs, with N = sum of (in + 1) out parameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from assay.spec.models import config as rules
from assay.spec.models.closed_form import Term, Terms
from assay.spec.models.config import ACTIVATIONS, Config
from assay.spec.models.costs import Step, Steps, matrix
from assay.spec.models.layout import Layout, Section, Size
from assay.spec.models.transformer import linear


@dataclass(frozen=True)
class MLPConfig(Config):
    """Widths from the inputs to the outputs; the activation stands between layers, not at the end.

    hidden    widths between; none gives one linear layer
    shortcut  adds a second linear layer from the inputs to the outputs, stored last
    """

    inputs: int = 3
    hidden: tuple[int, ...] = (5,)
    outputs: int = 2
    activation: str = "relu"
    shortcut: bool = False

    def problems(self) -> Iterator[str]:
        """Positive widths, a known activation."""
        yield from rules.whole(self, "inputs")
        yield from rules.extents(self, "hidden", axes="hidden")
        yield from rules.whole(self, "outputs")
        yield from rules.choice(self, "activation", ACTIVATIONS)
        yield from rules.flags(self, "shortcut")

    @property
    def widths(self) -> tuple[Size, ...]:
        """Every width from the inputs to the outputs."""
        return (self.inputs, *self.hidden, self.outputs)


def layout(config: MLPConfig) -> Layout:
    """Each layer's weight [out, in] and bias, then the shortcut's.

    >>> from assay.spec.models.layout import expand
    >>> [p.shape for p in expand(layout(MLPConfig()))]
    [(5, 3), (5,), (2, 5), (2,)]
    """
    layers = tuple(
        Section("", linear(f"layer.{i}", fan_in, fan_out, "linear"))
        for i, (fan_in, fan_out) in enumerate(pairwise(config.widths))
    )
    if not config.shortcut:
        return layers
    return (*layers, Section("", linear("shortcut", config.inputs, config.outputs, "linear")))


def terms(config: MLPConfig) -> Terms:
    """The closed form: (in + 1) out for each layer."""
    layers = tuple(
        Term(f"({fan_in} + 1) {fan_out}", (fan_in + 1) * fan_out)
        for fan_in, fan_out in pairwise(config.widths)
    )
    if not config.shortcut:
        return layers
    fan_in, fan_out = config.inputs, config.outputs
    return (*layers, Term(f"({fan_in} + 1) {fan_out}", (fan_in + 1) * fan_out))


def steps(config: MLPConfig, batch: Size = 1) -> Steps:
    """What one forward pass writes for ``batch`` rows; the inputs are data."""
    found: list[Step] = []
    for i, (fan_in, fan_out) in enumerate(pairwise(config.widths)):
        found.append(matrix(f"layer.{i}", (batch,), fan_in, fan_out, backward=2 if i else 1))
        if i < len(config.hidden):
            found.append(Step(f"activation.{i}", (batch, fan_out)))
    if config.shortcut:
        found.append(matrix("shortcut", (batch,), config.inputs, config.outputs, backward=1))
        found.append(Step("add", (batch, config.outputs)))
    return tuple(found)
