"""LSTM language model: one-hot symbols, LSTM cells, a linear head at every time."""

from __future__ import annotations

from assay.spec.models.lstm_lm import LSTMLanguageModelConfig
from assay.spec.models.networks.passes import passes
from assay.spec.models.networks.stream import Cell, lstm_cell, streaming


def cells(config: LSTMLanguageModelConfig) -> list[Cell]:
    """LSTM cells, the one that reads the symbols first."""
    return [lstm_cell(f"cell.{i}") for i in range(config.layers)]


network, run = streaming(cells)
forward, backward = passes(network)
