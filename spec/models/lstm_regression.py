"""LSTM regression: vectors in, a linear map of every hidden state out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from assay.spec.models import config as rules
from assay.spec.models.config import Config
from assay.spec.models.layout import Layout, Section
from assay.spec.models.lstm_lm import GATES
from assay.spec.models.rnn_lm import stack
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
