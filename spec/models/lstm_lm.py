"""LSTM language model: c' = f c + i g, h' = o tanh(c') over one-hot symbols, then a linear head at
every time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from assay.spec.models import config as rules
from assay.spec.models.closed_form import Term, Terms
from assay.spec.models.config import Config
from assay.spec.models.costs import Steps, matrix
from assay.spec.models.layout import Layout, Section, Size
from assay.spec.models.rnn_lm import recurrent_steps, stack, stack_terms
from assay.spec.models.transformer import linear

GATES = ("forget", "input", "candidate", "output")
"""The gates in the order of the state."""


@dataclass(frozen=True)
class LSTMLanguageModelConfig(Config):
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


def layout(config: LSTMLanguageModelConfig) -> Layout:
    """Cells of four gates, head.

    >>> from assay.spec.models.layout import tensors
    >>> tensors(layout(LSTMLanguageModelConfig()))
    10
    """
    v, h = config.vocabulary, config.hidden
    return (*stack(v, h, config.layers, GATES), Section("", linear("head", h, v, "head")))


def terms(config: LSTMLanguageModelConfig) -> Terms:
    """The closed form of the count."""
    v, h = config.vocabulary, config.hidden
    return (*stack_terms("V", v, h, config.layers, 4), Term("(Hd + 1) V", (h + 1) * v))


def steps(config: LSTMLanguageModelConfig, batch: Size = 1, length: Size | None = None) -> Steps:
    """What one forward pass writes for ``batch`` sequences of ``length`` (the context)."""
    lead = (batch, config.context if length is None else length)
    v, h = config.vocabulary, config.hidden
    return (*recurrent_steps(lead, v, h, config.layers, 4), matrix("head", lead, h, v))


def decoding_state(config: LSTMLanguageModelConfig, batch: Size = 1) -> Size:
    """Scalars that one step hands to the next: h and c of every layer."""
    return 2 * config.layers * batch * config.hidden
