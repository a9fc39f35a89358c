"""The first loss behind a Glorot-uniform head lies in its interval, and other heads miss it."""

from __future__ import annotations

import numpy as np
import pytest

from assay.spec.models.head_loss import interval
from assay.spec.models.initialisers import Glorot
from assay.spec.models.networks.loss import token_loss


def balanced(logits: np.ndarray) -> float:
    """The loss where every symbol is the target of every row."""
    rows, symbols = logits.shape
    each = np.repeat(logits[None], symbols, axis=0)
    targets = np.broadcast_to(np.arange(symbols)[:, None], (symbols, rows))
    return float(token_loss(each, targets))


@pytest.mark.parametrize(("symbols", "width", "size"), [(65, 32, 0.2), (5, 40, 0.5), (300, 8, 1.0)])
def test_it_holds_for_drawn_heads(symbols: int, width: int, size: float) -> None:
    rng = np.random.default_rng(0)
    hidden = rng.normal(0.0, size, (5, width))
    low, high = interval(symbols, hidden)
    for _ in range(50):
        loss = balanced(hidden @ Glorot(width, symbols).draw((width, symbols), rng))
        assert low <= loss <= high


def test_a_head_of_unit_deviation_is_beyond_it() -> None:
    rng = np.random.default_rng(0)
    hidden = rng.normal(0.0, 0.2, (20, 32))
    _, high = interval(65, hidden)
    assert balanced(hidden @ rng.standard_normal((32, 65))) > high


def test_equal_logits_are_at_its_lower_end() -> None:
    low, high = interval(65, np.zeros((3, 32)))
    assert low <= np.log(65) <= high
    assert high - low < 1e-5
