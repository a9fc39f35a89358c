"""Keys and values that a transformer keeps between chunks of tokens, in every layer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor


class Cache(ABC):
    """What was seen so far. Row b begins with pads[b] padding tokens, which nobody sees.

    A chunk is written by ``keep`` in each layer; ``advance`` once it has gone through all of them.
    """

    def __init__(self, batch: int, pads: Sequence[int] = (), device: torch.device | None = None):
        if pads and len(pads) != batch:
            raise ValueError(f"pads={tuple(pads)} must have one number for each of {batch} rows")
        self.length = 0
        self.first = torch.tensor(pads or [0] * batch, dtype=torch.int64, device=device)
        self.pads = self.first

    @abstractmethod
    def keep(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Write a chunk [B, H, T, Dh] of one layer; keys and values up to its end."""

    @abstractmethod
    def select(self, rows: Tensor) -> None:
        """Keep these rows of every layer, in this order."""

    def advance(self, tokens: int) -> None:
        """The chunk has gone through all layers."""
        self.length += tokens

    def reset(self) -> None:
        """Hold nothing; rows begin with their padding again."""
        self.length, self.pads = 0, self.first

    def reorder(self, rows: Sequence[int]) -> None:
        """Row b goes on with the past of row rows[b]."""
        order = torch.tensor(rows, device=self.pads.device)
        self.pads = self.pads[order]
        self.select(order)

    def positions(self, tokens: int) -> Tensor:
        """Positions [B, T] of the next tokens, counted from the first real one; 0 for padding."""
        slots = self.length + torch.arange(tokens, device=self.pads.device)
        return (slots - self.pads[:, None]).clamp(min=0)

    def visible(self, tokens: int) -> Tensor:
        """Which slots the next tokens see [B, 1, T, S]: those before them that are not padding, and
        always themselves.
        """
        slots = torch.arange(self.length + tokens, device=self.pads.device)
        own = self.length + torch.arange(tokens, device=self.pads.device)[:, None]
        real = slots >= self.pads[:, None, None]
        return ((slots <= own) & (real | (slots == own)))[:, None]


class GrowingCache(Cache):
    """Chunks are joined to those before; gradients flow through."""

    def __init__(self, batch: int, pads: Sequence[int] = (), device: torch.device | None = None):
        super().__init__(batch, pads, device)
        self.held: dict[int, tuple[Tensor, Tensor]] = {}

    def keep(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """By ``torch.cat``."""
        if layer in self.held:
            k, v = (torch.cat(pair, dim=2) for pair in zip(self.held[layer], (k, v), strict=True))
        self.held[layer] = k, v
        return k, v

    def select(self, rows: Tensor) -> None:
        """Copies of the rows."""
        self.held = {n: (k[rows], v[rows]) for n, (k, v) in self.held.items()}

    def reset(self) -> None:
        """Forget the tensors."""
        super().reset()
        self.held = {}


class StaticCache(Cache):
    """Slots for the whole context, [Nl, B, H, M, Dh], written in place; not differentiable.

    shape  (layers, heads, slots, width of a head)
    """

    def __init__(
        self, batch: int, pads: Sequence[int], shape: tuple[int, int, int, int], like: Tensor
    ) -> None:
        super().__init__(batch, pads, like.device)
        layers, heads, slots, width = shape
        self.k, self.v = (like.new_zeros((layers, batch, heads, slots, width)) for _ in "kv")

    def keep(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Write into the next slots, and read all up to there."""
        end = self.length + k.shape[2]
        self.k[layer, :, :, self.length : end] = k
        self.v[layer, :, :, self.length : end] = v
        return self.k[layer, :, :, :end], self.v[layer, :, :, :end]

    def select(self, rows: Tensor) -> None:
        """Copies of the rows."""
        self.k, self.v = self.k[:, rows], self.v[:, rows]
