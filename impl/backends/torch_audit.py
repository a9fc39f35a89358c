"""torch.audit: what torch counts, keeps, saves and draws for the models of ``torch.models``."""

from __future__ import annotations

import io

import torch
from torch import Tensor
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from assay.impl.backends.torch_first import initialise
from assay.impl.backends.torch_held import hold, loaded
from assay.impl.backends.torch_traced import branches_of, input_of, kept_by
from assay.impl.contract import Contract
from assay.impl.protocol import implements
from assay.impl.torch_backend import TorchBackend


class TorchAudit(TorchBackend):
    """Attention is explicit or by a fused kernel, as the mode says."""

    contract = Contract(
        name="torch.audit",
        dtypes=("float64",),
        provider="ATen",
        modes=("explicit", "fused"),
        gradients=False,
        requires=("torch",),
    )

    def __init__(self) -> None:
        # The first counter of a process imports more than one call has time for.
        with FlopCounterMode(display=False):
            torch.ones(1, 1).mm(torch.ones(1, 1))

    @implements("model_state")
    def model_state(self, state: Tensor, *, model: str, config: str) -> tuple[Tensor, Tensor]:
        """Bytes [P, 8] of the state after a module, a saved file and another module; and how many
        numbers an optimizer would get.
        """
        first, second = loaded(model, config, state), hold(model, config, state)
        file = io.BytesIO()
        torch.save(first.module.state_dict(), file)
        file.seek(0)
        second.module.load_state_dict(torch.load(file, weights_only=True))
        octets = second.read().double().view(torch.uint8).reshape(-1, 8)
        trained = sum(p.numel() * (2 if p.is_complex() else 1) for p in second.trained())
        return octets.to(state.dtype), state.new_tensor(trained)

    @implements("model_trace")
    def model_trace(
        self, state: Tensor, *, model: str, config: str, batch: int, tokens: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Operations of a forward and a backward pass, numbers kept by a prefill, and shapes
        [R, 2, K] into and out of the residual branches.
        """
        held = loaded(model, config, state, explicit=self.mode == "explicit")
        x = input_of(held.module, batch, tokens, state)
        with torch.enable_grad(), FlopCounterMode(display=False) as counter:
            held.module(x).sum().backward()
        with torch.no_grad():
            shapes, kept = branches_of(held.module, x), kept_by(held.module, x)
        counts = (counter.get_total_flops(), kept)
        flops, cache = (state.new_tensor(n) for n in counts)
        return flops, cache, state.new_tensor(shapes)

    @implements("initial_loss")
    def initial_loss(
        self,
        weights: Tensor,
        ids: Tensor,
        targets: Tensor,
        *,
        model: str,
        config: str,
        seed: int,
    ) -> Tensor:
        """The weighted mean of the losses at each place, in the state that the seed draws."""
        if ids.shape != targets.shape:
            raise ValueError(f"targets {tuple(targets.shape)} must be {tuple(ids.shape)}")
        held = hold(model, config, weights, explicit=self.mode == "explicit")
        initialise(held.module, seed)
        with torch.no_grad():
            logits = held.module(ids).transpose(1, 2)
            each = functional.cross_entropy(logits, targets, reduction="none").mean(dim=0)
        return (weights * each).sum() / weights.sum()
