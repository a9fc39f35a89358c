"""Torch backends that do one thing wrong each."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay.impl import Contract, TorchBackend, implements


class SoundTorch(TorchBackend):
    contract = Contract(name="sound-torch", witness=("aten::clone",))

    @implements("attention")
    def attention(self, q: Tensor, k: Tensor, v: Tensor, *, scale: float | None = None) -> Any:
        return self.compute(q, k, v)

    def compute(self, q: Tensor, k: Tensor, v: Tensor) -> Any:
        return v.clone()


class OtherKernel(SoundTorch):
    """Says that clone runs, and adds."""

    def compute(self, q: Tensor, k: Tensor, v: Tensor) -> Any:
        return v + 0


class AliasesView(SoundTorch):
    def compute(self, q: Tensor, k: Tensor, v: Tensor) -> Any:
        return v.detach()[..., :1]


class WritesInput(SoundTorch):
    def compute(self, q: Tensor, k: Tensor, v: Tensor) -> Any:
        k.data.mul_(2)
        return v.clone()


class DrawsRandom(SoundTorch):
    def compute(self, q: Tensor, k: Tensor, v: Tensor) -> Any:
        torch.rand(1)
        return v.clone()


class SetsGradMode(SoundTorch):
    def compute(self, q: Tensor, k: Tensor, v: Tensor) -> Any:
        torch.set_grad_enabled(not torch.is_grad_enabled())
        return v.clone()


class ReturnsNumpy(SoundTorch):
    def compute(self, q: Tensor, k: Tensor, v: Tensor) -> Any:
        return np.zeros(3)


class ReturnsSparse(SoundTorch):
    def compute(self, q: Tensor, k: Tensor, v: Tensor) -> Any:
        return v.to_sparse()


class ReturnsMeta(SoundTorch):
    def compute(self, q: Tensor, k: Tensor, v: Tensor) -> Any:
        return v.to("meta")


class Detaches(SoundTorch):
    def compute(self, q: Tensor, k: Tensor, v: Tensor) -> Any:
        return v.detach().clone()


class IgnoresQueries(SoundTorch):
    """A gradient of zero into q and k is right here."""


class OutOfMemory(SoundTorch):
    def compute(self, q: Tensor, k: Tensor, v: Tensor) -> Any:
        return torch.empty(1 << 60)


class TellsMode(SoundTorch):
    contract = Contract(name="modes", modes=("train", "no_grad"))

    def compute(self, q: Tensor, k: Tensor, v: Tensor) -> Any:
        told = (self.mode == "train") + 2 * torch.is_grad_enabled() + 4 * q.requires_grad
        return torch.full_like(v, told)


def plain(q: Tensor, k: Tensor, v: Tensor, scale: float | None = None) -> Tensor:
    """A function on tensors."""
    return v * 2


module = torch.nn.Identity()
