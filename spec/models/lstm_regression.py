"""LSTM regression: vectors in, a linear map of every hidden state out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from assay.spec.models import config as rules
from assay.spec.models.closed_form import Term, Terms
from assay.spec.models.config import Config
from assay.spec.models.costs import Steps, matrix
from assay.spec.models.layout import Layout, Section, Size
from assay.spec.models.lstm_lm import GATES
from assay.spec.models.rnn_lm import recurrent_steps, stack, stack_terms
from assay.spec.models.transformer import linear


@dataclass(frozen=True)
class LSTMRegressionConfig(Config):
    """A sequence of ``inputs`` numbers each to a sequence of ``outputs`` numbers each.

    context  time steps of one sequence; costs depend on it, no parameter does
    """

    inputs: int = 1
    hidden: int = 16
    outputs: int = 1
    layers: int = 1
    context: int = 16

    def problems(self) -> Iterator[str]:
        """Positive sizes."""
        yield from rules.whole(self, "inputs", "hidden", "outputs", "layers", "context")


def layout(config: LSTMRegressionConfig) -> Layout:
    """Cells of four gates, head.

    >>> from assay.spec.models.layout import stored
    >>> stored(layout(LSTMRegressionConfig()))
    1169
    """
    h = config.hidden
    return (
        *stack(config.inputs, h, config.layers, GATES),
        Section("", linear("head", h, config.outputs, "head")),
    )


def terms(config: LSTMRegressionConfig) -> Terms:
    """The closed form of the count."""
    h, out = config.hidden, config.outputs
    return (
        *stack_terms("I", config.inputs, h, config.layers, 4),
        Term("(Hd + 1) O", (h + 1) * out),
    )


def steps(config: LSTMRegressionConfig, batch: Size = 1, length: Size | None = None) -> Steps:
    """What one forward pass writes for ``batch`` sequences of ``length`` (the context)."""
    lead = (batch, config.context if length is None else length)
    h = config.hidden
    return (
        *recurrent_steps(lead, config.inputs, h, config.layers, 4),
        matrix("head", lead, h, config.outputs),
    )


def decoding_state(config: LSTMRegressionConfig, batch: Size = 1) -> Size:
    """Scalars that one step hands to the next: h and c of every layer."""
    return 2 * config.layers * batch * config.hidden
