"""Compiled formulas: one graph for all shapes, and no silent return to eager."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from assay.impl.backends.torch_compile import TorchCompile, compiled
from assay.impl.call import Call
from assay.impl.protocol import Unavailable
from assay.impl.runner import execute
from assay.spec.softmax import masked_softmax

# Inductor's own imports warn.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def test_a_machine_without_a_compiler_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(Unavailable, match="there is no C\\+\\+ compiler 'no-such-compiler'"):
        TorchCompile()


@pytest.mark.slow
def test_one_graph_serves_every_shape_and_is_what_runs() -> None:
    backend = _backend()
    rng = np.random.default_rng(0)
    graphs = torch._dynamo.utils.counters["stats"]
    before = None
    for shape in ((2, 3, 5), (3, 2, 17), (2, 2, 130)):
        scores = rng.standard_normal(shape).astype(np.float32)
        mask = rng.random(shape) < 0.7
        mask[..., 0] = True
        call = Call(
            "masked_softmax", {"scores": scores, "mask": mask}, mode="no_grad", witness=True
        )
        (reply,) = execute(backend, [call])

        assert reply.failure is None, reply.failure
        due = masked_softmax(scores.astype(np.float64), mask)
        assert reply.outputs["weights"] == pytest.approx(due, abs=1e-6)
        assert any("CompiledFxGraph" in kernel for kernel in reply.hygiene.kernels)
        assert before in (None, graphs["unique_graphs"])
        before = graphs["unique_graphs"]


@pytest.mark.slow
def test_past_the_limit_of_kinds_a_call_fails_and_does_not_run_eagerly() -> None:
    _backend()
    double = compiled(lambda x: 2 * x)
    with torch._dynamo.config.patch(recompile_limit=1):
        double(torch.ones(3))
        with pytest.raises(Exception, match="recompile_limit"):
            double(torch.ones(3, 3))


def _backend() -> TorchCompile:
    try:
        return TorchCompile()
    except Unavailable as absent:
        pytest.skip(str(absent))
