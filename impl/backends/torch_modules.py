"""torch.modules: layers as ``torch.nn`` offers them, with parameters given to each call, and
torch.channels_last: norms of grids whose channels lie last in memory.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from assay.impl.backends.torch_layers import (
    TorchLayers,
    check_batch,
    check_group,
    check_parameters,
)
from assay.impl.protocol import Unsupported, implements
from assay.impl.torch_backend import TorchBackend

_BATCH_NORMS: dict[int, type[nn.Module]] = {
    2: nn.BatchNorm1d,
    3: nn.BatchNorm1d,
    4: nn.BatchNorm2d,
    5: nn.BatchNorm3d,
}
_CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}


def _run(module: nn.Module, x: Tensor, **parameters: Tensor | None) -> Tensor:
    """The module on ``x`` with these parameters, which must have the shapes of its own."""
    given = {n: p for n, p in parameters.items() if p is not None}
    own = dict(module.named_parameters())
    for name, parameter in given.items():
        if own[name].shape != parameter.shape:
            raise ValueError(
                f"{name} {tuple(parameter.shape)} must have the shape {tuple(own[name].shape)}"
            )
    result: Tensor = torch.func.functional_call(module, given, (x,))
    return result


class TorchModules(TorchBackend):
    """Modules are made for each call, on no device, so that they draw no random numbers.

    Norms with one of weight and bias: only LayerNorm can leave out its bias.
    """

    contract = replace(TorchLayers.contract, name="torch.modules", dtypes=("float32", "float64"))

    @implements("silu")
    def silu(self, x: Tensor) -> Tensor:
        """``nn.SiLU``."""
        return _run(nn.SiLU(), x)

    @implements("softplus")
    def softplus(self, x: Tensor) -> Tensor:
        """``nn.Softplus``."""
        return _run(nn.Softplus(), x)

    @implements("linear")
    def linear(self, x: Tensor, weight: Tensor, *, bias: Tensor | None = None) -> Tensor:
        """``nn.Linear``."""
        with torch.device("meta"):
            module = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
        return _run(module, x, weight=weight, bias=bias)

    @implements("embedding")
    def embedding(self, ids: Tensor, table: Tensor, *, padding_idx: int | None = None) -> Tensor:
        """``nn.Embedding``."""
        with torch.device("meta"):
            module = nn.Embedding(table.shape[0], table.shape[1], padding_idx)
        return _run(module, ids, weight=table)

    @implements("layer_norm")
    def layer_norm(
        self,
        x: Tensor,
        *,
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        eps: float = 1e-5,
    ) -> Tensor:
        """``nn.LayerNorm``."""
        affine = _affine("layer_norm", weight, bias)
        with torch.device("meta"):
            module = nn.LayerNorm(x.shape[-1], eps, affine, bias is not None)
        return _run(module, x, weight=weight, bias=bias)

    @implements("rms_norm")
    def rms_norm(self, x: Tensor, *, weight: Tensor | None = None, eps: float = 1e-5) -> Tensor:
        """``nn.RMSNorm``."""
        with torch.device("meta"):
            module = nn.RMSNorm(x.shape[-1], eps, weight is not None)
        return _run(module, x, weight=weight)

    @implements("group_norm")
    def group_norm(
        self,
        x: Tensor,
        *,
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        groups: int = 1,
        eps: float = 1e-5,
    ) -> Tensor:
        """``nn.GroupNorm``."""
        check_group(x, groups)
        affine = _affine("group_norm", weight, bias, both=True)
        with torch.device("meta"):
            module = nn.GroupNorm(groups, x.shape[1], eps, affine)
        return _run(module, x, weight=weight, bias=bias)

    @implements("batch_norm")
    def batch_norm(
        self,
        x: Tensor,
        *,
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        eps: float = 1e-5,
    ) -> Tensor:
        """``nn.BatchNorm1d`` to ``nn.BatchNorm3d``, training, without running statistics."""
        check_batch(x)
        if x.ndim not in _BATCH_NORMS:
            raise Unsupported("batch_norm", f"torch has it for 0 to 3 positions, x is {x.ndim}-d")
        affine = _affine("batch_norm", weight, bias, both=True)
        with torch.device("meta"):
            module = _BATCH_NORMS[x.ndim](
                x.shape[1], eps=eps, affine=affine, track_running_stats=False
            )
        return _run(module, x, weight=weight, bias=bias)

    @implements("log_softmax")
    def log_softmax(self, x: Tensor) -> Tensor:
        """``nn.LogSoftmax``."""
        return _run(nn.LogSoftmax(dim=-1), x)

    @implements("cross_entropy")
    def cross_entropy(
        self,
        logits: Tensor,
        targets: Tensor,
        *,
        ignore_index: int = -100,
        label_smoothing: float = 0.0,
        reduction: str = "mean",
    ) -> Tensor:
        """``nn.CrossEntropyLoss``."""
        module = nn.CrossEntropyLoss(
            ignore_index=ignore_index, label_smoothing=label_smoothing, reduction=reduction
        )
        loss: Tensor = module(logits, targets)
        return loss


def _affine(op: str, weight: Tensor | None, bias: Tensor | None, *, both: bool = False) -> bool:
    """Whether the module has parameters; Unsupported for a choice that modules do not offer."""
    if weight is None and bias is not None:
        raise Unsupported(op, "the module has no bias without a weight")
    if both and weight is not None and bias is None:
        raise Unsupported(op, "the module has no weight without a bias")
    return weight is not None


class TorchChannelsLast(TorchBackend):
    """``functional.group_norm`` and ``batch_norm`` on grids stored with their channels last, for
    which torch has kernels of its own; one axis becomes a grid of one row.
    """

    contract = replace(TorchLayers.contract, name="torch.channels_last")

    @implements("group_norm")
    def group_norm(
        self,
        x: Tensor,
        *,
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        groups: int = 1,
        eps: float = 1e-5,
    ) -> Tensor:
        """``functional.group_norm``."""
        check_group(x, groups)
        check_parameters(weight, bias)
        grid = _grid("group_norm", x)
        return functional.group_norm(grid, groups, weight, bias, eps).reshape(x.shape)

    @implements("batch_norm")
    def batch_norm(
        self,
        x: Tensor,
        *,
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        eps: float = 1e-5,
    ) -> Tensor:
        """``functional.batch_norm`` with the statistics of the batch."""
        check_batch(x)
        grid = _grid("batch_norm", x)
        return functional.batch_norm(
            grid, None, None, weight, bias, training=True, eps=eps
        ).reshape(x.shape)


def _grid(op: str, x: Tensor) -> Tensor:
    """The same entries [B, C, *n] with n of two or three axes, channels last in memory."""
    if x.ndim == 2:
        raise Unsupported(op, "without positions, channels lie last in any case")
    grid = x.unsqueeze(2) if x.ndim == 3 else x
    return grid.contiguous(memory_format=_CHANNELS_LAST[grid.ndim])
