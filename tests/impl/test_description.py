from importlib import metadata

import numpy as np

from assay.impl import Contract, NumpyBackend, implements
from assay.impl.description import describe


class Plotted(NumpyBackend):
    contract = Contract("plotted", requires=("matplotlib>=3", "nvcc", "no such package"))

    @implements("relu")
    def relu(self, x: np.ndarray) -> np.ndarray:
        return np.maximum(x, 0)


def test_versions_name_the_packages_that_a_contract_requires() -> None:
    versions = describe(Plotted()).versions
    assert versions["matplotlib"] == metadata.version("matplotlib")
    assert {"python", "numpy"} <= set(versions)


def test_versions_name_no_tool_and_no_missing_package() -> None:
    assert set(describe(Plotted()).versions) == {"python", "numpy", "matplotlib"}
