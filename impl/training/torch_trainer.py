"""Trains a torch module: the step that the property ``model.one_step`` holds to the spec."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from jaxtyping import Shaped
from torch import Tensor, nn
from torch.nn import functional

from assay.impl.backends.torch_held import loaded
from assay.impl.backends.torch_training import SYMBOL_MODELS, descend, optimizer_of, pulled
from assay.impl.training.data import Examples

WAY = "foreach"
"""How the optimizer goes through the parameters: the only fast way that takes complex ones too."""

CHUNK = 64
"""Examples that are judged at once."""


class TorchTrainer:
    """A model with a state of its own.

    model, config  name and fields, as JSON
    state          first values, in the format to train in
    optimizer      sgd, adam or adamw; ``options``: lr, betas, eps, weight_decay
    seed           of what dropouts leave out
    """

    def __init__(
        self,
        model: str,
        config: str,
        state: Shaped[np.ndarray, " P"],
        *,
        optimizer: str,
        options: Mapping[str, Any],
        seed: int = 0,
    ) -> None:
        self.model, self.seed, self.taken = model, seed, 0
        self.held = loaded(model, config, torch.from_numpy(state))
        self.optimizer = optimizer_of(self.held, WAY, optimizer, dict(options))

    def step(self, batch: Examples, *, dropouts: bool = True) -> float:
        """Take a step; the loss before it."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed + self.taken)
            self.held.module.train(dropouts)
            losses = descend(self.held, self.optimizer, lambda: pulled(self._loss(batch)), 1)
            self.held.module.eval()
        self.taken += 1
        return float(losses[0])

    def loss(self, examples: Examples) -> float:
        """The mean over all examples, dropouts off."""
        total = 0.0
        with torch.no_grad():
            for start in range(0, len(examples.inputs), CHUNK):
                chunk = examples.rows(slice(start, start + CHUNK))
                total += len(chunk.inputs) * float(self._loss(chunk))
        return total / len(examples.inputs)

    def outputs(self, inputs: np.ndarray) -> np.ndarray:
        """What the model answers, dropouts off."""
        with torch.no_grad():
            chunks = [
                self.held.module(self._read(inputs[start : start + CHUNK])).numpy()
                for start in range(0, len(inputs), CHUNK)
            ]
        return np.concatenate(chunks)

    def into_head(self, inputs: np.ndarray) -> np.ndarray:
        """What the last linear map reads."""
        seen: list[np.ndarray] = []
        head = self.held.module.get_submodule("head")
        hook = head.register_forward_pre_hook(lambda _, given: seen.append(given[0].numpy()))
        try:
            self.outputs(inputs)
        finally:
            hook.remove()
        return np.concatenate(seen)

    def state(self) -> Shaped[np.ndarray, " P"]:
        """The parameters now, in the spec's order."""
        return self.held.read().numpy()

    def _loss(self, batch: Examples) -> Tensor:
        y = self.held.module(self._read(batch.inputs))
        targets = torch.from_numpy(np.array(batch.targets))
        if batch.targets.dtype.kind == "i":
            return functional.cross_entropy(y.flatten(0, 1), targets.flatten())
        return functional.mse_loss(y, targets.to(y.dtype))

    def _read(self, inputs: np.ndarray) -> Tensor:
        """Identifiers, those as vectors with one 1, or numbers in the format of the state."""
        # A copy: windows of a text overlap in memory that torch must not write to.
        x = torch.from_numpy(np.array(inputs))
        if self.model in SYMBOL_MODELS:
            head = self.held.module.get_submodule("head")
            assert isinstance(head, nn.Linear)
            x = functional.one_hot(x, head.out_features)
        whole = inputs.dtype.kind == "i" and self.model not in SYMBOL_MODELS
        return x if whole else x.to(self.held.like.dtype)
