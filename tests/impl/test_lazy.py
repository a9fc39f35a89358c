"""The package's names are there, and cost nothing until they are used."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import assay.impl


@pytest.mark.parametrize("name", assay.impl.__all__)
def test_every_offered_name_is_there(name: str) -> None:
    assert getattr(assay.impl, name).__name__ == name


def test_an_unknown_name_says_which_are_valid() -> None:
    message = "no attribute 'TensorFlowBackend'; valid: Backend, Contract"
    with pytest.raises(AttributeError, match=message):
        assay.impl.TensorFlowBackend  # noqa: B018 - the access is the test


def test_importing_the_package_imports_neither_numpy_nor_torch() -> None:
    code = "import sys, assay.impl; sys.exit(bool({'numpy', 'torch'} & set(sys.modules)))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
