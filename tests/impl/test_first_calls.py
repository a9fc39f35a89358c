"""What a library imports at its first use is imported while the backend is loaded, for which there
is more time than for a call.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")
_STEP = """
import sys, torch
from assay.impl.backends.torch_training import TorchTraining
TorchTraining()
before = set(sys.modules)
number = torch.ones(1, requires_grad=True)
number.grad = torch.ones(1)
for kind in (torch.optim.SGD, torch.optim.AdamW):
    kind([number], lr=0.5).step()
print(len(set(sys.modules) - before))
"""


def test_the_first_step_of_a_training_imports_next_to_nothing() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = [sys.executable, "-c", _STEP]
    done = subprocess.run(command, check=True, env=environment, capture_output=True, text=True)
    assert int(done.stdout) < 50
