"""Recurrent language model: one-hot symbols, Elman cells, a linear head at every time."""

from __future__ import annotations

from assay.spec.models.networks.passes import passes
from assay.spec.models.networks.stream import Cell, rnn_cell, streaming
from assay.spec.models.rnn_lm import RNNLanguageModelConfig


def cells(config: RNNLanguageModelConfig) -> list[Cell]:
    """Elman cells, the one that reads the symbols first."""
    return [rnn_cell(f"cell.{i}") for i in range(config.layers)]


network, run = streaming(cells)
forward, backward = passes(network)
