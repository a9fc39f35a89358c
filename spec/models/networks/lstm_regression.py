"""LSTM regression: vectors, LSTM cells, a linear map of every hidden state."""

from __future__ import annotations

from assay.spec.models.lstm_regression import LSTMRegressionConfig
from assay.spec.models.networks.passes import passes
from assay.spec.models.networks.stream import Cell, lstm_cell, streaming


def cells(config: LSTMRegressionConfig) -> list[Cell]:
    """LSTM cells, the one that reads the inputs first."""
    return [lstm_cell(f"cell.{i}") for i in range(config.layers)]


network, run = streaming(cells)
forward, backward = passes(network)
