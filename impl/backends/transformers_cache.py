"""transformers.cache: the key/value caches of Hugging Face's transformers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache, MistralConfig, StaticCache
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import create_causal_mask, create_sliding_window_causal_mask

from assay.impl import Contract, TorchBackend, implements
from assay.impl.backends.shapes import check_attention
from assay.impl.backends.transformers_llama import DTYPES, FUSED, SHARED, WHO, layer_of
from assay.impl.torch_decoder import Played, TorchDecoder, play


class Decoder(TorchDecoder):
    """A cache, and the mask that the library makes for it, read by its fused attention.

    limit  tokens beyond which a chunk never reaches the cache
    """

    limit: float = math.inf

    def __init__(self, cache: Any, config: MistralConfig, k: Tensor, v: Tensor) -> None:
        self.cache, self.config, self.none = cache, config, (k[:, :, :, :0], v[:, :, :, :0])
        windowed = config.sliding_window is not None
        self.mask: Any = create_sliding_window_causal_mask if windowed else create_causal_mask

    def append(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """One mask serves all layers."""
        if self.length() + k.shape[3] > self.limit:
            raise ValueError(f"{k.shape[3]} tokens more are beyond {self.limit}")
        mask, outs = self.mask(self.config, q[0, :, 0], None, self.cache), []
        for n in range(len(q)):
            keys, values = self.cache.update(k[n], v[n], n)
            layer = layer_of(q[n], keys, values)
            outs.append(sdpa_attention_forward(layer, q[n], keys, values, mask)[0])
        return torch.stack(outs).transpose(2, 3)

    def positions(self, tokens: int) -> Tensor:
        """From the count of tokens, as models take them."""
        places = self.length() + torch.arange(tokens)
        return places.expand(self.none[0].shape[1], -1)

    def reorder(self, rows: Sequence[int]) -> None:
        """Of all layers."""
        self.cache.reorder_cache(torch.tensor(rows))

    def reset(self) -> None:
        """Of all layers."""
        self.cache.reset()

    def length(self) -> int:
        """As the cache counts."""
        return int(self.cache.get_seq_length())

    def held(self) -> tuple[Tensor, Tensor]:
        """The slots that are filled."""
        layers, end = self.cache.layers, self.length()
        if not end:
            return self.none
        keys, values = zip(
            *((x.keys[:, :, :end], x.values[:, :, :end]) for x in layers), strict=True
        )
        return torch.stack(keys), torch.stack(values)


@lru_cache(64)
def configure(layers: int, window: int | None) -> MistralConfig:
    """What the library reads of a model: Mistral has a sliding window, or none."""
    fields: dict[str, Any] = {"num_hidden_layers": layers, "attn_implementation": "sdpa"}
    return MistralConfig(sliding_window=window, **fields)


def check(q: Tensor, k: Tensor, v: Tensor) -> None:
    """ValueError unless all have the same layers, and fit together in each."""
    if not len(q) == len(k) == len(v):
        raise ValueError(f"layers of q, k, v differ: {len(q)}, {len(k)}, {len(v)}")
    check_attention(q[0], k[0], v[0])


class TransformersCacheDynamic(TorchBackend):
    """``DynamicCache``. It has no limit: a chunk beyond the capacity is refused here."""

    contract = Contract(
        "transformers.cache.dynamic",
        DTYPES,
        gradients=False,
        modes=("no_grad",),
        **SHARED,
        **FUSED,
        **WHO,
    )

    @implements("kv_cache")
    def kv_cache(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        *,
        script: Sequence[str] = (),
        capacity: int | None = None,
    ) -> Played:
        """A fresh cache for each session."""
        check(q, k, v)
        decoder = Decoder(DynamicCache(), configure(len(q), None), k, v)
        decoder.limit = k.shape[3] if capacity is None else capacity
        return play(decoder, q, k, v, script=script, capacity=capacity)


class TransformersCacheStatic(TorchBackend):
    """``StaticCache``; a ring is that of a sliding window. A chunk beyond the capacity is refused
    here (guarded), or by the cache itself (bare).
    """

    contract = replace(
        TransformersCacheDynamic.contract,
        name="transformers.cache.static",
        modes=("guarded_no_grad", "bare_no_grad"),
    )

    @implements("kv_cache")
    def kv_cache(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        *,
        script: Sequence[str] = (),
        capacity: int | None = None,
        rolling: bool = False,
    ) -> Played:
        """A fresh cache for each session."""
        check(q, k, v)
        slots = k.shape[3] if capacity is None else capacity
        most = max(k.shape[3], slots) if rolling else slots
        config = configure(len(q), slots if rolling else None)
        decoder = Decoder(StaticCache(config, most), config, k, v)
        if self.mode.startswith("guarded"):
            decoder.limit = most
        return play(decoder, q, k, v, script=script, capacity=capacity)
