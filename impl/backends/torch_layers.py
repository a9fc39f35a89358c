"""torch.layers: torch's functional forms of linear maps, activations, norms and losses."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from assay.impl.contract import Contract
from assay.impl.protocol import implements
from assay.impl.torch_backend import TorchBackend


class TorchLayers(TorchBackend):
    """Each op as ``torch.nn.functional`` or ``torch`` offers it."""

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

    @implements("gelu")
    def gelu(self, x: Tensor, *, approximate: str = "none") -> Tensor:
        """``functional.gelu``, both forms."""
        return functional.gelu(x, approximate=approximate)

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
