"""torch.conv: torch's convolutions and pools, as functions, modules and with channels last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from assay.impl.backends.shapes import PerAxis, each
from assay.impl.contract import Contract
from assay.impl.protocol import Unsupported, implements
from assay.impl.torch_backend import TorchBackend

_CONVOLUTIONS = (functional.conv1d, functional.conv2d, functional.conv3d)
_MODULES = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_MEAN = (functional.avg_pool1d, functional.avg_pool2d, functional.avg_pool3d)
_MAX = (functional.max_pool1d, functional.max_pool2d, functional.max_pool3d)
_MEAN_MODULES = (nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d)
_MAX_MODULES = (nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d)
_CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}


def _check_axes(op: str, x: Tensor) -> int:
    """The number of spatial axes."""
    axes = x.ndim - 2
    if not 1 <= axes <= 3:
        raise Unsupported(op, f"torch has it for 1 to 3 spatial axes, x has {axes}")
    return axes


def _check_windows(op: str, x: Tensor, kernel: Sequence[int], **rules: PerAxis) -> None:
    """Unsupported where no window fits: torch refuses what would be an empty output."""
    axes = len(kernel)
    padding, dilation = (each(rules.get(n, d), axes) for n, d in (("padding", 0), ("dilation", 1)))
    for n, k, p, d in zip(x.shape[2:], kernel, padding, dilation, strict=True):
        if d * (k - 1) + 1 > n + 2 * p or n == 0:
            raise Unsupported(op, "torch refuses kernels that are larger than the padded input")


def _check_mean3d(x: Tensor, size: Sequence[int]) -> None:
    if any(k > n for n, k in zip(x.shape[2:], size, strict=True)):
        raise Unsupported(
            "pooling",
            "avg_pool3d refuses windows larger than the input without its padding; avg_pool1d and "
            "avg_pool2d take them",
        )
    if x.dtype in (torch.float16, torch.bfloat16):
        raise Unsupported("pooling", "avg_pool3d is not implemented for 16-bit formats on a CPU")


def tokens_of(grid: Tensor, class_token: Tensor | None) -> Tensor:
    """[B, D, *m] as tokens [B, N, D], behind the class token."""
    tokens = grid.flatten(2).transpose(1, 2)
    if class_token is None:
        return tokens.contiguous()
    first = class_token.expand(grid.shape[0], *class_token.shape)
    return torch.cat([first, tokens], dim=1)


class TorchConvolution(TorchBackend):
    """``functional.conv*d``, ``avg_pool*d`` and ``max_pool*d``, their modules, and both in memory
    with channels last (one axis as a grid of one row).

    In 16-bit formats: see ``TorchConvolution16``.
    """

    contract = Contract(
        name="torch.conv",
        dtypes=("float32", "float64"),
        provider="ATen, oneDNN",
        intermediate="input",
        block_sizes=(8, 16),
        modes=("no_grad", "grad", "module.grad", "channels_last.grad"),
        requires=("torch",),
    )

    @implements("convolution")
    def convolution(
        self,
        x: Tensor,
        weight: Tensor,
        *,
        bias: Tensor | None = None,
        stride: PerAxis = 1,
        padding: PerAxis = 0,
        dilation: PerAxis = 1,
        groups: int = 1,
    ) -> Tensor:
        """Output [B, Cout, *m]."""
        axes = _check_axes("convolution", x)
        if weight.ndim != x.ndim:
            raise ValueError(f"weight has {weight.ndim} axes, x has {x.ndim}")
        _check_windows("convolution", x, weight.shape[2:], padding=padding, dilation=dilation)
        if not weight.shape[0]:
            raise Unsupported("convolution", "torch refuses kernels without output channels")
        rules = {"stride": stride, "padding": padding, "dilation": dilation}
        per_axis = {name: each(value, axes) for name, value in rules.items()}
        if self.mode.startswith("channels_last"):
            return _channels_last(x, weight, bias, per_axis, groups)
        if self.mode.startswith("module"):
            return _module(x, weight, bias, per_axis, groups)
        return _CONVOLUTIONS[axes - 1](x, weight, bias, groups=groups, **per_axis)

    @implements("patch_embedding")
    def patch_embedding(
        self,
        x: Tensor,
        weight: Tensor,
        *,
        bias: Tensor | None = None,
        class_token: Tensor | None = None,
        stride: PerAxis | None = None,
        padding: PerAxis = 0,
    ) -> Tensor:
        """Tokens [B, N, D] by a convolution, flattened and transposed."""
        grid = self.convolution(
            x,
            weight,
            bias=bias,
            stride=tuple(weight.shape[2:]) if stride is None else stride,
            padding=padding,
        )
        return tokens_of(grid, class_token)

    @implements("pooling")
    def pooling(
        self,
        x: Tensor,
        *,
        kind: str = "mean",
        window: PerAxis | None = None,
        stride: PerAxis | None = None,
        padding: PerAxis = 0,
    ) -> Tensor:
        """Means count padding as zeros, maxima leave it out."""
        axes = _check_axes("pooling", x)
        size = each(tuple(x.shape[2:]) if window is None else window, axes)
        _check_windows("pooling", x, size, padding=padding)
        if not x.shape[1]:
            raise Unsupported("pooling", "torch refuses inputs without channels")
        if kind == "mean" and axes == 3:
            _check_mean3d(x, size)
        if self.mode.startswith("channels_last"):
            if axes == 1:
                raise Unsupported("pooling", "torch keeps channels last on 2 or 3 axes")
            x = x.contiguous(memory_format=_CHANNELS_LAST[x.ndim])
        steps = None if stride is None else each(stride, axes)
        edges = each(padding, axes)
        if self.mode.startswith("module"):
            modules: Any = _MEAN_MODULES if kind == "mean" else _MAX_MODULES
            pooled: Tensor = modules[axes - 1](size, steps, edges)(x)
            return pooled
        functions: Any = _MEAN if kind == "mean" else _MAX
        result: Tensor = functions[axes - 1](x, size, steps, edges)
        return result


class TorchConvolution16(TorchConvolution):
    """The same in 16-bit formats.

    Where oneDNN does not know the format, the gradient into x is made of columns that are stored in
    that format and added up in it tap by tap (``col2im``): sums are those of the input's format.
    """

    contract = replace(
        TorchConvolution.contract,
        name="torch.conv.16bit",
        dtypes=("bfloat16", "float16"),
        accumulate="input",
    )


def _module(
    x: Tensor, weight: Tensor, bias: Tensor | None, rules: dict[str, Any], groups: int
) -> Tensor:
    """The module with these parameters; made on no device, so that no random number is drawn."""
    kinds: Any = _MODULES
    out, inside = weight.shape[0], weight.shape[1] * groups
    with torch.device("meta"):
        module = kinds[x.ndim - 3](
            inside,
            out,
            tuple(weight.shape[2:]),
            groups=groups,
            bias=bias is not None,
            dtype=weight.dtype,
            **rules,
        )
    parameters = {"weight": weight} | ({} if bias is None else {"bias": bias})
    if bias is not None and tuple(bias.shape) != (out,):
        raise ValueError(f"bias has shape {tuple(bias.shape)}; it must be {(out,)}")
    result: Tensor = torch.func.functional_call(module, parameters, (x,))
    return result


def _channels_last(
    x: Tensor, weight: Tensor, bias: Tensor | None, rules: dict[str, Any], groups: int
) -> Tensor:
    """Input and kernel with channels last in memory; one axis becomes a grid of one row."""
    if x.ndim == 3:
        rules = {n: (0 if n == "padding" else 1, *v) for n, v in rules.items()}
        wide = _channels_last(x.unsqueeze(2), weight.unsqueeze(2), bias, rules, groups)
        return wide.squeeze(2)
    form = _CHANNELS_LAST[x.ndim]
    return _CONVOLUTIONS[x.ndim - 3](
        x.contiguous(memory_format=form),
        weight.contiguous(memory_format=form),
        bias,
        groups=groups,
        **rules,
    )
