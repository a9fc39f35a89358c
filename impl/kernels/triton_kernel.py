"""One function, two ways to run it: compiled for a GPU, interpreted on the CPU."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
import triton.language as tl
from torch import Tensor
from triton.language import tensor
from triton.runtime.interpreter import (
    GridExecutor,
    InterpretedFunction,
    interpreter_builder,
)
from triton.runtime.jit import JITFunction

from assay.impl.protocol import Unsupported

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
"""Where kernels run unless a campaign names another device."""
PATIENCE = 5.0 if DEVICE == "cpu" else 60.0
"""Seconds that a call may take beyond a campaign's limit: on a GPU the first of a kind compiles; on
the CPU a busy machine makes the interpreter's many small steps slow.
"""
FORMATS = (torch.float32, torch.bfloat16, torch.float16)
"""What kernels read and write; they compute in float32."""

# A fifth of the interpreter's time goes into watching integers for overflow.
interpreter_builder.options = replace(interpreter_builder.options, sanitize_overflow=False)


@dataclass(frozen=True)
class Launch:
    """A kernel that is about to run: its arguments, and its constants and options by name."""

    kernel: Kernel
    arguments: tuple[Any, ...]
    named: Mapping[str, Any]


class Kernel(JITFunction[Any]):  # type: ignore[misc]
    """A Triton function that runs where its tensors are.

    On a GPU it is compiled. With tensors on the CPU it is interpreted: no environment variable has
    to be set before Triton is imported, and one object can be compiled ahead of time as well.

    stand_in  what the interpreter calls instead of ``function`` where that would take too long
    told      called with each launch instead of running it, where set
    """

    told: ClassVar[Callable[[Launch], None] | None] = None

    def __init__(
        self, function: Callable[..., Any], stand_in: Callable[..., Any] | None = None
    ) -> None:
        super().__init__(function)
        self._interpreted = InterpretedFunction(function)
        self._stand_in = stand_in

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Called by another kernel that is interpreted; the compiler inlines the source instead."""
        return (self._stand_in or self._interpreted.rewrite())(*args, **kwargs)

    def run(self, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        """Launch over ``grid``; nothing at all where the grid is empty."""
        if not all(grid):
            return None
        # Products and sums contract; said here because Triton's default is about to change.
        kwargs.setdefault("enable_fp_fusion", True)
        told = type(self).told
        if told is not None:
            told(Launch(self, args, kwargs))
            return None
        if any(isinstance(x, Tensor) and x.device.type != "cpu" for x in args):
            return super().run(*args, grid=grid, warmup=warmup, **kwargs)
        executor = GridExecutor(self._interpreted.rewrite(), self.arg_names, grid)
        with np.errstate(all="ignore"):
            return executor(*args, **kwargs)


def kernel(function: Callable[..., Any]) -> Kernel:
    """Make ``function`` a ``Kernel``."""
    return Kernel(function)


# The interpreter knows these two by identity and reduces by them at once.
_add = tl.standard._sum_combine
larger = tl.standard._elementwise_max


@kernel
def row_total(x: tensor, axis: tl.constexpr) -> tensor:
    """Sum along an axis.

    ``tl.sum`` is bound when Triton is imported to be compiled or interpreted, and cannot be both.
    """
    return tl.reduce(x, axis, _add)


@kernel
def row_most(x: tensor, axis: tl.constexpr) -> tensor:
    """Maximum along an axis of numbers that are not NaN."""
    return tl.reduce(x, axis, larger)


def check_format(op: str, *arrays: Tensor) -> None:
    """Unsupported for numbers in another format than the kernels add up in float32."""
    for x in arrays:
        if x.dtype not in FORMATS:
            valid = ", ".join(str(dtype) for dtype in FORMATS)
            raise Unsupported(op, f"the kernel does not take {x.dtype}; valid: {valid}")


def power_of_two(size: int, least: int = 1) -> int:
    """The smallest power of two that is at least ``size`` and ``least``: tiles must be such.

    >>> power_of_two(5), power_of_two(0, 16)
    (8, 16)
    """
    return max(least, 1 << max(size - 1, 0).bit_length())


def blocks(size: int, block: int) -> int:
    """How many blocks cover ``size``.

    >>> blocks(9, 8), blocks(0, 8)
    (2, 0)
    """
    return math.ceil(size / block)


def readable(x: Tensor) -> Tensor:
    """``x`` as kernels read it: as it is on a GPU; in float32 on the CPU.

    The interpreter cuts bfloat16 off where the hardware rounds. Kernels convert 16-bit numbers to
    float32 as they load them, so converting before the launch gives the same numbers.
    """
    return x if x.device.type != "cpu" else x.to(torch.float32)


def output(shape: Sequence[int], like: Tensor) -> Tensor:
    """An array for a kernel to fill: in the format of ``like`` on a GPU, in float32 on the CPU."""
    dtype = like.dtype if like.device.type != "cpu" else torch.float32
    return torch.empty(shape, dtype=dtype, device=like.device)


def stored(x: Tensor, like: Tensor) -> Tensor:
    """What a kernel filled, in the format of ``like``."""
    return x.to(like.dtype)
