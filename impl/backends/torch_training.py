"""torch.training: any model of ``torch.models``, trained by torch.optim in each of its ways."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn import functional

from assay.impl.backends.torch_held import Held, loaded
from assay.impl.contract import Contract
from assay.impl.protocol import Unsupported, implements
from assay.impl.torch_backend import TorchBackend

OPTIMIZERS: dict[str, Any] = {
    "sgd": torch.optim.SGD,
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
}
SYMBOL_MODELS = ("rnn_lm", "lstm_lm", "mamba_lm")
"""They read a token as a vector with one 1."""

Loss = Callable[[slice], Tensor]
"""The mean over some rows of a batch."""


def optimizer_of(
    held: Held, mode: str, name: str, options: dict[str, Any]
) -> torch.optim.Optimizer:
    """One parameter after the other, all in lists, or all in one kernel, as the mode says."""
    if name not in OPTIMIZERS:
        raise ValueError(f"optimizer={name!r} is unknown; valid: {', '.join(OPTIMIZERS)}")
    if mode == "fused" and any(p.is_complex() for p in held.trained()):
        raise Unsupported(name, "torch.optim takes no complex parameters with fused=True")
    if name == "sgd":
        options = {n: options[n] for n in ("lr", "weight_decay")}
    ways = {"foreach": mode == "foreach", "fused": mode == "fused"}
    made: torch.optim.Optimizer = OPTIMIZERS[name](held.trained(), **options, **ways)
    return made


class Optimizer(Protocol):
    """What a step asks of an optimizer."""

    def zero_grad(self) -> None:
        """Gradients start at nothing."""
        ...

    def step(self) -> object:
        """Move the parameters by their gradients."""
        ...


def descend(held: Held, optimizer: Optimizer, slope: Callable[[], Tensor], steps: int) -> Tensor:
    """The loss before each step [N]; ``slope`` gives it, and adds its gradient to the
    parameters'.
    """
    losses = []
    with torch.enable_grad():
        for _ in range(steps):
            optimizer.zero_grad()
            loss = slope()
            for p in held.trained():
                # torch leaves out a parameter that the loss does not reach, and its decay with it.
                p.grad = torch.zeros_like(p) if p.grad is None else p.grad
            optimizer.step()
            losses.append(loss)
    return torch.stack(losses)


def pulled(loss: Tensor) -> Tensor:
    """The loss, whose gradient has been added to the parameters'."""
    loss.backward()
    return loss.detach()


class TorchTraining(TorchBackend):
    """The mode says how the optimizer goes through the parameters."""

    contract = Contract(
        name="torch.training",
        dtypes=("float64",),
        provider="ATen",
        modes=("single", "foreach", "fused"),
        gradients=False,
        requires=("torch",),
    )

    def __init__(self) -> None:
        # The first optimizer of a process imports more than one call has time for.
        torch.optim.SGD([torch.zeros(1, requires_grad=True)])

    def optimizer(self, held: Held, name: str, options: dict[str, Any]) -> Optimizer:
        """The one of this name for the parameters that are held."""
        return optimizer_of(held, self.mode, name, options)

    def slope(self, loss: Loss, rows: int) -> Tensor:
        """The loss over all rows of the batch, its gradient added to the parameters'."""
        return pulled(loss(slice(None)))

    @implements("language_step")
    def language_step(
        self,
        state: Tensor,
        ids: Tensor,
        targets: Tensor,
        *,
        model: str,
        config: str,
        optimizer: str,
        lr: float,
        betas: tuple[float, float],
        eps: float,
        weight_decay: float,
        steps: int,
    ) -> tuple[Tensor, Tensor]:
        """Losses [N] and the state after as many steps, by cross-entropy of the next tokens."""
        if ids.shape != targets.shape:
            raise ValueError(f"targets {tuple(targets.shape)} must be {tuple(ids.shape)}")
        held = loaded(model, config, state)
        x = ids
        if model in SYMBOL_MODELS:
            symbols = held.module.get_parameter("head.weight").shape[0]
            x = functional.one_hot(ids, symbols).to(state.dtype)

        def loss(rows: slice) -> Tensor:
            logits, due = held.module(x[rows]), targets[rows]
            return functional.cross_entropy(logits.flatten(0, 1), due.flatten())

        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        chosen = self.optimizer(held, optimizer, options)
        slope = partial(self.slope, loss, len(x))
        return descend(held, chosen, slope, steps), held.read()

    @implements("regression_step")
    def regression_step(
        self,
        state: Tensor,
        x: Tensor,
        targets: Tensor,
        *,
        model: str,
        config: str,
        optimizer: str,
        lr: float,
        betas: tuple[float, float],
        eps: float,
        weight_decay: float,
        steps: int,
    ) -> tuple[Tensor, Tensor]:
        """The same by the mean squared error."""
        held = loaded(model, config, state)

        def loss(rows: slice) -> Tensor:
            y, due = held.module(x[rows]), targets[rows]
            if y.shape != due.shape:
                raise ValueError(f"targets {tuple(due.shape)} must be {tuple(y.shape)}")
            return functional.mse_loss(y, due)

        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        chosen = self.optimizer(held, optimizer, options)
        slope = partial(self.slope, loss, len(x))
        return descend(held, chosen, slope, steps), held.read()
