"""Blame hints for recurrent layers and scans name what is wrong."""

from __future__ import annotations

import numpy as np
import pytest

from assay.impl.contract import Contract
from assay.properties.context import Context
from assay.properties.variants import variants
from assay.spec import ops


def _context(name: str) -> Context:
    return Context(ops.op(name), Contract("x"), "float32", "default", None, True)


def _inputs(name: str) -> dict[str, np.ndarray]:
    sizes = {"B": 2, "T": 3, "I": 2, "Hd": 3, "I+Hd": 5, "E": 2, "Ns": 2, "Kt": 3, "Kt-1": 2}
    sizes |= {"O": 2, "3": 3, "4": 4}
    rng = np.random.default_rng(1)
    drawn = {i.name: rng.standard_normal([sizes[s] for s in i.dims]) for i in ops.op(name).inputs}
    if "lengths" in drawn:
        drawn["lengths"] = np.array([3, 1])
    return {n: x if x.dtype.kind == "i" else x.astype(np.float32) for n, x in drawn.items()}


@pytest.mark.parametrize(
    "name",
    ["rnn", "lstm", "gru", "diagonal_ssm", "causal_conv1d", "selective_scan", "selective_block"],
)
def test_each_variant_differs_from_what_is_due(name: str) -> None:
    inputs = _inputs(name)
    due = ops.op(name).forward(
        {n: x.astype(float) if x.dtype.kind == "f" else x for n, x in inputs.items()}, {}
    )
    found = [(what, values()) for what, values in variants(_context(name), inputs, {})]
    words = {what for what, _ in found}

    assert words
    for what in words:
        same = [
            any(x.shape == y.shape and np.array_equal(x, y) for y in due.values())
            for w, x in found
            if w == what
        ]
        assert not all(same), what
