"""Recurrent language model: h_t = tanh(W [x_t; h_(t-1)] + b) over one-hot symbols, then a linear
head at every time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from assay.spec.models import config as rules
from assay.spec.models.config import Config
from assay.spec.models.initialisers import Glorot
from assay.spec.models.layout import Layout, Parameter, Section, Size
from assay.spec.models.transformer import linear


@dataclass(frozen=True)
class RNNLanguageModelConfig(Config):
    """Symbols in, logits of the next symbol out.

    context  time steps of one sequence; costs depend on it, no parameter does
    """

    vocabulary: int = 65
    hidden: int = 32
    layers: int = 1
    context: int = 16

    def problems(self) -> Iterator[str]:
        """Positive sizes."""
        yield from rules.whole(self, "vocabulary", "hidden", "layers", "context")


def gate(name: str, inputs: Size, hidden: Size) -> tuple[Parameter, ...]:
    """W [Hd, I + Hd], the columns of the input first, and b [Hd]."""
    prefix = f"{name}." if name else ""
    weight = Parameter(
        f"{prefix}weight", (hidden, inputs + hidden), "recurrent", Glorot(inputs + hidden, hidden)
    )
    return weight, Parameter(f"{prefix}bias", (hidden,), "recurrent")


def stack(inputs: Size, hidden: Size, layers: Size, gates: tuple[str, ...]) -> Layout:
    """Recurrent layers: the first reads ``inputs``, the others the outputs of the one before."""
    first = tuple(p for name in gates for p in gate(name, inputs, hidden))
    other = tuple(p for name in gates for p in gate(name, hidden, hidden))
    return (
        Section("cell", first, repeat=1),
        Section("cell", other, repeat=layers - 1, first=1),
    )


def layout(config: RNNLanguageModelConfig) -> Layout:
    """Cells, head.

    >>> from assay.spec.models.layout import expand
    >>> [p.name for p in expand(layout(RNNLanguageModelConfig()))]
    ['cell.0.weight', 'cell.0.bias', 'head.weight', 'head.bias']
    """
    v, h = config.vocabulary, config.hidden
    return (*stack(v, h, config.layers, ("",)), Section("", linear("head", h, v, "head")))
