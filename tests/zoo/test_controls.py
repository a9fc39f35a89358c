"""Sound kernels are not accused: all properties in all their dtypes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from assay.impl.backends.torch_training import TorchTraining
from assay.impl.call import Call
from assay.impl.loading import resolve
from assay.impl.session import open_session
from assay.impl.signatures import SIGNATURES
from assay.properties.profiles import PROFILES
from assay.spec.models.flat import stored_in
from assay.spec.models.layout import product
from assay.spec.models.mlp import MLPConfig
from assay.zoo.catalogue import CONTROLS
from assay.zoo.controls.torch_training import Accumulated, FoldedOptimizers
from assay.zoo.fault import Control
from assay.zoo.measure import examine

# A few examples of each: benchmarks/ counts false alarms over all dtypes and modes.
QUICK = replace(PROFILES["quick"], examples=5, cell_seconds=60.0)
BASE = Control("numpy.float32", "numpy.float32", "the built-in control")


UNCOMPUTED = {"model_state", "model_trace", "initial_loss"}
"""Bytes, counts and draws, of which there is one way to be right."""


def test_every_op_has_controls() -> None:
    computed = {op for c in CONTROLS for op in resolve(c.target).load().operations()}
    assert set(SIGNATURES) - computed == UNCOMPUTED


@pytest.mark.parametrize("kind", [Accumulated, FoldedOptimizers])
def test_training_that_is_computed_otherwise_differs_in_its_last_bits_only(
    kind: type[TorchTraining],
) -> None:
    rng = np.random.default_rng(0)
    state = rng.standard_normal(sum(product(p.shape) for p in stored_in("mlp", MLPConfig())))
    inputs = {"state": state, "x": rng.standard_normal((5, 3)), "targets": np.ones((5, 2))}
    attributes = {"model": "mlp", "config": "{}", "optimizer": "sgd", "lr": 0.125, "steps": 3}
    call = Call("regression_step", inputs, {**attributes, "weight_decay": 0.25}, mode="single")
    found = []
    for backend in (TorchTraining(), kind()):
        with open_session(backend, isolate=False) as session:
            (reply,) = session.run([call])
        found.append(reply.outputs["state"])
    assert found[0].tobytes() != found[1].tobytes()
    np.testing.assert_allclose(found[1], found[0], rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("control", [*CONTROLS, BASE], ids=lambda c: c.name)
def test_no_property_accuses_a_control(control: Control) -> None:
    cells = list(examine(control.target, QUICK))
    assert [c.finding for c in cells if c.finding is not None] == []
    # What a control does not offer, such as the names of its kernels, is not held either.
    assert {c.verdict for c in cells} <= {"held", "unsupported"}
    assert sum(c.verdict == "held" for c in cells) >= 0.85 * len(cells)
