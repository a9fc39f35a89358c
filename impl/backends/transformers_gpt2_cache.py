"""transformers.gpt2.cache: the same model decoding, with a cache that grows or is preallocated."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call
from transformers import DynamicCache, StaticCache

from assay.impl import Contract, TorchBackend, implements
from assay.impl.backends.transformers_gpt2 import WITH, build, parameters
from assay.impl.torch_token_decoder import TorchTokenDecoder, play_tokens


class Decoder(TorchTokenDecoder):
    """A model and its cache. Where rows begin with padding the mask is given, and a padding token
    sees itself; elsewhere the mask is the model's own.
    """

    def __init__(self, call: Any, cache: Any, context: int, pads: Tensor) -> None:
        self.call, self.cache, self.context = call, cache, context
        self.pads = self.first = pads

    def append(self, ids: Tensor) -> Tensor:
        """The model behind what the cache holds. A cache that grows has no limit of its own."""
        own = self.length() + torch.arange(ids.shape[1])
        if self.length() + ids.shape[1] > self.context:
            raise ValueError(f"{len(own)} tokens more are beyond the context of {self.context}")
        slots = torch.arange(self.cache.get_mask_sizes(ids.shape[1], 0)[0])
        real = (slots >= self.pads[:, None, None]) | (slots == own[:, None])
        mask = torch.where(real & (slots <= own[:, None]), 0.0, -math.inf).double()
        places = (own - self.pads[:, None]).clamp(min=0)
        given = {"attention_mask": mask[:, None]} if self.pads.any() else {}
        return self.call(
            (ids,), {"cache": self.cache, "position_ids": places, "use_cache": True, **given}
        ).logits

    def reorder(self, rows: Sequence[int]) -> None:
        """Of the cache, and of the padding."""
        self.cache.reorder_cache(torch.tensor(rows))
        self.pads = self.pads[list(rows)]

    def reset(self) -> None:
        """Of the cache; rows begin with their padding again."""
        self.cache.reset()
        self.pads = self.first

    def length(self) -> int:
        """As the cache counts."""
        return int(self.cache.get_seq_length())


class TransformersGpt2Cache(TorchBackend):
    """``DynamicCache`` with fused attention, and ``StaticCache`` with explicit scores."""

    contract = Contract(
        "transformers.gpt2.cache",
        ("float64",),
        provider="ATen",
        gradients=False,
        modes=("dynamic_no_grad", "static_no_grad"),
        requires=WITH,
    )

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
        """Logits of every token, lengths and refusals."""
        static, fields = self.mode.startswith("static"), json.loads(config)
        module = build(config, "eager" if static else "sdpa")
        cache = StaticCache(module.config, fields["context"]) if static else DynamicCache()
        call = partial(functional_call, module, parameters(module, state, config))
        first = torch.tensor(pads or [0] * ids.shape[0])
        decoder = Decoder(call, cache, fields["context"], first)
        return play_tokens(decoder, ids, fields["vocabulary"], state, script)
