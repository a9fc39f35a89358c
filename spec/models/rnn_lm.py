"""Recurrent language model: h_t = tanh(W [x_t; h_(t-1)] + b) over one-hot symbols, then a linear
head at every time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from assay.spec.models import config as rules
from assay.spec.models.closed_form import Term, Terms
from assay.spec.models.config import Config
from assay.spec.models.costs import Step, Steps, matrix
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


def stack_terms(inputs: str, i: Size, hidden: Size, layers: Size, gates: int) -> Terms:
    """The closed form of ``stack``: per gate (I + Hd + 1) Hd first, then (2 Hd + 1) Hd."""
    per_gate = f"{gates} " if gates > 1 else ""
    return (
        Term(f"{per_gate}({inputs} + Hd + 1) Hd", gates * (i + hidden + 1) * hidden),
        Term(f"(L - 1) {per_gate}(2 Hd + 1) Hd", (layers - 1) * gates * (2 * hidden + 1) * hidden),
    )


def recurrent_steps(
    lead: tuple[Size, Size], inputs: Size, hidden: Size, layers: Size, gates: int
) -> Steps:
    """What ``stack`` writes; the inputs of the first layer are data.

    The columns of W that meet the input and those that meet the state are counted apart. With four
    gates the cell is written beside the state.
    """

    def layer(name: str, fan_in: Size, backward: int, repeat: Size) -> Steps:
        cell = (Step(f"{name}.cell", (*lead, hidden), repeat=repeat),) if gates > 1 else ()
        return (
            matrix(
                f"{name}.inputs", lead, fan_in, gates * hidden, backward=backward, repeat=repeat
            ),
            matrix(f"{name}.state", lead, hidden, gates * hidden, repeat=repeat),
            Step(f"{name}.gates", (*lead, gates * hidden), repeat=repeat),
            *cell,
            Step(f"{name}.hidden", (*lead, hidden), repeat=repeat),
        )

    return (*layer("cell.0", inputs, 1, 1), *layer("cell", hidden, 2, layers - 1))


def terms(config: RNNLanguageModelConfig) -> Terms:
    """The closed form of the count."""
    v, h = config.vocabulary, config.hidden
    return (*stack_terms("V", v, h, config.layers, 1), Term("(Hd + 1) V", (h + 1) * v))


def steps(config: RNNLanguageModelConfig, batch: Size = 1, length: Size | None = None) -> Steps:
    """What one forward pass writes for ``batch`` sequences of ``length`` (the context)."""
    lead = (batch, config.context if length is None else length)
    v, h = config.vocabulary, config.hidden
    return (*recurrent_steps(lead, v, h, config.layers, 1), matrix("head", lead, h, v))


def decoding_state(config: RNNLanguageModelConfig, batch: Size = 1) -> Size:
    """Scalars that one step hands to the next: h of every layer."""
    return config.layers * batch * config.hidden
