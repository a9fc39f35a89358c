"""The CUDA C++ kernels on torch tensors: pointers, sizes and a stream go in, an error comes out."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_int, c_int32, c_int64, c_void_p
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from assay.impl.kernels.cuda_build import BuildError, nvcc, shared_object
from assay.impl.protocol import Unavailable

FORMATS = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2}
MOST_STATES = 64
"""More states of a channel do not fit in a thread's registers."""


def require() -> None:
    """Unavailable unless there is a CUDA device and a compiler for it."""
    if not torch.cuda.is_available():
        raise Unavailable("there is no CUDA device")
    if not nvcc():
        remedy = "install the CUDA toolkit, or set CUDA_HOME to where it is"
        raise Unavailable("nvcc, which builds these kernels, is not on the path", remedy)


@cache
def _library() -> ctypes.CDLL:
    major, minor = torch.cuda.get_device_capability()
    try:
        path = shared_object(f"sm_{major}{minor}")
    except BuildError as error:
        raise Unavailable(str(error)) from error
    return declared(ctypes.CDLL(str(path)))


def declared(library: ctypes.CDLL) -> ctypes.CDLL:
    """The library with the types of its functions told to ctypes."""
    sizes = (c_int64, c_int64, c_int32, c_void_p)
    library.assay_masked_softmax.argtypes = (c_void_p, c_void_p, c_void_p, *sizes)
    library.assay_masked_softmax_backward.argtypes = (*(c_void_p,) * 4, *sizes)
    library.assay_selective_scan.argtypes = (
        POINTER(c_void_p), POINTER(c_void_p), POINTER(c_int64), c_int32, c_void_p,
    )  # fmt: skip
    library.assay_error.argtypes = (c_int,)
    library.assay_error.restype = c_char_p
    return library


def _check(name: str, code: int) -> None:
    if code:
        reason = _library().assay_error(code).decode()
        raise RuntimeError(f"launch of {name} failed with cudaError {code}: {reason}")


def _pointer(x: Tensor | None) -> int | None:
    return None if x is None else x.data_ptr()


def _stream(x: Tensor) -> int:
    return int(torch.cuda.current_stream(x.device).cuda_stream)


def _rows(x: Tensor) -> tuple[int, int]:
    length = x.shape[-1]
    return (x.numel() // length if length else 0), length


class _MaskedSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, mask: Tensor | None) -> Tensor:
        plain = scores.contiguous()
        seen = None if mask is None else mask.expand(scores.shape).contiguous()
        weights = torch.empty_like(plain)
        code = _library().assay_masked_softmax(
            _pointer(plain), _pointer(seen), _pointer(weights), *_rows(plain),
            FORMATS[plain.dtype], _stream(plain),
        )  # fmt: skip
        _check("masked_softmax", code)
        ctx.save_for_backward(weights, seen)
        return weights

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, cotangent: Tensor) -> tuple[Tensor, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        weights, seen = ctx.saved_tensors
        plain, gradient = cotangent.contiguous(), torch.empty_like(weights)
        code = _library().assay_masked_softmax_backward(
            _pointer(weights), _pointer(plain), _pointer(seen), _pointer(gradient),
            *_rows(weights), FORMATS[weights.dtype], _stream(weights),
        )  # fmt: skip
        _check("masked_softmax_backward", code)
        return gradient, None


def masked_softmax(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Weights in the shape of ``scores`` [..., S]; ``mask``, True where allowed, broadcasts to it.

    Rows that see nothing are zeros.
    """
    return _MaskedSoftmax.apply(scores, mask)  # type: ignore[no-untyped-call]


def selective_scan(
    u: Tensor,
    delta: Tensor,
    a: Tensor,
    b: Tensor,
    c: Tensor,
    d: Tensor | None = None,
    h0: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Outputs [B, T, E] and the last state [B, E, N] for u, delta [B, T, E], a [E, N],
    b, c [B, T, N], d [E], h0 [B, E, N], with N at most ``MOST_STATES``. No gradients.
    """
    given = [None if x is None else x.contiguous() for x in (u, delta, a, b, c, d, h0)]
    (batch, steps, channels), states = u.shape, a.shape[1]
    out = torch.empty((batch, steps, channels), dtype=u.dtype, device=u.device)
    last = torch.empty((batch, channels, states), dtype=u.dtype, device=u.device)
    code = _library().assay_selective_scan(
        (c_void_p * 7)(*map(_pointer, given)),
        (c_void_p * 2)(out.data_ptr(), last.data_ptr()),
        (c_int64 * 4)(batch, steps, channels, states), FORMATS[u.dtype], _stream(u),
    )  # fmt: skip
    _check("selective_scan", code)
    return out, last
