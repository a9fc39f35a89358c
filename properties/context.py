"""What a property may know of the backend under test: its op, its declared contract, the dtype and
the mode.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from assay.impl.contract import Contract
from assay.impl.session import Description
from assay.spec.arithmetic import Arithmetic
from assay.spec.ops import Op

NUMPY_DTYPES: Mapping[str, np.dtype[Any]] = {
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float32": np.dtype(np.float32),
    "float64": np.dtype(np.float64),
}


@dataclass(frozen=True)
class Context:
    """One op of one backend, in one dtype and mode.

    keywords   attribute and mask names that the adapter takes for this op; None: all
    gradients  whether gradients can be asked for in this mode;  gradients_elsewhere: in another one
    """

    op: Op
    contract: Contract
    dtype: str
    mode: str
    keywords: tuple[str, ...] | None
    gradients: bool
    gradients_elsewhere: bool = False

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The dtype under test as numpy knows it."""
        return NUMPY_DTYPES[self.dtype]

    @property
    def arithmetic(self) -> Arithmetic:
        """Rounding that the contract declares for this dtype."""
        return self.contract.arithmetic(self.dtype)

    def takes(self, keyword: str) -> bool:
        """Whether the adapter accepts this attribute or optional input."""
        return self.keywords is None or keyword in self.keywords


def context_of(op: Op, description: Description, dtype: str, mode: str) -> Context:
    """The context of one cell, from what the backend says of itself."""
    offered = bool(op.differentiable) and op.name in description.gradients
    return Context(
        op=op,
        contract=description.contract,
        dtype=dtype,
        mode=mode,
        keywords=description.operations[op.name],
        gradients=offered and mode in description.gradient_modes,
        gradients_elsewhere=offered,
    )
