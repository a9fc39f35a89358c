"""What all tests share: one thread, a plain terminal, Hypothesis cases that repeat."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

# Before numpy or torch start their pools: two cores are shared by the test workers.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")
for _variable in ("FORCE_COLOR", "NO_COLOR"):
    os.environ.pop(_variable, None)

# The same cases every time: a test that fails must fail again. Luck is for campaigns.
settings.register_profile("tests", derandomize=True, database=None, deadline=None)
settings.load_profile("tests")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs an accelerator where there is none."""
    if any(item.get_closest_marker("gpu") for item in items):
        import torch

        if not torch.cuda.is_available():
            for item in items:
                if item.get_closest_marker("gpu"):
                    item.add_marker(pytest.mark.skip(reason="no accelerator here"))
