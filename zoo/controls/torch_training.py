"""Sound steps of training in torch whose gradients or optimizers are computed in other ways."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import sqrt
from typing import Any

import torch
from torch import Tensor

from assay.impl.backends.torch_held import Held
from assay.impl.backends.torch_training import Loss, Optimizer, TorchTraining, pulled
from assay.impl.contract import Contract


def _training(name: str) -> Contract:
    return replace(TorchTraining.contract, name=name, provider="zoo", modes=("single",))


class Accumulated(TorchTraining):
    """Each row of the batch is a batch of its own, from the last one on, and gradients add up. An
    empty batch is one run.
    """

    contract = _training("zoo.training-accumulated")

    def slope(self, loss: Loss, rows: int) -> Tensor:
        """Rows have equally many numbers, so that the mean is the mean of their means."""
        if not rows:
            return super().slope(loss, rows)
        parts = [pulled(loss(slice(b, b + 1)) / rows) for b in reversed(range(rows))]
        return torch.stack(parts).sum()


class Folded:
    """SGD, Adam and AdamW on one flat vector of all parameters.

    The corrections of both means go into the step size, and into eps (D. Kingma and J. Ba, "Adam",
    2015, end of section 2); a decay that is taken off a parameter shrinks it first.
    """

    def __init__(self, parameters: Iterable[Tensor], name: str, options: dict[str, Any]) -> None:
        if name not in ("sgd", "adam", "adamw"):
            raise ValueError(f"optimizer={name!r} is unknown; valid: adam, adamw, sgd")
        self.parameters, self.name, self.options = list(parameters), name, options
        start = self._flat(self.parameters)
        self.mean, self.square, self.taken = start * 0, start * 0, 0

    @staticmethod
    def _flat(tensors: Iterable[Tensor]) -> Tensor:
        real = (torch.view_as_real(t) if t.is_complex() else t for t in tensors)
        return torch.cat([t.detach().reshape(-1) for t in real])

    def zero_grad(self) -> None:
        """None of before."""
        for p in self.parameters:
            p.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """All parameters at once, which are then written back."""
        gradients = [p.grad if p.grad is not None else p * 0 for p in self.parameters]
        moved = self._moved(self._flat(self.parameters), self._flat(gradients))
        start = 0
        for p in self.parameters:
            real = torch.view_as_real(p) if p.is_complex() else p
            real.copy_(moved[start : start + real.numel()].reshape(real.shape))
            start += real.numel()

    def _moved(self, theta: Tensor, g: Tensor) -> Tensor:
        lr, decay = self.options["lr"], self.options["weight_decay"]
        if self.name == "sgd":
            return (1.0 - lr * decay) * theta - lr * g
        if self.name == "adamw":
            theta = (1.0 - lr * decay) * theta
        else:
            g = g + decay * theta
        self.taken += 1
        first, second = self.options["betas"]
        self.mean = self.mean + (1.0 - first) * (g - self.mean)
        self.square = self.square + (1.0 - second) * (g * g - self.square)
        root = sqrt(1.0 - second**self.taken)
        rate = lr * root / (1.0 - first**self.taken)
        return theta - rate * self.mean / (self.square.sqrt() + self.options["eps"] * root)


class FoldedOptimizers(TorchTraining):
    """Optimizers of its own."""

    contract = _training("zoo.training-folded")

    def optimizer(self, held: Held, name: str, options: dict[str, Any]) -> Optimizer:
        """One vector."""
        return Folded(held.trained(), name, options)
