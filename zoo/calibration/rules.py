"""The rules by which other projects call a kernel right, and assay's own, on one array at a time.

Each follows its public source, named in ``source``. All of them are given the best oracle there is,
the exact value rounded once to the dtype under test, where most of those projects compare with
another kernel in the same dtype. That favours them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from assay.properties.context import NUMPY_DTYPES
from assay.properties.judge import scores


@dataclass(frozen=True)
class Observation:
    """One output or gradient of a kernel, and what it can be compared with; all of one shape.

    got       what the kernel gave, in the dtype under test
    exact     the exact value, in wider precision;  bound: assay's bound on the error
    low       what one rounding after each operation gives in the dtype under test
    gradient  it is a gradient
    """

    got: np.ndarray
    exact: np.ndarray
    bound: np.ndarray
    low: np.ndarray
    dtype: str
    gradient: bool = False

    @property
    def rounded(self) -> np.ndarray:
        """The exact value rounded once, as float64."""
        return _wide(self.exact.astype(NUMPY_DTYPES[self.dtype]))


@dataclass(frozen=True)
class Rule:
    """One way to judge.

    alarms     whether it calls an observation wrong
    gradients  the project's tests compare gradients too
    source     where the rule is written down
    """

    name: str
    summary: str
    source: str
    alarms: Callable[[Observation], bool]
    gradients: bool = True


def _wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64)


def _assay(o: Observation) -> bool:
    wide = o.got.astype(o.exact.dtype)
    return bool(np.any(scores(wide, o.exact, np.broadcast_to(o.bound, o.exact.shape)) > 1.0))


def _apart(o: Observation, rtol: float, atol: float, *, equal_nan: bool = False) -> bool:
    """|got - want| > atol + rtol |want| somewhere, which numpy and torch share."""
    with np.errstate(all="ignore"):
        close = np.isclose(_wide(o.got), o.rounded, rtol=rtol, atol=atol, equal_nan=equal_nan)
    return not bool(np.all(close))


KERNELBENCH = {"float32": 1e-4, "float16": 1e-2, "bfloat16": 1e-2, "float64": 1e-4}
"""float64 has no entry in the source; it is given that of float32."""


def _kernelbench_first(o: Observation) -> bool:
    return _apart(o, 1e-2, 1e-2)


def _kernelbench(o: Observation) -> bool:
    return _apart(o, KERNELBENCH[o.dtype], KERNELBENCH[o.dtype])


def _onnx(o: Observation) -> bool:
    return _apart(o, 2.0**-6 if o.dtype == "bfloat16" else 1e-3, 1e-7, equal_nan=True)


TORCH = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
}
"""(rtol, atol)"""


def _torch(o: Observation) -> bool:
    return _apart(o, *TORCH[o.dtype])


JAX = {"bfloat16": 1e-2, "float16": 1e-3, "float32": 1e-6, "float64": 1e-15}
JAX_GRADIENTS = {"bfloat16": 1e-1, "float16": 1e-2, "float32": 2e-3, "float64": 1e-5}


def _fuzz(o: Observation) -> bool:
    tolerance = (JAX_GRADIENTS if o.gradient else JAX)[o.dtype]
    return _apart(o, tolerance, tolerance, equal_nan=True)


def _flash(o: Observation) -> bool:
    """Greatest error over the whole array <= 2 x that of the low-precision reference + atol, where
    atol is what adding and subtracting 0.3 in the dtype does to the reference, twice.
    """
    if not o.exact.size:
        return False
    kind = NUMPY_DTYPES[o.dtype]
    with np.errstate(all="ignore"):
        want = o.exact.astype(kind)
        third = kind.type(0.3)
        noise = np.abs(_wide(((want + third) - third) - want)).max()
        reference = np.abs(_wide(o.low) - _wide(want)).max()
        error = np.abs(_wide(o.got) - _wide(want)).max()
    # As a failed assert: what is not comparable (NaN) is an alarm.
    return not bool(error <= 2.0 * reference + 2.0 * noise)


_GITHUB = "https://github.com"

ASSAY = Rule("assay", "the derived error bound of each element", "docs/trust.md", _assay)

PEERS: tuple[Rule, ...] = (
    Rule(
        "flash-attention",
        "greatest error at most twice that of a reference with low-precision steps, plus 2 max|"
        "((r + 0.3) - 0.3) - r|",
        f"{_GITHUB}/Dao-AILab/flash-attention/blob/01afd16d248c4c7d0f9aed1914084f16c490eaed/"
        "hopper/test_flash_attn.py",
        _flash,
    ),
    Rule(
        "KernelBench 0.1",
        "allclose with atol = rtol = 1e-2",
        f"{_GITHUB}/ScalingIntelligence/KernelBench/blob/01f92ad6103dc3feb1fe5b3c7e58536e9197430f/"
        "src/eval.py (its comment on v0 and v0.1)",
        _kernelbench_first,
        gradients=False,
    ),
    Rule(
        "KernelBench",
        "allclose with atol = rtol = 1e-4 in float32, 1e-2 in float16 and bfloat16",
        f"{_GITHUB}/ScalingIntelligence/KernelBench/blob/01f92ad6103dc3feb1fe5b3c7e58536e9197430f/"
        "src/eval.py",
        _kernelbench,
        gradients=False,
    ),
    Rule(
        "ONNX",
        "assert_allclose with rtol = 1e-3 (2^-6 in bfloat16), atol = 1e-7",
        f"{_GITHUB}/onnx/onnx/blob/main/onnx/backend/test/case/test_case.py (onnx 1.23)",
        _onnx,
        gradients=False,
    ),
    Rule(
        "torch.testing",
        "assert_close with the defaults of each dtype: rtol 1.3e-6, atol 1e-5 in float32",
        f"{_GITHUB}/pytorch/pytorch/blob/main/torch/testing/_comparison.py (torch 2.13)",
        _torch,
    ),
    Rule(
        "fuzz",
        "seeded fuzzing against float64 with JAX's tolerances: 1e-6 in float32, gradients 2e-3",
        f"{_GITHUB}/jax-ml/jax/blob/main/jax/_src/public_test_util.py (jax 0.10)",
        _fuzz,
    ),
)

RULES: tuple[Rule, ...] = (ASSAY, *PEERS)
