"""Faults of decoding token by token with a model in torch."""

from __future__ import annotations

import torch
from torch import Tensor

from assay.impl.backends.torch_models_cache import Cache, GrowingCache
from assay.impl.backends.torch_models_streamed import Decoder
from assay.impl.backends.torch_models_transformer import GPT
from assay.impl.contract import Contract
from assay.zoo.torch_sound import TokenDecoding, in_torch


def _decoding(name: str) -> Contract:
    return in_torch(name, modes=("no_grad",), gradients=False)


class _Unpadded(GrowingCache):
    def positions(self, tokens: int) -> Tensor:
        """From the padded beginning."""
        slots = self.length + torch.arange(tokens, device=self.pads.device)
        return slots.expand(len(self.pads), tokens)


class PaddedLength(TokenDecoding):
    """Positions are counted from the padded beginning of a row.

    https://github.com/huggingface/transformers/pull/48161
    """

    contract = _decoding("zoo.decode-padded-length")
    cache = _Unpadded


class _FirstLayer(GrowingCache):
    def select(self, rows: Tensor) -> None:
        """Layer 0 alone."""
        self.held = {n: (k[rows], v[rows]) if n == 0 else (k, v) for n, (k, v) in self.held.items()}


class OneLayerReordered(TokenDecoding):
    """Rows are reordered in the first layer. Shows with several layers."""

    contract = _decoding("zoo.decode-one-layer-reordered")
    cache = _FirstLayer


class _Remembering(GrowingCache):
    def reset(self) -> None:
        """The first layer keeps what it had of one token."""
        kept = {n: (k[:, :, :1], v[:, :, :1]) for n, (k, v) in self.held.items()}
        some = min(self.length, 1)
        super().reset()
        self.held, self.length = (kept, 1) if some else ({}, 0)


class ResetKeepsFirst(TokenDecoding):
    """A reset keeps the first token, as a prompt that is shared by all sessions."""

    contract = _decoding("zoo.decode-reset-keeps-first")
    cache = _Remembering


class _OwnChunk(GrowingCache):
    def visible(self, tokens: int) -> Tensor:
        """A chunk of several tokens sees itself."""
        seen = super().visible(tokens).clone()
        if tokens > 1:
            seen[..., : self.length] = False
        return seen


class ChunkAlone(TokenDecoding):
    """A chunk of several tokens sees nothing of what is held: decoding after a prompt is right.

    https://github.com/pytorch/executorch/issues/21749
    """

    contract = _decoding("zoo.decode-chunk-alone")
    cache = _OwnChunk


class _Restarting(Decoder):
    def append(self, ids: Tensor) -> Tensor:
        """An empty cache where the context is full."""
        context = self.module.context
        if self.cache.length + ids.shape[1] > context:
            self.cache.reset()
        return super().append(ids[:, :context])


class ContextRestarts(TokenDecoding):
    """Where a chunk does not fit, everything before is forgotten, and nobody is told."""

    contract = _decoding("zoo.decode-context-restarts")

    def decoder(self, module: GPT, cache: Cache) -> Decoder:
        """Never refuses."""
        return _Restarting(module, cache)
