"""torch.unfold: convolutions and pools by windows that are taken apart, and one product."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import torch
from torch import Tensor
from torch.nn import functional

from assay.impl.backends.shapes import PerAxis, each
from assay.impl.backends.torch_convolution import tokens_of
from assay.impl.contract import Contract
from assay.impl.protocol import Unsupported, implements
from assay.impl.torch_backend import TorchBackend


class TorchUnfold(TorchBackend):
    """Windows as views (``Tensor.unfold``), or as copies of ``functional.unfold`` where there are
    two axes; products by ``matmul`` and pools by ``mean`` and ``amax``.
    """

    contract = Contract(
        name="torch.unfold",
        dtypes=("float32", "float64"),
        provider="ATen",
        intermediate="input",
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
        kernel, axes = tuple(weight.shape[2:]), x.ndim - 2
        if weight.ndim != x.ndim or weight.shape[1] * groups != x.shape[1]:
            raise ValueError(f"weight {tuple(weight.shape)} does not read x {tuple(x.shape)}")
        if bias is not None and tuple(bias.shape) != (weight.shape[0],):
            raise ValueError(f"bias {tuple(bias.shape)} is not {(weight.shape[0],)}")
        rules = [each(v, axes) for v in (stride, padding, dilation)]
        columns, extents = _columns(x, kernel, *rules)
        batch, out = x.shape[0], weight.shape[0]
        taps = weight.shape[1] * prod(kernel)
        rows = columns.reshape(batch, groups, taps, prod(extents))
        kernels = weight.reshape(groups, out // groups, taps)
        y = (kernels @ rows).reshape(batch, out, *extents)
        return y if bias is None else y + bias.reshape(-1, *(1,) * axes)

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
        """Tokens [B, N, D] by one product of flat patches."""
        steps = tuple(weight.shape[2:]) if stride is None else stride
        grid = self.convolution(x, weight, bias=bias, stride=steps, padding=padding)
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
        """Padding is 0 for means, and -inf for maxima."""
        axes = x.ndim - 2
        size = each(tuple(x.shape[2:]) if window is None else window, axes)
        steps = size if stride is None else each(stride, axes)
        empty = 0.0 if kind == "mean" else -torch.inf
        views, extents = _views(x, size, steps, each(padding, axes), (1,) * axes, empty)
        rows = views.reshape(*x.shape[:2], *extents, prod(size))
        return rows.mean(dim=-1) if kind == "mean" else rows.max(dim=-1).values


def _views(
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    empty: float = 0.0,
) -> tuple[Tensor, tuple[int, ...]]:
    """All windows [B, C, *m, *k], and m."""
    edges = [side for p in reversed(padding) for side in (p, p)]
    views = functional.pad(x, edges, value=empty)
    for a, (k, s, d) in enumerate(zip(kernel, stride, dilation, strict=True)):
        span = d * (k - 1) + 1
        if span > views.shape[2 + a]:
            raise Unsupported("convolution", "Tensor.unfold refuses windows larger than the axis")
        views = views.unfold(2 + a, span, s)[..., ::d]
    return views, tuple(views.shape[2 : 2 + len(kernel)])


def _columns(
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> tuple[Tensor, tuple[int, ...]]:
    """Windows as columns [B, C K, M], and the extents of M."""
    axes = len(kernel)
    views, extents = _views(x, kernel, stride, padding, dilation)
    if axes == 2 and x.numel():
        rules = {"dilation": dilation, "padding": padding, "stride": stride}
        spelt = {name: tuple(value) for name, value in rules.items()}
        return functional.unfold(x, tuple(kernel), **spelt), extents
    order = (0, 1, *range(2 + axes, 2 + 2 * axes), *range(2, 2 + axes))
    shape = (x.shape[0], x.shape[1] * prod(kernel), prod(extents))
    return views.permute(order).reshape(shape), extents
