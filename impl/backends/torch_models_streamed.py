"""torch.models.streamed: models that are continued from what they kept of the tokens before."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.func import functional_call

from assay.impl.backends.torch_models_cache import Cache, GrowingCache, StaticCache
from assay.impl.backends.torch_models_catalogue import build
from assay.impl.backends.torch_models_sequence import Past
from assay.impl.backends.torch_models_state import filled, unpack
from assay.impl.backends.torch_models_transformer import GPT, CharGPT
from assay.impl.contract import Contract
from assay.impl.protocol import implements
from assay.impl.torch_backend import TorchBackend
from assay.impl.torch_token_decoder import TorchTokenDecoder, play_tokens

CHUNK = 2
"""Tokens of a chunk in the mode of chunks."""


def cache_of(
    module: GPT | CharGPT, ids: Tensor, like: Tensor, pads: Sequence[int], *, static: bool
) -> Cache:
    """An empty cache for the rows of ``ids``."""
    if not static:
        return GrowingCache(ids.shape[0], pads, ids.device)
    blocks = module.h if isinstance(module, GPT) else module.blocks
    shape = (len(blocks), module.heads, module.context, module.width // module.heads)
    return StaticCache(ids.shape[0], pads, shape, like)


class Decoder(TorchTokenDecoder):
    """A GPT and its cache."""

    def __init__(self, module: GPT, cache: Cache) -> None:
        self.module, self.cache = module, cache

    def append(self, ids: Tensor) -> Tensor:
        """The model behind what the cache holds."""
        logits: Tensor = self.module(ids, self.cache)
        return logits

    def reorder(self, rows: Sequence[int]) -> None:
        """The rows of the cache."""
        self.cache.reorder(rows)

    def reset(self) -> None:
        """An empty cache."""
        self.cache.reset()

    def length(self) -> int:
        """Tokens in the cache."""
        return self.cache.length


class TorchModelsStreamed(TorchBackend):
    """chunks: two tokens at a time, keys and values joined to those before; gradients flow through
    all chunks. steps: half of the sequence at once and then one token at a time, keys and values in
    preallocated slots, everything written out.
    """

    contract = Contract(
        name="torch.models.streamed",
        dtypes=("float64",),
        provider="ATen",
        modes=("chunks", "steps_no_grad"),
        requires=("torch",),
    )

    @property
    def by_steps(self) -> bool:
        """Whether the mode is that of single tokens."""
        return self.mode.startswith("steps")

    def _streamed(self, name: str, config: str, state: Tensor, x: Tensor) -> Tensor:
        module = build(name, config, explicit=self.by_steps).eval()
        parameters = unpack(module, state)
        past: Past | Cache = {}
        if isinstance(module, GPT | CharGPT):
            past = cache_of(module, x, state, (), static=self.by_steps)
        half = x.shape[1] - x.shape[1] // 2
        sizes = [half, *[1] * (x.shape[1] - half)] if self.by_steps else CHUNK
        outs = [functional_call(module, parameters, (part, past)) for part in x.split(sizes, 1)]
        return torch.cat(outs, dim=1)

    @implements("gpt")
    def gpt(self, state: Tensor, ids: Tensor, *, config: str) -> Tensor:
        """[B, T] -> [B, T, V]."""
        return self._streamed("gpt", config, state, ids)

    @implements("char_gpt")
    def char_gpt(self, state: Tensor, ids: Tensor, *, config: str) -> Tensor:
        """[B, T] -> [B, T, V]."""
        return self._streamed("char_gpt", config, state, ids)

    @implements("mamba_lm")
    def mamba_lm(self, state: Tensor, x: Tensor, *, config: str) -> Tensor:
        """[B, T, V] -> [B, T, V]."""
        return self._streamed("mamba_lm", config, state, x)

    @implements("lstm_regression")
    def lstm_regression(self, state: Tensor, x: Tensor, *, config: str) -> Tensor:
        """[B, T, I] -> [B, T, O]."""
        return self._streamed("lstm_regression", config, state, x)

    @implements("gpt_decode")
    def gpt_decode(
        self,
        state: Tensor,
        ids: Tensor,
        *,
        config: str,
        script: Sequence[str] = (),
        pads: Sequence[int] = (),
    ) -> tuple[Tensor, Tensor, Tensor]:
        """A fresh cache for each session."""
        module = filled(build("gpt", config, explicit=self.by_steps), state).eval()
        assert isinstance(module, GPT)
        cache = cache_of(module, ids, state, pads, static=self.by_steps)
        vocabulary = module.lm_head.out_features
        with torch.no_grad():
            return play_tokens(Decoder(module, cache), ids, vocabulary, state, script)
