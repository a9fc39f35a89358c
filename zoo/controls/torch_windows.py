"""Sound convolutions in torch whose strides, dilations and groups become something else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from assay.impl.backends.shapes import PerAxis, each
from assay.impl.backends.torch_convolution import TorchConvolution
from assay.impl.backends.torch_unfold import TorchUnfold
from assay.impl.contract import Contract
from assay.impl.protocol import Unsupported, implements

CONVOLUTIONS = replace(TorchConvolution.contract, dtypes=("float32",), modes=("no_grad", "grad"))


def check_channels(x: Tensor) -> None:
    """Unsupported where torch's kernels give another shape than they promise."""
    if not x.shape[1]:
        raise Unsupported("convolution", "torch loses an axis where there are no input channels")


class StrideOne(TorchConvolution):
    """Every window is computed, and the strided ones are kept."""

    contract = replace(CONVOLUTIONS, name="zoo.stride-one")

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
        check_channels(x)
        rules = {"padding": padding, "dilation": dilation, "groups": groups}
        whole = super().convolution(x, weight, bias=bias, **rules)  # type: ignore[arg-type]
        kept: Any = (..., *(slice(None, None, s) for s in each(stride, x.ndim - 2)))
        return whole[kept].contiguous()


class PaddedFirst(TorchConvolution):
    """The rim is put round the input, and then there is none."""

    contract = replace(CONVOLUTIONS, name="zoo.padded-first")

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
        check_channels(x)
        rim = [side for p in reversed(each(padding, x.ndim - 2)) for side in (p, p)]
        return super().convolution(
            functional.pad(x, rim),
            weight,
            bias=bias,
            stride=stride,
            dilation=dilation,
            groups=groups,
        )


class GroupsApart(TorchConvolution):
    """Each group is a convolution of its own."""

    contract = replace(CONVOLUTIONS, name="zoo.groups-apart")

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
        check_channels(x)
        if weight.shape[1] * groups != x.shape[1] or weight.shape[0] % groups:
            raise ValueError(f"weight {tuple(weight.shape)} does not read x {tuple(x.shape)}")
        parts = [
            super(GroupsApart, self).convolution(
                part, kernel, stride=stride, padding=padding, dilation=dilation
            )
            for part, kernel in zip(x.chunk(groups, 1), weight.chunk(groups), strict=True)
        ]
        y = torch.cat(parts, dim=1)
        if bias is not None and bias.shape != weight.shape[:1]:
            raise ValueError(f"bias {tuple(bias.shape)} is not {tuple(weight.shape[:1])}")
        return y if bias is None else y + bias.reshape(-1, *(1,) * (x.ndim - 2))


class UpcastWindows(TorchUnfold):
    """16-bit images: unfolded windows and products in float32."""

    contract = Contract(
        "zoo.windows-upcast", ("bfloat16", "float16"), provider="zoo", requires=("torch",)
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
        wide = super().convolution(
            x.float(),
            weight.float(),
            bias=None if bias is None else bias.float(),
            stride=stride,
            padding=padding,
            dilation=dilation,
            groups=groups,
        )
        return wide.to(x.dtype)

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
        """Output [B, C, *m]."""
        rules = {"kind": kind, "window": window, "stride": stride, "padding": padding}
        return super().pooling(x.float(), **rules).to(x.dtype)  # type: ignore[arg-type]
