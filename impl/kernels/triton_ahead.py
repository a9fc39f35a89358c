"""Compile every Triton kernel ahead of time, on a machine without a GPU.

The interpreter accepts what the compiler rejects. So each op runs once on tensors without memory;
what it would have launched is compiled for the GPU, with the constants and options of that launch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import triton
from torch import Tensor
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, CompiledKernel

from assay.impl.kernels.triton_attention import attention
from assay.impl.kernels.triton_conv import causal_conv1d
from assay.impl.kernels.triton_kernel import Kernel, Launch
from assay.impl.kernels.triton_scan import selective_scan
from assay.impl.kernels.triton_softmax import masked_softmax

HOPPER = GPUTarget("cuda", 90, 32)
"""sm_90: compute capability 9.0, 32 threads a warp."""
DTYPES = (torch.float32, torch.bfloat16, torch.float16)

_TYPES = {
    torch.float32: "*fp32", torch.float16: "*fp16", torch.bfloat16: "*bf16", torch.uint8: "*u8",
    torch.int32: "*i32",
}  # fmt: skip


@dataclass(frozen=True)
class Compiled:
    """One kernel, compiled: its name, its constants, and the assembly."""

    name: str
    constants: dict[str, Any]
    ptx: str


@contextmanager
def _listening(launches: list[Launch]) -> Iterator[None]:
    Kernel.told = launches.append
    try:
        yield
    finally:
        Kernel.told = None


def launches_of(run: Callable[[torch.dtype], Any], dtype: torch.dtype) -> list[Launch]:
    """What ``run`` and the gradients of its outputs would launch."""
    launches: list[Launch] = []
    with _listening(launches):
        outputs = run(dtype)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        torch.autograd.backward(outputs, [torch.empty_like(x) for x in outputs])
    return launches


def compiled(launch: Launch, target: GPUTarget = HOPPER) -> Compiled:
    """Compile what ``launch`` would have run; a failure of the compiler or of ptxas is raised."""
    names = launch.kernel.arg_names
    given = dict(zip(names, launch.arguments, strict=False))
    constants = {n: v for n, v in launch.named.items() if n in names}
    named = {"enable_fp_fusion": True, **launch.named}
    options = {n: v for n, v in named.items() if n not in names}
    signature = {n: "constexpr" if n in constants else _type(given[n]) for n in names}
    # As at a launch: memory that torch gives out starts at a multiple of 16 bytes.
    aligned = {
        (i,): [["tt.divisibility", 16]] for i, n in enumerate(names) if signature[n][0] == "*"
    }
    source = ASTSource(launch.kernel, signature, constexprs=constants, attrs=aligned)
    built: CompiledKernel = triton.compile(source, target=target, options=options)
    return Compiled(launch.kernel.__name__, constants, built.asm["ptx"])


def _type(value: Any) -> str:
    if isinstance(value, Tensor):
        return _TYPES[value.dtype]
    return "fp32" if isinstance(value, float) else "i32"


def _array(dtype: torch.dtype, *shape: int) -> Tensor:
    return torch.empty(shape, dtype=dtype, device="meta", requires_grad=True)


def _mask(*shape: int) -> Tensor:
    return torch.empty(shape, dtype=torch.bool, device="meta")


def _attention(width: int, masked: str) -> Callable[[torch.dtype], Any]:
    def run(dtype: torch.dtype) -> Any:
        q, k, v = (_array(dtype, 1, heads, 256, width) for heads in (4, 2, 2))
        additive = torch.empty(256, 256, dtype=dtype, device="meta")
        mask = {"none": None, "bool": _mask(256, 256), "additive": additive}[masked]
        return attention(q, k, v, mask=mask, causal=True)

    return run


def _softmax(length: int, masked: bool) -> Callable[[torch.dtype], Any]:
    def run(dtype: torch.dtype) -> Any:
        return masked_softmax(_array(dtype, 2, 64, length), _mask(64, length) if masked else None)

    return run


def _scan(whole: bool) -> Callable[[torch.dtype], Any]:
    """``whole``: with a skip and a state to start from."""

    def run(dtype: torch.dtype) -> Any:
        batch, steps, channels, states = 2, 64, 128, 16
        u, delta = (_array(dtype, batch, steps, channels) for _ in range(2))
        b, c = (_array(dtype, batch, steps, states) for _ in range(2))
        a, h0 = _array(dtype, channels, states), _array(dtype, batch, channels, states)
        extra = (_array(dtype, channels), h0) if whole else (None, None)
        return selective_scan(u, delta, a, b, c, *extra)

    return run


def _conv(whole: bool) -> Callable[[torch.dtype], Any]:
    """``whole``: with a bias and a history."""

    def run(dtype: torch.dtype) -> Any:
        x, weight = _array(dtype, 2, 64, 128), _array(dtype, 4, 128)
        extra = (_array(dtype, 128), _array(dtype, 2, 3, 128)) if whole else (None, None)
        return causal_conv1d(x, weight, *extra)

    return run


Run = Callable[[torch.dtype], Any]
RUNS: dict[str, tuple[Run, tuple[torch.dtype, ...]]] = {
    "attention, width 64": (_attention(64, "none"), DTYPES),
    "attention, width 128, boolean mask": (_attention(128, "bool"), (torch.bfloat16,)),
    "attention, width 256, additive mask": (_attention(256, "additive"), (torch.float16,)),
    "softmax": (_softmax(100, False), DTYPES),
    "softmax of long rows, masked": (_softmax(5000, True), DTYPES),
    "scan": (_scan(False), (torch.float32,)),
    "scan with skip and state": (_scan(True), DTYPES),
    "convolution": (_conv(False), (torch.float32,)),
    "convolution with bias and history": (_conv(True), DTYPES),
}
"""What to compile, for which formats: every kernel in every format, and in every form that its
constants give it.
"""
