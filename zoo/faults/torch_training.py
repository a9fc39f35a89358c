"""Faults of models in training in torch, and of what is counted of them."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from assay.impl.backends.torch_audit import TorchAudit
from assay.impl.backends.torch_held import hold
from assay.impl.backends.torch_training import TorchTraining
from assay.impl.contract import Contract
from assay.impl.protocol import implements


def _training(name: str) -> Contract:
    return replace(TorchTraining.contract, name=name, provider="zoo", modes=("single",))


def _audit(name: str) -> Contract:
    return replace(TorchAudit.contract, name=name, provider="zoo", modes=("explicit",))


class DecayInGradient(TorchTraining):
    """AdamW adds its decay to the gradient, as Adam does. Shows with AdamW where the decay is not
    0.
    """

    contract = _training("zoo.training-decay-in-gradient")

    @implements("language_step")
    def language_step(
        self,
        state: Tensor,
        ids: Tensor,
        targets: Tensor,
        *,
        optimizer: str,
        model: str,
        config: str,
        lr: float,
        betas: tuple[float, float],
        eps: float,
        weight_decay: float,
        steps: int,
    ) -> tuple[Tensor, Tensor]:
        """Adam in its place."""
        return super().language_step(
            state,
            ids,
            targets,
            optimizer="adam" if optimizer == "adamw" else optimizer,
            model=model,
            config=config,
            lr=lr,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            steps=steps,
        )


class SavedInSinglePrecision(TorchAudit):
    """A state is saved in float32."""

    contract = _audit("zoo.training-saved-in-single-precision")

    @implements("model_state")
    def model_state(self, state: Tensor, *, model: str, config: str) -> tuple[Tensor, Tensor]:
        """Half of the digits."""
        return super().model_state(state.float().double(), model=model, config=config)


class TiedCountedTwice(TorchAudit):
    """A table that is the head as well is counted twice. Shows where it is tied.

    https://github.com/rasbt/LLMs-from-scratch/issues/822
    """

    contract = _audit("zoo.training-tied-counted-twice")

    @implements("model_state")
    def model_state(self, state: Tensor, *, model: str, config: str) -> tuple[Tensor, Tensor]:
        """Each name counts."""
        octets, trained = super().model_state(state, model=model, config=config)
        module = hold(model, config, state).module
        once = {id(p) for p in module.parameters()}
        for _, p in module.named_parameters(remove_duplicate=False):
            if id(p) not in once:
                trained = trained + p.numel()
            once.discard(id(p))
        return octets, trained


class LibraryStart(TorchAudit):
    """Parameters start as the library draws them, tables at N(0, 1): the first loss is far above
    that of even odds.
    """

    contract = _audit("zoo.training-library-start")

    @implements("initial_loss")
    def initial_loss(
        self, weights: Tensor, ids: Tensor, targets: Tensor, *, model: str, config: str, seed: int
    ) -> Tensor:
        """nn.Embedding's own values."""
        held = hold(model, config, weights, explicit=True)
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(seed)
            for part in held.module.modules():
                if isinstance(part, torch.nn.Embedding):
                    torch.nn.init.normal_(part.weight)
            logits = held.module(ids).transpose(1, 2)
        each = torch.nn.functional.cross_entropy(logits, targets, reduction="none").mean(dim=0)
        return (weights * each).sum() / weights.sum()


class _Traced(TorchAudit):
    @implements("model_trace")
    def model_trace(
        self, state: Tensor, *, model: str, config: str, batch: int, tokens: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """What is counted, as it is told."""
        counts = super().model_trace(state, model=model, config=config, batch=batch, tokens=tokens)
        return self.told(*counts)

    def told(self, flops: Tensor, cache: Tensor, shapes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """All of it."""
        return flops, cache, shapes


class BackwardUncounted(_Traced):
    """The operations of the backward pass are taken to be as many as those of the forward pass,
    where they are twice as many.
    """

    contract = _audit("zoo.training-backward-uncounted")

    def told(self, flops: Tensor, cache: Tensor, shapes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Two thirds."""
        return torch.floor(flops / 3) * 2, cache, shapes


class KeysCountedOnly(_Traced):
    """Of keys and values that are kept the keys are counted."""

    contract = _audit("zoo.training-keys-counted-only")

    def told(self, flops: Tensor, cache: Tensor, shapes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """One half."""
        return flops, cache / 2, shapes


class ShapesTurned(_Traced):
    """Shapes of residual branches have their last two axes exchanged. Shows where they differ.

    https://github.com/pytorch/torchtitan/issues/4244
    """

    contract = _audit("zoo.training-shapes-turned")

    def told(self, flops: Tensor, cache: Tensor, shapes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Width before length."""
        turned = shapes.clone()
        if shapes.ndim == 3 and shapes.shape[2] > 2:
            turned[..., -2:] = shapes[..., -2:].flip(-1)
        return flops, cache, turned
