"""torch.layers: torch's functional forms of linear maps, activations, norms and losses."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from assay.impl.contract import Contract
from assay.impl.protocol import Unsupported, implements
from assay.impl.torch_backend import TorchBackend


def check_group(x: Tensor, groups: int) -> None:
    """Unsupported where torch refuses to normalise single values."""
    if x.numel() == groups:
        raise Unsupported("group_norm", "torch refuses an array that is one group of one value")


def check_parameters(weight: Tensor | None, bias: Tensor | None) -> None:
    """Unsupported where a gradient is due for a bias without a weight: the backward pass of group
    norm then raises "tensor does not have a device".
    """
    if weight is None and bias is not None and bias.requires_grad:
        raise Unsupported("group_norm", "torch has no gradient for a bias without a weight")


def check_batch(x: Tensor) -> None:
    """Unsupported where torch refuses to take the statistics of a batch."""
    values = x.numel() // max(x.shape[1], 1)
    if values == 1:
        raise Unsupported("batch_norm", "torch refuses a batch with one value for each channel")


def _check_wide(op: str, x: Tensor) -> None:
    """Unsupported where gradients of parameters are added up in a 16-bit format."""
    if x.dtype.itemsize == 2:
        raise Unsupported(op, "adds up gradients in 16 bits: see torch.layers.16bit")


class TorchSums16(TorchBackend):
    """Layer norm and embedding in 16-bit formats: gradients of weight, bias and table are added up
    row by row in the format itself.
    """

    contract = Contract(
        name="torch.layers.16bit",
        dtypes=("bfloat16", "float16"),
        provider="ATen",
        accumulate="input",
        requires=("torch",),
    )

    @implements("embedding")
    def embedding(self, ids: Tensor, table: Tensor, *, padding_idx: int | None = None) -> Tensor:
        """``functional.embedding``."""
        return functional.embedding(ids, table, padding_idx)

    @implements("layer_norm")
    def layer_norm(
        self,
        x: Tensor,
        *,
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        eps: float = 1e-5,
    ) -> Tensor:
        """``functional.layer_norm`` over the last axis."""
        return functional.layer_norm(x, x.shape[-1:], weight, bias, eps)


class TorchGelu(TorchBackend):
    """``functional.gelu``. On arrays of at least a vector's length, the erf of a float32 GELU is a
    polynomial: it was measured to be off by 6.9e-7, which is 6 ulps.
    """

    contract = Contract(
        name="torch.gelu",
        dtypes=("float32", "bfloat16", "float16", "float64"),
        provider="ATen",
        intermediate="input",
        exp_ulps=6.0,
        requires=("torch",),
    )

    @implements("gelu")
    def gelu(self, x: Tensor, *, approximate: str = "none") -> Tensor:
        """``functional.gelu``, both forms."""
        return functional.gelu(x, approximate=approximate)


class TorchLayers(TorchBackend):
    """Each op as ``torch.nn.functional`` or ``torch`` offers it.

    The documentation says that ignored targets do not contribute to the gradient: a promise for any
    value. For GELU see ``TorchGelu``, for layer norm and embedding in 16 bits ``TorchSums16``.
    """

    contract = Contract(
        name="torch.layers",
        dtypes=("float32", "bfloat16", "float16", "float64"),
        provider="ATen",
        intermediate="input",
        requires=("torch",),
    )

    @implements("relu")
    def relu(self, x: Tensor) -> Tensor:
        """``torch.relu``."""
        return torch.relu(x)

    @implements("silu")
    def silu(self, x: Tensor) -> Tensor:
        """``functional.silu``."""
        return functional.silu(x)

    @implements("sigmoid")
    def sigmoid(self, x: Tensor) -> Tensor:
        """``torch.sigmoid``."""
        return torch.sigmoid(x)

    @implements("tanh")
    def tanh(self, x: Tensor) -> Tensor:
        """``torch.tanh``."""
        return torch.tanh(x)

    @implements("softplus")
    def softplus(self, x: Tensor) -> Tensor:
        """``functional.softplus``: linear beyond its threshold."""
        return functional.softplus(x)

    @implements("linear")
    def linear(self, x: Tensor, weight: Tensor, *, bias: Tensor | None = None) -> Tensor:
        """``functional.linear``."""
        return functional.linear(x, weight, bias)

    @implements("rms_norm")
    def rms_norm(self, x: Tensor, *, weight: Tensor | None = None, eps: float = 1e-5) -> Tensor:
        """``functional.rms_norm`` over the last axis."""
        return functional.rms_norm(x, x.shape[-1:], weight, eps)

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
        return functional.group_norm(x, groups, weight, bias, eps)

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
        return functional.batch_norm(x, None, None, weight, bias, training=True, eps=eps)

    @implements("log_softmax")
    def log_softmax(self, x: Tensor) -> Tensor:
        """``functional.log_softmax`` over the last axis."""
        return functional.log_softmax(x, dim=-1)

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
        """``functional.cross_entropy``."""
        return functional.cross_entropy(
            logits,
            targets,
            ignore_index=ignore_index,
            label_smoothing=label_smoothing,
            reduction=reduction,
        )

    @implements("embedding")
    def embedding(self, ids: Tensor, table: Tensor, *, padding_idx: int | None = None) -> Tensor:
        """``functional.embedding``."""
        _check_wide("embedding", table)
        return functional.embedding(ids, table, padding_idx)

    @implements("layer_norm")
    def layer_norm(
        self,
        x: Tensor,
        *,
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        eps: float = 1e-5,
    ) -> Tensor:
        """``functional.layer_norm`` over the last axis."""
        _check_wide("layer_norm", x)
        return functional.layer_norm(x, x.shape[-1:], weight, bias, eps)
